package runner

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lanjobs/task"
)

// listProcs lists all processes but zombies, which do nothing any more and only wait for their parent.
func listProcs() ([]procInfo, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	out := make([]procInfo, 0, len(names))
	buf := make([]byte, 1024)
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if p, ok := readStat("/proc/"+name+"/stat", buf); ok {
			out = append(out, p)
		}
	}
	return out, nil
}

// readStat reads one process; ok is false for zombies and for what is gone.
func readStat(path string, buf []byte) (p procInfo, ok bool) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return p, false
	}
	n, err := unix.Read(fd, buf)
	_ = unix.Close(fd)
	if err != nil || n <= 0 {
		return p, false
	}
	return parseStat(buf[:n])
}

// parseStat: the name in parentheses may hold anything, so fields are counted from the last one.
func parseStat(line []byte) (p procInfo, ok bool) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 1 || end < open {
		return p, false
	}
	f := strings.Fields(string(line[end+1:]))
	if len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return p, false
	}
	p.pid, _ = strconv.Atoi(strings.TrimSpace(string(line[:open])))
	p.ppid, _ = strconv.Atoi(f[1])
	p.pgrp, _ = strconv.Atoi(f[2])
	p.sid, _ = strconv.Atoi(f[3])
	p.start, _ = strconv.ParseUint(f[19], 10, 64)
	return p, p.pid > 0
}

// bornAfter tells whether a process began clearly after a moment. The kernel counts its start from boot, sleep included, in hundredths
// of a second.
func bornAfter(p procInfo, at task.Boot) bool {
	const tick, slack = 10 * time.Millisecond, time.Second
	return time.Duration(p.start)*tick > time.Duration(at)+slack
}

// isZombie: dead, only not yet reaped by whoever is its parent.
func isZombie(pid int) bool {
	_, ok := readStat("/proc/"+strconv.Itoa(pid)+"/stat", make([]byte, 1024))
	return !ok
}

func readEnviron(pid int) (string, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return string(b), err
}

// killExact holds the process by a descriptor while it checks that the pid was not given to another one meanwhile.
func killExact(p procInfo) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ENOSYS) {
		_ = unix.Kill(p.pid, unix.SIGKILL) // a kernel before 5.3; it is gone or it is ours
		return
	}
	if err != nil {
		return
	}
	if now, ok := readStat("/proc/"+strconv.Itoa(p.pid)+"/stat", make([]byte, 1024)); ok && now.start == p.start {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // fails only if it is gone
	}
	_ = unix.Close(fd)
}

// orphans lists what was handed to this process when its parent died, exited ones included. As a subreaper's, orphans go to
// the main thread, while commands are started by other threads (see spawner): so the list costs one small file and no search.
// ok is false where the kernel does not keep such lists.
func orphans() (pids []int, ok bool) {
	self := strconv.Itoa(os.Getpid())
	b, err := os.ReadFile("/proc/self/task/" + self + "/children")
	if err != nil {
		return nil, false
	}
	for _, s := range strings.Fields(string(b)) {
		if pid, err := strconv.Atoi(s); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, true
}

// becomeReaper makes orphans of commands children of this process, however often they forked.
func becomeReaper() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// normalOOMScore takes back a protection from the kernel's memory killer that a service file gave the agent, so that no
// command inherits it (C56). A raised score stays: lowering it needs a right, and it protects the machine.
func normalOOMScore() error {
	const path = "/proc/self/oom_score_adj"
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err != nil || n >= 0 {
		return err
	}
	return os.WriteFile(path, []byte("0"), 0o600)
}

// oomKills counts the processes that the kernel has killed for lack of memory since it started, control groups included.
func oomKills() (uint64, bool) {
	b, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0, false
	}
	_, rest, found := strings.Cut(string(b), "\noom_kill ")
	if !found {
		return 0, false
	}
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
	return n, err == nil
}

// commandAttr: a session and group of its own, and death with the guard as far as the kernel can see to it.
func commandAttr(slot *cgroupSlot, u *taskUser) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Credential: u.credential()}
	if slot != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, slot.fd
	}
	return attr
}

// threadID tells the threads of this process apart.
func threadID() int { return unix.Gettid() }
