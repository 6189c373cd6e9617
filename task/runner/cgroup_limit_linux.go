package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// getLimited makes a group with limits, nil if there are none to set. An error means that they cannot be set, and comes with a
// group as get gives it.
func (p *cgroupPool) getLimited(l limits) (*cgroupSlot, error) {
	if p == nil || !p.limited || l == (limits{}) {
		return p.get(), nil
	}
	s, err := p.makeLimited(l)
	if err != nil {
		return p.get(), err
	}
	return s, nil
}

func (p *cgroupPool) makeLimited(l limits) (*cgroupSlot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken {
		return nil, errors.New("control groups are not used any more")
	}
	dir := p.dir + limitedSuffix
	switch err := os.Mkdir(dir, 0o755); {
	case err == nil:
		if why := takeEach(filepath.Join(dir, "cgroup.subtree_control"), words(filepath.Join(dir, "cgroup.controllers"))); why != "" {
			return nil, errors.Join(errors.New(why), unix.Rmdir(dir))
		}
	case !errors.Is(err, fs.ErrExist):
		return nil, err
	}
	p.made++
	s, err := makeSlot(filepath.Join(dir, "c"+strconv.Itoa(p.made)))
	if err != nil {
		return nil, err
	}
	s.limits = l
	if err := s.limit(l); err != nil {
		s.release()
		return nil, errors.Join(err, unix.Rmdir(s.dir))
	}
	return s, nil
}

// oomKilled counts the processes that the kernel killed in a group because it reached its limit.
func (s *cgroupSlot) oomKilled() int {
	fields := words(filepath.Join(s.dir, "memory.events"))
	if i := slices.Index(fields, "oom_kill"); i >= 0 && i+1 < len(fields) {
		n, err := strconv.Atoi(fields[i+1])
		if err == nil {
			return n
		}
	}
	return 0
}

// limit sets the limits of a new group as far as there are controllers for them.
func (s *cgroupSlot) limit(l limits) error {
	set := func(file, value string, must bool) error {
		err := os.WriteFile(filepath.Join(s.dir, file), []byte(value), 0)
		if err != nil && (must || !errors.Is(err, fs.ErrNotExist)) {
			return fmt.Errorf("%s: %w", file, reason(err))
		}
		return nil
	}
	has := words(filepath.Join(s.dir, "cgroup.controllers"))
	var errs []error
	if l.MemoryMB > 0 && slices.Contains(has, "memory") {
		errs = append(errs, set("memory.max", strconv.FormatInt(int64(l.MemoryMB)<<20, 10), true),
			set("memory.swap.max", "0", false), // a kernel without swap has no such file
			set("memory.oom.group", "1", false))
	}
	if l.MilliCPU > 0 && slices.Contains(has, "cpu") {
		const period = 100_000 // µs
		errs = append(errs, set("cpu.max", fmt.Sprintf("%d %d", max(l.MilliCPU*period/1000, 1000), period), true))
	}
	if slices.Contains(has, "pids") {
		errs = append(errs, set("pids.max", strconv.Itoa(maxProcesses), true))
	}
	return errors.Join(errs...)
}
