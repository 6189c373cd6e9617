//go:build !linux

package runner

import "runtime"

// cgroupPool exists on Linux only; elsewhere it is always nil.
type cgroupPool struct{ dir string }

type cgroupSlot struct{ limits limits }

func openCgroupBase() cgroupBase { return cgroupBase{why: runtime.GOOS + " has no control groups"} }

func (b cgroupBase) sweep() {}

func openCgroups(_, _ string) *cgroupPool { return nil }

func (p *cgroupPool) getLimited(limits) (*cgroupSlot, error) { return nil, nil }

func (p *cgroupPool) put(*cgroupSlot) {}
func (p *cgroupPool) close(func())    {}

func (s *cgroupSlot) oomKilled() int { return 0 }

func removeCgroup(string, func()) {}
