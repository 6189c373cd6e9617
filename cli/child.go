package cli

import "os/exec"

// begin starts a program and tells when it ends. Waiting for it keeps a dead child from looking alive.
func begin(cmd *exec.Cmd) (<-chan error, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	return exited, nil
}
