package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// cgroupPool gives each running command a control group (version 2) of its own, below the guard's, where the system allows it.
// A group holds everything that was ever started in it, whatever it did to its session, parents or environment, and dies with one
// write. Groups are used again, since making and removing one for each short task would cost more than the task.
//
// A nil pool and a nil slot are valid: then trees are found by searching alone.
type cgroupPool struct {
	dir     string
	lock    int  // on dir, says that its guard lives
	limited bool // groups with limits can be made
	mu      sync.Mutex
	free    []*cgroupSlot
	made    int
	broken  bool
}

// A guard's groups are in cgroupPrefix+id; those of attempts with limits are apart, since having them counted costs all in a group
// a little.
const (
	cgroupPrefix  = "lanjobs-"
	limitedSuffix = "-limited"
)

type cgroupSlot struct {
	dir   string
	fd    int // of the directory, for clone
	procs int // of cgroup.procs, kept open: empty is asked at every end
	// killed: kernels were seen (6.18) that kill whatever is cloned into a group after its cgroup.kill was written once.
	killed atomic.Bool
	// limits that it was made with. Such a group is used once: what it counted belongs to one attempt.
	limits limits
}

// openCgroups makes a guard's group in base, or in its own group if that is "". It returns nil where control groups of version 2
// are missing or not ours to use.
func openCgroups(base, id string) *cgroupPool {
	if base == "" {
		own, ok := ownCgroup()
		if !ok {
			return nil
		}
		base = own
	}
	p := &cgroupPool{dir: filepath.Join(base, cgroupPrefix+id), lock: -1}
	if !p.make() {
		return nil
	}
	p.limited = len(intersect(limitControllers, words(filepath.Join(base, "cgroup.subtree_control")))) > 0
	slot := p.get()
	if slot == nil || !slot.works() {
		p.put(slot)
		p.close(func() {})
		return nil
	}
	p.put(slot)
	return p
}

// make makes the guard's own group and locks it. Another node that starts on this machine just then may take it for a dead guard's
// and remove it before it is locked.
func (p *cgroupPool) make() bool {
	for range 3 {
		if err := os.Mkdir(p.dir, 0o755); err != nil {
			return false
		}
		lock, err := lockDir(p.dir)
		if err == nil {
			if _, err = os.Stat(p.dir); err == nil {
				p.lock = lock
				return true
			}
			_ = unix.Close(lock)
		}
	}
	return false
}

// works tries it once: the right to make a group is not yet the right to start something in it. Nothing else waits for children yet.
func (s *cgroupSlot) works() bool {
	if unix.Access(filepath.Join(s.dir, "cgroup.kill"), unix.W_OK) != nil { // since Linux 5.14
		return false
	}
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", ":"}, &syscall.ProcAttr{Sys: commandAttr(s, nil)})
	if err != nil {
		return false
	}
	var ws syscall.WaitStatus
	_, err = syscall.Wait4(pid, &ws, 0, nil)
	return err == nil && ws.Exited()
}

// ownCgroup is the directory of this process's group.
func ownCgroup() (string, bool) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", false
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", false
	}
	for line := range strings.SplitSeq(string(mounts), "\n") {
		before, after, _ := strings.Cut(line, " - ")
		f := strings.Fields(before) // id, parent, device, root, mount point, …
		if !strings.HasPrefix(after, "cgroup2 ") || len(f) < 5 {
			continue
		}
		for g := range strings.SplitSeq(string(groups), "\n") {
			path, ok := strings.CutPrefix(g, "0::")
			below, inside := strings.CutPrefix(path, strings.TrimSuffix(f[3], "/"))
			if ok && inside {
				return filepath.Join(f[4], below), true
			}
		}
	}
	return "", false
}

func (p *cgroupPool) get() *cgroupSlot {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken {
		return nil
	}
	if n := len(p.free); n > 0 {
		s := p.free[n-1]
		p.free = p.free[:n-1]
		return s
	}
	s, err := makeSlot(filepath.Join(p.dir, "c"+strconv.Itoa(p.made)))
	p.made++
	p.broken = err != nil
	return s
}

func makeSlot(dir string) (*cgroupSlot, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	procs, err := unix.Open(filepath.Join(dir, "cgroup.procs"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &cgroupSlot{dir: dir, fd: fd, procs: procs}, nil
}

// put takes a slot back. One that was killed, or still holds a process that does not die, is not used again.
func (p *cgroupPool) put(s *cgroupSlot) {
	if s == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.empty() && !s.killed.Load() && s.limits == (limits{}) {
		p.free = append(p.free, s)
		return
	}
	s.release()
	_ = unix.Rmdir(s.dir) // busy if it still holds something; close tries again
}

// refuse stops the use of groups for good: the system lets us make them but start nothing in them.
func (p *cgroupPool) refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = true
}

func (p *cgroupPool) close(pause func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = true
	for _, s := range p.free {
		s.release()
	}
	removeCgroup(p.dir, pause)
	if p.lock >= 0 {
		_ = unix.Close(p.lock)
	}
}

func (s *cgroupSlot) release() {
	_ = unix.Close(s.fd)
	_ = unix.Close(s.procs)
}

// empty tells whether no process is in it; one that has ended but is not reaped does not count.
func (s *cgroupSlot) empty() bool {
	var b [16]byte
	n, err := unix.Pread(s.procs, b[:], 0)
	return err == nil && n == 0
}

func (s *cgroupSlot) kill() {
	if s != nil {
		s.killed.Store(true)
		_ = os.WriteFile(filepath.Join(s.dir, "cgroup.kill"), []byte("1"), 0)
	}
}

// removeCgroup kills what is in a guard's groups and removes them. It is tried for a moment, since the killed take one to leave;
// an empty group that stays behind harms nobody.
func removeCgroup(dir string, pause func()) {
	if !strings.HasPrefix(filepath.Base(dir), cgroupPrefix) {
		return
	}
	removeGroups(dir+limitedSuffix, pause)
	removeGroups(dir, pause)
}

func removeGroups(dir string, pause func()) {
	for range 200 {
		subs, err := os.ReadDir(dir)
		if err != nil {
			return
		}
		for _, s := range subs {
			if s.IsDir() {
				sub := filepath.Join(dir, s.Name())
				_ = os.WriteFile(filepath.Join(sub, "cgroup.kill"), []byte("1"), 0)
				_ = unix.Rmdir(sub)
			}
		}
		if unix.Rmdir(dir) == nil {
			return
		}
		pause()
	}
}
