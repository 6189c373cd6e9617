package fsm

import "lanjobs/task"

const (
	// calmAfter: a node that has been registered for so long has recovered from the crashes before.
	calmAfter = 10 * task.Minute
	// presenceMemory is about how far back the presence of a node counts.
	presenceMemory = 14 * task.Day
)

// started notes a new start of a node and judges its crashes (R45).
func (n *Node) started(s *State, crashes int) {
	c := &n.Care
	if crashes == 0 || s.Led-c.Registered >= calmAfter {
		c.Crashes = 0
	}
	c.Crashes += min(max(crashes, 0), maxRetries)
	c.Crashes = min(c.Crashes, maxRetries)
	c.Registered = s.Led
	if c.Crashes >= task.UnstableAfter && !c.Unstable {
		c.Unstable = true
		s.emit(task.Event{Kind: task.EventNodeUnstable, Node: n.Info.ID, NodeName: n.Info.Name, Reason: itoa(c.Crashes) + " crashes in a row"})
	}
}

// count notes how long a node was online or not, up to now. It is called before Online changes.
func (n *Node) count(s *State) {
	c := &n.Care
	span := s.Led - c.Changed
	if c.Changed == 0 {
		span = 0 // nothing is known of the time before
	}
	c.Changed = s.Led
	if n.Online {
		c.Present += span
	} else {
		c.Absent += span
	}
	for c.Present+c.Absent > presenceMemory {
		c.Present, c.Absent = c.Present/2, c.Absent/2
	}
}

// presencePrior is the time that a node is assumed to have been watched before, half of it online: of a new one little is known.
const presencePrior = task.Day

// Presence is the share of the last weeks of led time in which a node was online, 0 to 1; one half where nothing is known.
func (n *Node) Presence(led task.Millis) float64 {
	present, absent := n.Care.Present, n.Care.Absent
	if n.Care.Changed > 0 && n.Online {
		present += led - n.Care.Changed
	} else if n.Care.Changed > 0 {
		absent += led - n.Care.Changed
	}
	return float64(present+presencePrior/2) / float64(present+absent+presencePrior)
}

func (c *Care) encode(e *enc) {
	e.str(string(c.Seat))
	e.num(c.Crashes)
	e.bool(c.Unstable)
	e.i64(int64(c.Registered))
	e.i64(int64(c.Present))
	e.i64(int64(c.Absent))
	e.i64(int64(c.Changed))
}

func (c *Care) decode(d *dec) {
	*c = Care{Seat: NodeAction(d.str()), Crashes: d.num(), Unstable: d.bool(), Registered: task.Millis(d.i64()),
		Present: task.Millis(d.i64()), Absent: task.Millis(d.i64()), Changed: task.Millis(d.i64())}
	if c.Present < 0 || c.Absent < 0 || c.Present > 2*presenceMemory || c.Absent > 2*presenceMemory || c.Crashes < 0 {
		d.fail()
	}
}
