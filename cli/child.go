package cli

import (
	"os"
	"os/exec"
)

// launchDetached starts a program that this terminal takes no part in, and whose output goes into a file. The channel tells when it
// ends.
func launchDetached(exe string, args []string, logFile string) (<-chan error, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(exe, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = detached()
	return begin(cmd)
}

// begin starts a program and tells when it ends. Waiting for it keeps a dead child from looking alive.
func begin(cmd *exec.Cmd) (<-chan error, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	return exited, nil
}
