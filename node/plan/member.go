package plan

import (
	"slices"

	"lanjobs/fsm"
	"lanjobs/task"
)

// member is one machine of the cluster in one plan: what keeps it from work, and what it has been given so far.
type member struct {
	id      task.NodeID
	node    *fsm.Node
	info    *task.NodeInfo // with the labels set from afar
	load    task.Load
	keeps   Kind    // what keeps it from any work; "" = nothing
	free    int     // assignments it can still take in this plan: it has asked for so many, and has slots for them
	held    int     // leases, and grants in flight and in this plan
	slot    float64 // one of its slots as a share of all
	full    float64 // the share of them that it has given away
	claimed claim
	booked  claim // the part of it that is in the ledger
	bytes   int   // of checkpoints given to it in this plan
	at      int   // its place in the order of first registration
	hash    uint64
}

// members lists the machines in the order of their first registration, which is the same on every leader.
func (v *View) members() []*member {
	nodes := v.State.Nodes()
	var store []member
	if v.Flight != nil { // a plan needs them only until it is made: the next one takes the same
		store = v.Flight.members
	}
	if cap(store) < len(nodes) {
		store = make([]member, len(nodes))
	}
	store = store[:len(nodes)]
	if v.Flight != nil {
		v.Flight.members = store
	}
	out := make([]*member, 0, len(nodes))
	for i, n := range nodes {
		if n.Gone != "" {
			continue
		}
		m := &store[i]
		*m = member{at: i}
		v.judgeNode(m, n)
		out = append(out, m)
	}
	return out
}

// judgeNode works out what a machine can take now: the rules that need no job.
func (v *View) judgeNode(m *member, n *fsm.Node) {
	p := v.Nodes[n.Info.ID]
	m.id, m.node, m.info, m.load = n.Info.ID, n, &n.Info, p.Load
	if len(n.Extra) > 0 {
		info := n.Labelled()
		m.info = &info
	}
	if v.Stranger {
		p = Presence{Want: n.Info.Slots, Heard: true}
	}
	switch {
	case n.Incarnation == 0:
		m.keeps = KindUnborn
	case !n.Online && n.Reason == task.ReasonAsleep:
		m.keeps = KindAsleep
	case !n.Online:
		m.keeps = KindSilent
	case n.Care.Unstable:
		m.keeps = KindUnstable
	case n.Draining:
		m.keeps = KindDraining
	case !p.Heard:
		m.keeps = KindUnheard
	}
	m.booked = booked(v.State, m.id)
	m.claimed = m.booked
	if v.Flight != nil {
		m.claimed = m.claimed.plus(v.Flight.nodes[m.id])
	}
	m.held = m.claimed.slots - p.Ending
	m.slot = 1 / float64(max(m.info.Slots, 1))
	m.full = float64(m.held) * m.slot
	if m.keeps == "" {
		m.free = max(min(p.Want, n.Info.Slots-m.held), 0)
	}
}

// give books one attempt of a stage. data is the length of the checkpoint that goes with it.
func (m *member) give(need *claim, data int) {
	m.free--
	m.held++
	m.full += m.slot
	m.claimed.add(need)
	if m.bytes += data; m.bytes >= MaxPollBytes {
		m.free = 0 // the rest comes with its next poll
	}
}

// seat is a member that fits a stage.
type seat struct {
	*member
	prefers float64 // how many requirements of placement.prefer it meets
}

// fit is which machines a stage may run on, busy or not, in the order of members.
type fit struct {
	need  claim
	seats []seat
}

// asksNothing tells whether a stage may run wherever a member may.
func asksNothing(spec *task.StageSpec) bool {
	return len(spec.Require) == 0 && len(spec.Prefer) == 0 && len(spec.Paths) == 0 && len(spec.Programs) == 0 && !spec.Broadcast && spec.User == "" && spec.AsksShell() == "" &&
		spec.Resources.Booked() == task.Resources{MilliCPU: task.DefaultMilliCPU}
}

// judgeStage works out the same for one stage: what keeps a machine from its shards whatever else happens.
func (v *View) judgeStage(queue string, spec *task.StageSpec, need claim, m *member) Kind {
	switch {
	case len(spec.Require) > 0 && len(task.Unmatched(spec.Require, m.info)) > 0:
		return KindRequire
	case len(m.info.Refuses) > 0 && slices.Contains(m.info.Refuses, queue):
		return KindRefuses
	case m.tooSmall(&need) != "":
		return KindTooSmall
	case m.keeps != "":
		return m.keeps
	case v.Lacks.of(spec, m.id) != "":
		return KindLacks
	}
	return ""
}

// fitting gives the machines for a stage of a job in a queue. The leader's own is one of them only if no other is (R18), or for a broadcast.
func (v *View) fitting(queue string, spec *task.StageSpec, members []*member) *fit {
	f := &fit{need: claimOf(spec), seats: make([]seat, 0, len(members))}
	others := false
	for _, m := range members {
		if v.judgeStage(queue, spec, f.need, m) == "" {
			f.seats = append(f.seats, seat{m, float64(len(spec.Prefer) - len(task.Unmatched(spec.Prefer, m.info)))})
			others = others || m.id != v.Self
		}
	}
	if others && !spec.Broadcast {
		f.seats = slices.DeleteFunc(f.seats, func(s seat) bool { return s.id == v.Self })
	}
	return f
}

// room tells whether a seat can take one more attempt now.
func (f *fit) room(i int) bool { return f.seats[i].room(&f.need) }

// room tells whether a machine can take one more attempt now. Of ordinary ones only the slots count.
func (m *member) room(need *claim) bool {
	return m.free > 0 && (need.big+m.claimed.big == 0 || m.enough(need))
}

func (f *fit) anyRoom() bool {
	for i := range f.seats {
		if f.room(i) {
			return true
		}
	}
	return false
}
