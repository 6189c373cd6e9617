package fsm

import "lanjobs/task"

// Booked is what the leases of a node take together (R34). It is derived.
type Booked struct {
	MilliCPU, MemoryMB, DiskMB int
	Big                        int // leases that ask for more than an ordinary attempt
}

// Booked gives what the leases of a node take.
func (s *State) Booked(id task.NodeID) Booked {
	if i, ok := s.nodeAt[id]; ok {
		return s.booked[i]
	}
	return Booked{}
}

// book adds a lease to what its node has booked, or takes it off.
func (s *State) book(l *Lease, sign int) {
	if l == nil {
		return
	}
	r := s.JobBySeq(l.Seq).Spec.Stages[l.Ref.Stage].Resources
	b := s.booked[l.Node]
	if !r.Ordinary() {
		b.Big += sign
	}
	r = r.Booked()
	b.MilliCPU += sign * r.MilliCPU
	b.MemoryMB += sign * r.MemoryMB
	b.DiskMB += sign * r.DiskMB
	if b == (Booked{}) {
		delete(s.booked, l.Node)
		return
	}
	s.booked[l.Node] = b
}
