package plan

import (
	"fmt"
	"strconv"

	"lanjobs/fsm"
	"lanjobs/task"
)

// claim is what attempts take on a machine. slots is their number: an attempt that asks for no more than the default, one
// processor and nothing else, is ordinary, and how many of those a machine runs its owner says by its slots. Bigger ones are
// booked, and where one is, everything beside it is.
type claim struct {
	slots    int
	milliCPU int
	memoryMB int
	diskMB   int
	big      int // attempts of slots that are not ordinary
	stated   int // attempts of slots that say how much of the processors they need
}

// claimOf is what one attempt of a stage takes.
func claimOf(spec *task.StageSpec) claim {
	r := spec.Resources.Booked()
	c := claim{slots: 1, milliCPU: r.MilliCPU, memoryMB: r.MemoryMB, diskMB: r.DiskMB}
	if !spec.Resources.Ordinary() {
		c.big = 1
	}
	if spec.Resources.MilliCPU > 0 {
		c.stated = 1
	}
	return c
}

func (c claim) times(n int) claim {
	return claim{c.slots * n, c.milliCPU * n, c.memoryMB * n, c.diskMB * n, c.big * n, c.stated * n}
}

func (c claim) plus(o claim) claim {
	return claim{c.slots + o.slots, c.milliCPU + o.milliCPU, c.memoryMB + o.memoryMB, c.diskMB + o.diskMB, c.big + o.big, c.stated + o.stated}
}

func (c *claim) add(o *claim) {
	c.slots += o.slots
	c.milliCPU += o.milliCPU
	c.memoryMB += o.memoryMB
	c.diskMB += o.diskMB
	c.big += o.big
	c.stated += o.stated
}

// booked is what a node's leases take by the ledger.
func booked(s *fsm.State, id task.NodeID) claim {
	b := s.Booked(id)
	return claim{slots: s.Held(id), milliCPU: b.MilliCPU, memoryMB: b.MemoryMB, diskMB: b.DiskMB, big: b.Big}
}

// lacking is the resource of which a machine has too little for one more attempt; what it has to give and what is taken of
// that are in thousandths of a processor or MiB. "" = it has enough, or nothing is known of it.
//
// A big attempt that does not say how much of the processors it needs, since it is big in memory or disk, is not kept from any.
//
// What the last heartbeat measured beyond what its leases have booked is of others, and counts as booked too. An attempt that
// has not begun hides as much of that until the next heartbeat. Free disk space is known, the size of the disk is not: what is
// booked and not yet written lies in the free part.
func (m *member) lacking(need *claim) (what string, give, taken int) {
	if need.big == 0 && m.claimed.big == 0 {
		return "", 0, 0
	}
	used := m.claimed
	if m.load != (task.Load{}) {
		used.milliCPU += max(int(m.load.CPU*1000)-m.booked.milliCPU, 0)
		used.memoryMB += max(m.info.MemoryMB-m.load.MemFreeMB-m.booked.memoryMB, 0)
	}
	if give := m.shareOfCPU(); (need.stated > 0 || need.big == 0) && give > 0 && used.milliCPU+need.milliCPU > give {
		return "cpu", give, used.milliCPU
	}
	if give := m.share(m.info.MemoryMB); need.memoryMB > 0 && give > 0 && used.memoryMB+need.memoryMB > give {
		return "memory", give, used.memoryMB
	}
	if give := m.share(m.load.DiskFreeMB); need.diskMB > 0 && give > 0 && used.diskMB+need.diskMB > give {
		return "disk", give, used.diskMB
	}
	return "", 0, 0
}

// reserve is the percentage of a machine that is left free of attempts (R34).
func (m *member) reserve() int {
	switch r := m.info.Reserve; {
	case r < 0:
		return 0
	case r > 0:
		return min(r, 100)
	}
	return task.DefaultReserve
}

// share is what of an amount is given to attempts.
func (m *member) share(amount int) int { return amount - amount*m.reserve()/100 }

// shareOfCPU is that of processors in thousandths, but no less than one whole one: else a small machine could never run what
// asks for one.
func (m *member) shareOfCPU() int { return max(m.share(m.info.CPUs*1000), min(m.info.CPUs, 1)*1000) }

// amount writes what lacking gives for a person: 2 or 1.5 (processors), 512 MiB, 8 GiB.
func amount(what string, n int) string {
	switch {
	case what == "cpu":
		if n >= 1000 { // measured to the thousandth, said to the hundredth
			n = (n + 5) / 10 * 10
		}
		return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64)
	case n >= 1<<10 && n%(1<<10) == 0:
		return strconv.Itoa(n>>10) + " GiB"
	case n >= 10<<10:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<10))
	}
	return strconv.Itoa(n) + " MiB"
}

// of gives the part of a claim that a resource's name stands for.
func (c claim) of(what string) int {
	switch what {
	case "cpu":
		return c.milliCPU
	case "memory":
		return c.memoryMB
	}
	return c.diskMB
}

// enough tells whether nothing is lacking.
func (m *member) enough(need *claim) bool {
	what, _, _ := m.lacking(need)
	return what == ""
}

// diskMB is what an attempt could have at best: what is free now, and what those that run here were promised of it. The size of
// the disk is not known, nor is it of use: the rest is somebody else's.
func (m *member) diskMB() int {
	if m.load.DiskFreeMB == 0 {
		return 0
	}
	return m.load.DiskFreeMB + m.booked.diskMB
}

// tooSmall is the resource of which a machine has less to give, when nothing runs on it, than an attempt asks for; "" = none.
// Ordinary attempts fit everywhere.
func (m *member) tooSmall(need *claim) string {
	if need.big == 0 {
		return ""
	}
	if give := m.shareOfCPU(); need.stated > 0 && give > 0 && need.milliCPU > give {
		return "cpu"
	}
	if give := m.share(m.info.MemoryMB); give > 0 && need.memoryMB > give {
		return "memory"
	}
	if give := m.share(m.diskMB()); give > 0 && need.diskMB > give {
		return "disk"
	}
	return ""
}
