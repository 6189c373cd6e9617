package plan_test

import (
	"fmt"
	"testing"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

// shop is a board whose machines ask for all that they can hold at every turn.
type shop struct {
	*board
	flight *plan.Flight
}

func newShop(t *testing.T, nodes, slots int) *shop {
	var infos []task.NodeInfo
	for i := range nodes {
		infos = append(infos, task.NodeInfo{ID: task.NodeID(fmt.Sprintf("n%d", i)), Name: fmt.Sprintf("n%d", i), Slots: slots, CPUs: slots})
	}
	return &shop{newBoard(t, infos...), plan.NewFlight()}
}

func (s *shop) view() *plan.View {
	v := &plan.View{State: s.s, Now: s.s.Clock, Self: "leader", Nodes: map[task.NodeID]plan.Presence{}, Flight: s.flight}
	for _, n := range s.s.Nodes() {
		v.Nodes[n.Info.ID] = plan.Presence{Want: n.Info.Slots, Heard: true}
	}
	return v
}

// turn places and applies, and gives the tokens granted by job.
func (s *shop) turn() map[task.JobID][]task.Token {
	s.t.Helper()
	cs := plan.Place(s.view())
	out := map[task.JobID][]task.Token{}
	if len(cs) == 0 {
		return out // a leader writes nothing
	}
	for i, r := range s.apply(cs...) {
		for _, tok := range r.Tokens {
			if tok == 0 {
				s.t.Fatalf("the ledger refused a shard of %+v", cs[i])
			}
			out[cs[i].(*fsm.Grant).Job] = append(out[cs[i].(*fsm.Grant).Job], tok)
		}
	}
	return out
}

// end lets an attempt succeed.
func (s *shop) end(tok task.Token) {
	s.t.Helper()
	l := s.s.Lease(tok)
	s.apply(&fsm.Report{Node: s.s.NodeByPlace(l.Node).Info.ID, Reports: []task.Report{{Job: l.Ref.Job, Stage: l.Ref.Stage, Shard: l.Ref.Shard, Token: tok, Outcome: task.Outcome{End: task.EndExited}}}})
}

func active(s *fsm.State, id task.JobID) int {
	n := 0
	for i := range s.Job(id).Stages {
		n += s.Job(id).Stages[i].Active()
	}
	return n
}

func TestABigJobDoesNotStarveASmallOne(t *testing.T) {
	s := newShop(t, 10, 4)
	s.submit("big", simStage("s", 100_000, 300_000), 50)
	running := s.turn()["big"]
	if len(running) != 40 {
		t.Fatalf("alone it gets %d of 40", len(running))
	}
	s.submit("small", simStage("s", 1, 300_000), 50)
	s.end(running[0])
	if got := s.turn(); len(got["small"]) != 1 || len(got["big"]) != 0 {
		t.Fatalf("the first free slot went to %v", got)
	}
	s.submit("big2", simStage("s", 100_000, 300_000), 50)
	for _, tok := range running[1:39] {
		s.end(tok)
		s.turn()
		if a, b := active(s.s, "big"), active(s.s, "big2"); b < 20 && b > a {
			t.Fatalf("big %d, big2 %d", a, b)
		}
	}
	if a, b := active(s.s, "big"), active(s.s, "big2"); a+b != 39 || a-b > 1 || b-a > 1 {
		t.Fatalf("two big jobs share 39 slots as %d and %d", a, b)
	}
}

func TestManySmallJobsDoNotStarveABigOne(t *testing.T) {
	s := newShop(t, 3, 2)
	s.submit("big", simStage("s", 1000, 300_000), 50)
	running := []task.Token{}
	for _, toks := range s.turn() {
		running = append(running, toks...)
	}
	done := 0
	for i := range 300 {
		s.submit(fmt.Sprintf("small%d", i), simStage("s", 1, 300_000), 50)
		if s.s.Lease(running[0]).Ref.Job == "big" {
			done++
		}
		s.end(running[0])
		running = running[1:]
		for _, toks := range s.turn() {
			running = append(running, toks...)
		}
		if active(s.s, "big") == 0 {
			t.Fatalf("after %d small jobs nothing of the big one runs", i)
		}
	}
	if done < 40 {
		t.Errorf("the big job did %d of 300 turns, a fair share of 6 slots is about 50", done)
	}
}

func TestPriorityComesBeforeFairness(t *testing.T) {
	s := newShop(t, 2, 2)
	s.submit("low", simStage("s", 10, 300_000), 10)
	s.submit("high", simStage("s", 10, 300_000), 90)
	if got := s.turn(); len(got["high"]) != 4 {
		t.Fatalf("%v", got)
	}
}

// A plan looks at a bounded number of jobs, yet what stands behind many that no machine fits gets its turn.
func TestBlockedJobsDoNotHideOthers(t *testing.T) {
	s := newShop(t, 2, 2)
	blocked := simStage("s", 1, 300_000)
	blocked.Require = []task.Requirement{{Label: "gpu", Op: task.OpExists}}
	for i := range 3000 {
		s.submit(fmt.Sprintf("blocked%d", i), blocked, 50)
	}
	s.submit("free", simStage("s", 1, 300_000), 50)
	for plans := 1; ; plans++ {
		if got := s.turn(); len(got["free"]) == 1 {
			if plans < 3 {
				t.Errorf("placed by plan %d: then a plan looks at all", plans)
			}
			break
		}
		if !s.flight.More() {
			t.Fatalf("after %d plans it is neither placed nor to be looked at again", plans)
		}
	}
	for range 20 {
		if s.turn(); !s.flight.More() {
			return
		}
	}
	t.Error("the plan never comes to rest")
}

func TestWeightsGoFirst(t *testing.T) {
	s := newShop(t, 1, 2)
	st := simStage("s", 5, 300_000)
	st.Weights = []int{1, 9, 1, 7, 1}
	s.submit("j", st, 50)
	cs := plan.Place(s.view())
	if g := cs[0].(*fsm.Grant); len(cs) != 1 || fmt.Sprint(g.Shards) != "[1 3]" {
		t.Fatalf("%+v", g)
	}
}
