package runner

import (
	"bytes"
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"

	"lanjobs/task"
)

const zombieState = 5 // SZOMB of sys/proc.h

func listProcs() ([]procInfo, error) {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	out := make([]procInfo, 0, len(all))
	for _, k := range all {
		if k.Proc.P_stat == zombieState {
			continue
		}
		pid := int(k.Proc.P_pid)
		sid, err := unix.Getsid(pid)
		if err != nil {
			continue
		}
		began := k.Proc.P_starttime
		out = append(out, procInfo{pid: pid, ppid: int(k.Eproc.Ppid), pgrp: int(k.Eproc.Pgid), sid: sid,
			start: uint64(began.Sec)*1_000_000 + uint64(began.Usec)})
	}
	return out, nil
}

// bornAfter is not known here: the kernel tells when a process began by the wall clock.
func bornAfter(procInfo, task.Boot) bool { return false }

// isZombie is not asked here: launchd reaps at once.
func isZombie(int) bool { return false }

// readEnviron gives what the kernel keeps of a process of the same user: argc, path, arguments and environment, each ending
// with a zero byte. Arguments before the environment do no harm: a mark is a whole entry with the runner's folder in it.
func readEnviron(pid int) (string, error) {
	b, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(b) < 4 {
		return "", err
	}
	rest := b[4:]
	argc := int(binary.NativeEndian.Uint32(b))
	_, rest, _ = bytes.Cut(rest, []byte{0}) // path
	rest = bytes.TrimLeft(rest, "\x00")
	for ; argc > 0 && len(rest) > 0; argc-- {
		_, rest, _ = bytes.Cut(rest, []byte{0})
	}
	return string(rest), nil
}

// killExact: macOS has no handle for a foreign process; the list is a moment old, and pids are not reused so soon.
func killExact(p procInfo) { _ = unix.Kill(p.pid, unix.SIGKILL) }

// orphans go to launchd on macOS: they are found by group, session and environment instead.
func orphans() (pids []int, ok bool) { return nil, false }

func becomeReaper() error { return nil }

func normalOOMScore() error { return nil }

func oomKills() (uint64, bool) { return 0, false }

func commandAttr(_ *cgroupSlot, u *taskUser) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Credential: u.credential()}
}

func threadID() int { return 0 }
