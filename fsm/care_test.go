package fsm

import (
	"fmt"
	"testing"

	"lanjobs/task"
)

// caring is a registration whose crashes count.
func caring(id string, incarnation uint64, crashes int) *RegisterNode {
	c := node(id, incarnation)
	c.Caring, c.Crashes = true, crashes
	return c
}

// care makes a command of level 3.
func (w *world) care() Command {
	id := w.node()
	switch w.Intn(7) {
	case 0:
		return &SetOnline{Node: id, Online: w.one(2), Reason: pick(w, task.ReasonAsleep, "silent"), Caring: true}
	case 1:
		return &SetNode{Node: id, Action: pick(w, NodeClear, NodePromote, NodeDemote, NodeAuto), By: "me"}
	case 2:
		return &CreateToken{ID: pick(w, "t1", "t2"), Hash: []byte(pick(w, "h1", "h2")), TTL: task.Hour, Uses: 1 + w.Intn(2), By: "me",
			Role: pick(w, RoleViewer, RoleOperator, RoleAdmin, "king")}
	case 3, 4:
		return &AdmitClient{TokenHash: []byte(pick(w, "h1", "h2")), ID: pick(w, "c1", "c2"), Name: "anna@laptop", Key: []byte(pick(w, "k1", "k2"))}
	case 5:
		return &RemoveClient{ID: pick(w, "c1", "c2"), By: "me"}
	}
	c := w.register().(*RegisterNode)
	c.Caring, c.Crashes = true, w.Intn(3)
	return c
}

func TestThreeCrashesInARowMakeANodeUnstable(t *testing.T) {
	l := newLedger(t)
	l.ok(0, caring("a", 1, 0))
	state := func() Care { return l.s.Node("a").Care }
	l.ok(0, caring("a", 2, 1))
	l.ok(0, caring("a", 3, 0)) // ended as told: what was before does not count
	l.ok(0, caring("a", 4, 1))
	l.ok(0, caring("a", 4, 1)) // a repeat
	l.ok(0, caring("a", 5, 1))
	if c := state(); c.Crashes != 2 || c.Unstable {
		t.Fatalf("%+v", c)
	}
	l.ok(0, caring("a", 6, 1))
	if c := state(); c.Crashes != 3 || !c.Unstable {
		t.Fatalf("%+v", c)
	}
	l.ok(0, caring("a", 7, 0))
	if !state().Unstable {
		t.Fatal("a clean start lifted it")
	}
	l.ok(0, &SetNode{Node: "a", Action: NodeClear, By: "anna"})
	if c := state(); c.Unstable || c.Crashes != 0 {
		t.Fatalf("%+v", c)
	}
	l.ok(0, caring("a", 8, 2)) // twice before it could register
	for range 61 {
		l.ok(MaxElapsed)
	}
	l.ok(0, caring("a", 9, 1)) // after ten calm minutes
	if c := state(); c.Crashes != 1 || c.Unstable {
		t.Fatalf("%+v", c)
	}
}

// started is the law of crashes: three in a row, with no clean start and no ten calm minutes between.
func (n *mNode) started(led task.Millis, crashes int) {
	last := task.Millis(-1)
	if len(n.starts) > 0 {
		last = n.starts[len(n.starts)-1].at
	}
	if crashes == 0 || last >= 0 && led-last >= 10*task.Minute {
		n.starts = nil
	}
	n.starts = append(n.starts, mStart{led, crashes})
	n.unstable = n.unstable || n.crashes() >= 3
}

func (n *mNode) crashes() (sum int) {
	for _, s := range n.starts {
		sum += s.crashes
	}
	return sum
}

func (m *model) admitClient(c *AdmitClient) bool {
	j := m.joins[string(c.TokenHash)]
	if j == nil || j.until <= m.led || j.role == "" {
		return false
	}
	if k, there := m.clients[c.ID]; there {
		return k.key == string(c.Key) && k.token == j.id
	}
	if j.uses == 0 {
		return false
	}
	j.uses--
	m.clients[c.ID] = mClient{string(c.Key), j.id, j.role}
	return true
}

func (m *model) compareCare(s *State) error {
	if len(s.Clients()) != len(m.clients) {
		return fmt.Errorf("%d clients, model %d", len(s.Clients()), len(m.clients))
	}
	for id, want := range m.clients {
		if c := s.Client(id); c == nil || c.Role != want.role || string(c.Key) != want.key {
			return fmt.Errorf("client %s: %+v, model %+v", id, c, want)
		}
	}
	for id, want := range m.nodes {
		c := s.Node(id).Care
		if c.Unstable != want.unstable || c.Crashes != want.crashes() || c.Seat != want.seat {
			return fmt.Errorf("node %s: %+v, model %+v", id, c, want)
		}
	}
	return nil
}

func TestPresenceIsTheShareOfTheLastWeeks(t *testing.T) {
	l := newLedger(t)
	l.ok(0, caring("a", 1, 0), caring("b", 1, 0))
	online := func(id task.NodeID, on bool) *SetOnline { return &SetOnline{Node: id, Online: on, Caring: true} }
	for range 20 { // days: b is here 6 hours a day, a all the time but an hour
		l.idle(6 * task.Hour)
		l.ok(0, online("b", false))
		l.idle(17 * task.Hour)
		l.ok(0, online("a", false))
		l.idle(task.Hour)
		l.ok(0, online("a", true), online("b", true))
	}
	a, b := l.s.Node("a").Presence(l.s.Led), l.s.Node("b").Presence(l.s.Led)
	if a < 0.9 || a > 0.95 || b < 0.2 || b > 0.3 {
		t.Errorf("a %.3f, b %.3f", a, b)
	}
	for range 14 { // what is old counts less: a is gone for two weeks
		l.ok(0, online("a", false))
		l.idle(task.Day)
		l.ok(0, online("a", false))
	}
	if p := l.s.Node("a").Presence(l.s.Led); p > 0.6 {
		t.Errorf("after two weeks of absence: %.3f", p)
	}
	if care := l.s.Node("a").Care; care.Present+care.Absent > presenceMemory {
		t.Errorf("%+v", care)
	}
}

// idle lets the cluster lead for so long without a write.
func (l *ledger) idle(d task.Millis) {
	l.t.Helper()
	l.i++
	if _, _, err := l.s.Apply(l.i, (&Batch{Idle: d, Leader: "n1"}).Encode()); err != nil {
		l.t.Fatal(err)
	}
}
