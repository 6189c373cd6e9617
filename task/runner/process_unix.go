//go:build unix

package runner

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lanjobs/task"
)

// procInfo is one process of this machine.
type procInfo struct {
	pid, ppid, pgrp, sid int
	start                uint64 // the kernel's mark of when it began; tells two users of one pid apart
}

// treeQuery asks which processes belong to one attempt. A command can hide from any single mark (a new session, a cleaned
// environment, a dead parent), so all of them are looked at.
type treeQuery struct {
	guard int          // all attempts' orphans become its children; 0 = it is dead
	main  int          // the command's own process, which leads a session and a group of the same number; 0 = unknown
	mains map[int]bool // the own processes of all running commands
	// adopt: an orphan under the guard that nothing ties to another attempt is taken for this one's. Only the guard knows enough
	// to say so.
	adopt bool
	// wide also looks at processes that are nobody's descendants, which costs a look into each one's environment.
	wide    bool
	marked  func(pid int) bool // carries this attempt's mark in its environment
	claimed func(pid int) bool // carries some attempt's mark
}

// belonging picks an attempt's processes out of all. It is pure but for the two questions about environments, which are
// asked as seldom as possible.
func belonging(procs []procInfo, q treeQuery) []procInfo {
	byPid := make(map[int]procInfo, len(procs))
	for _, p := range procs {
		byPid[p.pid] = p
	}
	self := os.Getpid()
	var out []procInfo
	for _, p := range procs {
		if p.pid != self && p.pid != q.guard && p.pid > 1 && q.owns(p, byPid) {
			out = append(out, p)
		}
	}
	return out
}

func (q treeQuery) owns(p procInfo, byPid map[int]procInfo) bool {
	if q.main != 0 && (p.pid == q.main || p.sid == q.main || p.pgrp == q.main) {
		return true
	}
	root, main, under := q.ancestry(p, byPid)
	switch {
	case main != 0:
		return main == q.main
	case !under:
		return q.wide && q.marked(p.pid)
	case q.mains[p.sid] || q.mains[root.sid]:
		return false
	case q.marked(p.pid) || q.marked(root.pid):
		return true
	}
	return q.adopt && !q.claimed(p.pid) && !q.claimed(root.pid)
}

// ancestry climbs from p: to the own process of a running command (main), or to the guard; root is the guard's child on the way.
func (q treeQuery) ancestry(p procInfo, byPid map[int]procInfo) (root procInfo, main int, under bool) {
	for range 1000 { // the list is no snapshot: parents may seem to form a ring
		if q.mains[p.pid] {
			return p, p.pid, true
		}
		if q.guard != 0 && p.ppid == q.guard {
			return p, 0, true
		}
		next, ok := byPid[p.ppid]
		if !ok || p.ppid <= 1 {
			break
		}
		p = next
	}
	return p, 0, false
}

// killAll sends SIGKILL to each of them that is still the process it was when it was listed.
func killAll(procs []procInfo) {
	for _, p := range procs {
		killExact(p)
	}
}

// sweepTree kills what belongs to an attempt and returns what was still alive.
func sweepTree(q treeQuery, procs []procInfo) []procInfo {
	left := belonging(procs, q)
	killAll(left)
	return left
}

// hasMark tells whether a process was started with this entry in its environment.
func hasMark(pid int, mark string) bool {
	env, err := readEnviron(pid)
	return err == nil && containsEntry(env, mark)
}

// claimOf gives the execution whose mark, of this runner's folder, a process carries.
func claimOf(pid int, prefix string) task.ExecutionID {
	env, err := readEnviron(pid)
	if err != nil {
		return ""
	}
	if !strings.HasPrefix(env, prefix) {
		_, env, _ = strings.Cut(env, "\x00"+prefix)
		env = prefix + env
	}
	x, _, _ := strings.Cut(strings.TrimPrefix(env, prefix), "\x00")
	return task.ExecutionID(x)
}

// containsEntry: no mark is nobody's, an empty environment included.
func containsEntry(env, mark string) bool {
	return mark != "" && (strings.HasPrefix(env, mark+"\x00") || strings.Contains(env, "\x00"+mark+"\x00") ||
		env == mark || strings.HasSuffix(env, "\x00"+mark))
}

// signalGroup sends a signal to the process group of a command.
func signalGroup(pid int, sig syscall.Signal) error {
	err := unix.Kill(-pid, sig)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// exitOf translates how the kernel says that a process ended.
func exitOf(ws syscall.WaitStatus) exitRecord {
	if ws.Signaled() {
		return exitRecord{Signal: int(ws.Signal())}
	}
	return exitRecord{Code: ws.ExitStatus()}
}

// startChild forks and executes. Its working directory and program were checked before; what fails all the same is explained.
func startChild(l *launch, files []uintptr, attr *syscall.SysProcAttr, pause func(time.Duration)) (int, error) {
	for try := 0; ; try++ {
		pid, err := syscall.ForkExec(l.Path, l.Args, &syscall.ProcAttr{Dir: l.Dir, Env: l.Env, Files: files, Sys: attr})
		// Some process that was forked at the wrong moment may still hold a just written script open (golang/go#22315).
		if errors.Is(err, syscall.ETXTBSY) && try < 20 {
			pause(time.Duration(try+1) * time.Millisecond)
			continue
		}
		return pid, err
	}
}
