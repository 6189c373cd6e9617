//go:build unix

package runner

import (
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lanjobs/task"
)

// sweepTargets kills what it finds of attempts whose guard is dead (0) or frozen, and counts it.
func sweepTargets(targets []target, guard int, mains map[int]bool) (int, error) {
	if guard != 0 {
		// It keeps their pids from being used again. At once, since a search takes its time on a busy machine.
		for _, t := range targets {
			if t.pid != 0 {
				_ = signalGroup(t.pid, syscall.SIGKILL)
			}
		}
	}
	procs, err := listProcs()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, t := range targets {
		if guard == 0 && isOthers(procs, t) {
			t.pid = 0
		}
		n += len(sweepTree(treeQuery{
			guard: guard, main: t.pid, mains: mains, wide: true,
			marked: func(pid int) bool { return hasMark(pid, t.mark) },
		}, procs))
	}
	return n, nil
}

// isOthers tells whether a target's pid is another process's by now: its guard may have died hours ago, while this agent was frozen.
func isOthers(procs []procInfo, t target) bool {
	return slices.ContainsFunc(procs, func(p procInfo) bool { return p.pid == t.pid && bornAfter(p, t.heard) })
}

// sweepStrays kills every process that carries a mark with the prefix, except those of executions to keep.
func sweepStrays(prefix string, keep map[task.ExecutionID]bool) (int, error) {
	procs, err := listProcs()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, p := range procs {
		if p.pid == os.Getpid() {
			continue
		}
		if x := claimOf(p.pid, prefix); x != "" && !keep[x] {
			killExact(p)
			n++
		}
	}
	return n, nil
}

// killGuard ends a guard that does not answer, so that the kernel ends its commands and nobody writes its journal any more.
func (r *Runner) killGuard(pid int) {
	if pid <= 1 || pid == os.Getpid() {
		return
	}
	begin := r.clock.Awake()
	for unix.Kill(pid, unix.SIGKILL) == nil && !isZombie(pid) && r.clock.Awake()-begin < time.Second {
		<-r.clock.After(time.Millisecond)
	}
}

// detached: a session of its own, so that neither a terminal nor a signal to the agent's group reaches the guard.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func socketPid(conn net.Conn, ask func(fd int) (int, error)) int {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return 0
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	if err := raw.Control(func(fd uintptr) { pid, err = ask(int(fd)) }); err != nil {
		return 0
	}
	if err != nil {
		return 0
	}
	return pid
}
