//go:build !linux

package runner

// cgroupPool exists on Linux only; elsewhere it is always nil.
type cgroupPool struct{ dir string }

type cgroupSlot struct{}

func openCgroups(string) *cgroupPool { return nil }

func (p *cgroupPool) get() *cgroupSlot { return nil }
func (p *cgroupPool) put(*cgroupSlot)  {}
func (p *cgroupPool) close(func())     {}

func removeCgroup(string, func()) {}
