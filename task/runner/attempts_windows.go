package runner

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/windows"

	"lanjobs/task"
)

// sweepTargets: a dead guard's job objects are closed, which ended their processes. A frozen guard still holds them; then only the
// commands' own processes can be reached from outside.
func sweepTargets(targets []target, guard int, _ map[int]bool) (int, error) {
	if guard == 0 {
		return 0, nil
	}
	for _, t := range targets {
		if p, err := os.FindProcess(t.pid); err == nil && t.pid != 0 {
			_ = p.Kill() // gone already is fine
		}
	}
	return 0, nil
}

// sweepStrays: there are none, see sweepTargets.
func sweepStrays(string, map[task.ExecutionID]bool) (int, error) { return 0, nil }

func (r *Runner) killGuard(pid int) {
	if p, err := os.FindProcess(pid); err == nil && pid > 1 {
		_ = p.Kill()
	}
}

func peerPid(net.Conn) int { return 0 }

// detached: a console of its own that nobody sees. Commands share it, so that CTRL_BREAK can reach them.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NO_WINDOW | windows.CREATE_NEW_PROCESS_GROUP}
}
