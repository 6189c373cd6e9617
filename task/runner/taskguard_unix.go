//go:build unix

package runner

import (
	"os"
	"os/exec"
	"syscall"
)

// guardedAttr gives the command a group of its own, so that all of it can be killed without killing the task.
func guardedAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGuarded(cmd *exec.Cmd) { _ = signalGroup(cmd.Process.Pid, syscall.SIGKILL) }

func signalOf(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return int(ws.Signal())
	}
	return 0
}
