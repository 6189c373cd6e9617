//go:build unix

package runner

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lanjobs/task"
)

// settle makes the process what its children should inherit: no folder held, umask 022, no signal ignored, orphans to us.
func (g *guard) settle() error {
	unix.Umask(0o022)
	closeInherited()
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := becomeReaper(); err != nil {
		g.log.Warn("orphans will not come here", "error", err)
	}
	if err := normalOOMScore(); err != nil {
		g.log.Warn("kill score kept", "error", err)
	}
	// Caught instead of ignored: an ignored signal would stay ignored in every command (nohup does that to SIGHUP).
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE)
	go func() {
		for s := range caught {
			if s == syscall.SIGTERM {
				g.stopAll()
			}
		}
	}()
	return nil
}

// closeInherited closes what whoever started the node left open: commands must not have it, and somebody may be waiting for its
// end. What Go opened itself is closed on exec and thereby told apart.
func closeInherited() {
	dir, err := os.Open("/dev/fd")
	if err != nil {
		return
	}
	names, err := dir.Readdirnames(-1)
	closeQuietly(dir)
	if err != nil {
		return
	}
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd < 3 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}

// child is a command's own process.
type child struct{ pid int }

func (c child) terminate() { _ = signalGroup(c.pid, syscall.SIGTERM) }

func (c child) release() {}

// fork starts the process and registers it before any search or end can meet it.
func (g *guard) fork(a *guarded, files []*os.File) error {
	fds := make([]uintptr, len(files))
	for i, f := range files {
		fds[i] = f.Fd()
	}
	pause := func(d time.Duration) { <-g.clock.After(d) }
	pid, err := startChild(&a.launch, fds, commandAttr(a.slot, a.launch.User), pause)
	if err != nil && a.slot != nil && !isExecError(err) {
		// Some systems let us make a control group but not start a process in it.
		g.cgroup.put(a.slot)
		g.cgroup.refuse()
		a.slot = nil
		pid, err = startChild(&a.launch, fds, commandAttr(nil, a.launch.User), pause)
	}
	if err != nil {
		return err
	}
	g.noteBirth(a, child{pid})
	return nil
}

// isExecError tells faults of the program from faults of our way to start it.
func isExecError(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOEXEC) || errors.Is(err, syscall.E2BIG) || errors.Is(err, syscall.ENOTDIR)
}

// reaper waits for all children: commands, and orphans that they left to us.
func (g *guard) reaper() {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, syscall.ECHILD):
			<-g.born
		case err == nil:
			g.childEnded(pid, ws)
		}
	}
}

func (g *guard) childEnded(pid int, ws syscall.WaitStatus) {
	g.mu.Lock()
	a := g.mains[pid]
	delete(g.mains, pid)
	delete(g.orphans, pid)
	if a == nil && len(g.inflight) > 0 {
		g.early[pid] = earlyEnd{ws, g.forks}
	}
	g.mu.Unlock()
	if a != nil {
		g.mainEnded(a, ws)
	}
}

// mainEnded: the command's own process is over, so is the attempt. Its group dies with it; whatever else it left is looked for
// only if there is a sign of it, since the search reads every process of the machine.
func (g *guard) mainEnded(a *guarded, end any) {
	status := exitOf(end.(syscall.WaitStatus))
	_ = signalGroup(a.pid, syscall.SIGKILL)
	g.mu.Lock()
	delete(g.mains, a.pid)
	if a.done&partMain == 0 {
		a.status = status
	}
	clean := !a.killing && a.reason == "" && !g.leftovers(a)
	if !clean {
		g.kill(a)
	}
	g.mu.Unlock()
	if clean {
		g.over(a, partMain|partTree)
	} else {
		g.over(a, partMain)
	}
}

// leftovers tells whether an ended command may have left processes behind; mu is held. Orphans that are known to be another
// attempt's are none: else one running task with a daemon would cost every short task a search.
func (g *guard) leftovers(a *guarded) bool {
	if a.slot != nil && !a.slot.empty() {
		return true
	}
	pids, ok := orphans()
	if !ok {
		return true
	}
	return slices.ContainsFunc(pids, func(pid int) bool {
		owner, known := g.orphans[pid]
		return !known || owner == a.x
	})
}

// sweep kills an attempt's processes once. It returns those that were still there, and whether the command's own process has
// not been reaped. A wide search does not rely on all of them being descendants of the guard.
func (g *guard) sweep(a *guarded, wide bool) (left []int, main bool) {
	g.mu.Lock()
	main = a.done&partMain == 0
	g.mu.Unlock()
	a.slot.kill()
	if main {
		_ = signalGroup(a.pid, syscall.SIGKILL)
	}
	g.forking.Lock()
	procs, err := listProcs()
	g.mu.Lock()
	mains := make(map[int]bool, len(g.mains))
	for pid := range g.mains {
		mains[pid] = true
	}
	g.mu.Unlock()
	g.forking.Unlock()
	if err != nil {
		g.log.Error("cannot list processes", "error", err)
		return nil, main
	}
	q := treeQuery{
		guard: os.Getpid(), main: a.pid, mains: mains, adopt: true, wide: wide,
		marked:  func(pid int) bool { return hasMark(pid, a.launch.Mark) },
		claimed: func(pid int) bool { return claimOf(pid, markPrefix(g.cfg.dir)) != "" },
	}
	for _, p := range sweepTree(q, procs) {
		left = append(left, p.pid)
	}
	g.learnOrphans(procs, left)
	return left, main
}

// learnOrphans remembers whose the orphans are that a search left alone.
func (g *guard) learnOrphans(procs []procInfo, killed []int) {
	found := map[int]task.ExecutionID{}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range procs {
		if p.ppid != os.Getpid() || g.mains[p.pid] != nil || slices.Contains(killed, p.pid) {
			continue
		}
		if owner := g.mains[p.sid]; owner != nil {
			found[p.pid] = owner.x
		} else if x := claimOf(p.pid, markPrefix(g.cfg.dir)); x != "" {
			found[p.pid] = x
		}
	}
	g.orphans = found
}

// startFailure explains in a person's words why a program that was there did not start.
func startFailure(err error, l *launch) exitRecord {
	switch {
	case errors.Is(err, syscall.ENOENT):
		return exitRecord{Code: 127, StartError: fmt.Sprintf("%s: the program, or the interpreter that its #! line names, is missing (a line end of Windows there has the same effect)", l.Path)}
	case errors.Is(err, syscall.EACCES):
		return exitRecord{Code: 126, StartError: fmt.Sprintf("%s: permission denied (not executable, or no right to enter %s)", l.Path, l.Dir)}
	case errors.Is(err, syscall.ENOEXEC):
		return exitRecord{Code: 126, StartError: fmt.Sprintf("%s: not a program for this machine, or a script without a #! line", l.Path)}
	case errors.Is(err, syscall.E2BIG):
		return exitRecord{Code: 126, StartError: fmt.Sprintf("%s: arguments and environment are too long", l.Path)}
	}
	return exitRecord{Code: 126, StartError: fmt.Sprintf("%s: %v", l.Path, err)}
}

// readNow reads without waiting.
func readNow(fd uintptr, buf []byte) int {
	n, err := syscall.Read(int(fd), buf)
	if err != nil {
		return 0
	}
	return n
}
