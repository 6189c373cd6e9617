package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The kernel lets a group limit its children only while no process is in the group itself. So the limits of attempts need a group
// that is ours to empty: one that systemd has delegated, or one in which only lanjobs runs. The unit of a service should say
// Delegate=yes and, where systemd knows it (254), DelegateSubgroup=node; without the latter the node moves itself into a group of
// its own, and then the unit must not have KillMode=process, since systemd could not start a new node beside the old guard.

// nodeGroup is where the node moves itself and its guards to.
const nodeGroup = "lanjobs-node"

// openCgroupBase finds the group and takes the right to set limits below it.
func openCgroupBase() cgroupBase {
	own, ok := ownCgroup()
	if !ok {
		return cgroupBase{why: "this system has no control groups of version 2"}
	}
	b := cgroupBase{dir: own}
	if parent := filepath.Dir(own); filepath.Base(own) == nodeGroup || !systemdUnit(own) && delegated(parent) {
		b.dir = parent // of a unit it would be systemd's, not ours
	}
	b.takeControllers(own)
	return b
}

// takeControllers hands the controllers down to the groups that guards will make.
func (b *cgroupBase) takeControllers(own string) {
	usable := intersect(limitControllers, words(filepath.Join(b.dir, "cgroup.controllers")))
	if len(usable) == 0 {
		b.why = "the control groups of version 2 have no controllers here (memory, cpu, pids)"
		return
	}
	down := filepath.Join(b.dir, "cgroup.subtree_control")
	if b.controllers = intersect(usable, words(down)); len(b.controllers) < len(usable) {
		if b.why = b.vacate(own); b.why != "" {
			return
		}
		b.why = takeEach(down, usable)
		b.controllers = intersect(usable, words(down))
	}
	if b.why == "" && len(b.controllers) < len(limitControllers) {
		b.why = "the control groups of version 2 have only these controllers here: " + strings.Join(usable, ", ")
	}
}

func takeEach(down string, controllers []string) (why string) {
	for _, c := range controllers {
		if err := os.WriteFile(down, []byte("+"+c), 0); err != nil {
			why = fmt.Sprintf("%s: +%s: %v", down, c, reason(err))
		}
	}
	return why
}

// vacate sees to it that no process is in the group itself, and says why not otherwise.
func (b *cgroupBase) vacate(own string) (why string) {
	if _, err := os.Stat(filepath.Join(b.dir, "cgroup.type")); errors.Is(err, fs.ErrNotExist) {
		return "" // the root of all groups may have processes
	}
	if b.dir != own {
		return "" // nobody's but ours, and we are in a group below
	}
	if systemdUnit(own) && !delegated(own) {
		return fmt.Sprintf("systemd has not delegated the control group of %s (Delegate=yes in the unit of a service)", filepath.Base(own))
	}
	leaf := filepath.Join(own, nodeGroup)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Sprintf("no right to make control groups in %s: %v", own, reason(err))
	}
	moved, why := moveAll(own, leaf)
	if why != "" {
		for _, pid := range moved {
			_ = os.WriteFile(filepath.Join(own, "cgroup.procs"), []byte(pid), 0)
		}
		_ = unix.Rmdir(leaf)
	}
	return why
}

// moveAll moves the processes of a group if all of them are lanjobs'; nobody else's shell is touched.
func moveAll(from, to string) (moved []string, why string) {
	for range 10 { // one of them may just have forked
		pids := words(filepath.Join(from, "cgroup.procs"))
		if len(pids) == 0 {
			return moved, ""
		}
		for _, pid := range pids {
			if !ourProgram(pid) {
				return moved, "other programs run in its control group " + from
			}
			err := os.WriteFile(filepath.Join(to, "cgroup.procs"), []byte(pid), 0)
			if err != nil && !errors.Is(err, syscall.ESRCH) {
				return moved, fmt.Sprintf("process %s cannot be moved to %s: %v", pid, to, reason(err))
			}
			moved = append(moved, pid)
		}
	}
	return moved, "processes come and go in its control group " + from
}

// ourProgram tells whether a process runs the program that we are, of whatever version.
func ourProgram(pid string) bool {
	theirs, err := os.Readlink("/proc/" + pid + "/exe")
	ours, err2 := os.Readlink("/proc/self/exe")
	name := func(path string) string { return filepath.Base(strings.TrimSuffix(path, " (deleted)")) }
	return err == nil && err2 == nil && name(theirs) == name(ours)
}

// systemdUnit tells whether systemd made a group.
func systemdUnit(dir string) bool {
	return slices.Contains([]string{".service", ".scope", ".slice"}, filepath.Ext(dir))
}

// delegated: systemd marks the groups that it leaves to others.
func delegated(dir string) bool {
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		var value [8]byte
		if n, err := unix.Getxattr(dir, name, value[:]); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// sweep removes what dead guards left in the group: each living one holds a lock on its own. Nothing is killed here, a
// group that still holds a process stays; a dead guard of this node is buried with its processes by its journal.
func (b cgroupBase) sweep() {
	if b.dir == "" {
		return
	}
	groups, err := filepath.Glob(filepath.Join(b.dir, cgroupPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range groups {
		if filepath.Base(dir) == nodeGroup {
			continue
		}
		lock, err := lockDir(strings.TrimSuffix(dir, limitedSuffix))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		removeEmpty(dir)
		if lock >= 0 {
			_ = unix.Close(lock)
		}
	}
}

// removeEmpty removes a guard's group with those of its attempts, as far as nothing is in them.
func removeEmpty(dir string) {
	subs, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, s := range subs {
		if s.IsDir() {
			_ = unix.Rmdir(filepath.Join(dir, s.Name()))
		}
	}
	_ = unix.Rmdir(dir)
}

// lockDir locks a directory as long as the descriptor, which no child gets, is open; -1 with an error.
func lockDir(dir string) (int, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// words reads a small file of the kernel.
func words(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}

// intersect keeps the order of the first.
func intersect(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}
