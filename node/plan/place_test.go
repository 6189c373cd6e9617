package plan_test

import (
	"encoding/json"
	"testing"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

// board is a ledger with nodes a and b, a leading, for tests of one plan.
type board struct {
	t *testing.T
	s *fsm.State
	n uint64
}

func newBoard(t *testing.T, nodes ...task.NodeInfo) *board {
	b := &board{t: t, s: fsm.New()}
	for _, n := range nodes {
		b.apply(&fsm.RegisterNode{Info: n, Incarnation: 1})
	}
	return b
}

func (b *board) apply(cs ...fsm.Command) []fsm.Result {
	b.t.Helper()
	b.n++
	res, _ := b.s.ApplyBatch(b.n, &fsm.Batch{Leader: "a", Commands: cs})
	for _, r := range res {
		if r.Err != nil {
			b.t.Fatal(r.Err)
		}
	}
	return res
}

func (b *board) submit(id string, stage task.StageSpec, priority int) {
	b.submitSpec(id, task.Spec{Queue: "default", Priority: priority, Stages: []task.StageSpec{stage}})
}

func (b *board) submitTo(queue, id string, stage task.StageSpec) {
	b.submitSpec(id, task.Spec{Queue: queue, Priority: 50, Stages: []task.StageSpec{stage}})
}

func (b *board) submitSpec(id string, spec task.Spec) {
	b.t.Helper()
	spec.Name, spec.Retain = id, task.Day
	data, _ := json.Marshal(spec)
	b.apply(&fsm.SubmitJob{RequestID: task.RequestID(id), Job: task.JobID(id), Spec: data, Digest: data})
}

// place plans with every node asking for want shards.
func (b *board) place(want int, flight *plan.Flight) map[task.NodeID][]int {
	v := &plan.View{State: b.s, Self: "a", Nodes: map[task.NodeID]plan.Presence{}, Flight: flight}
	for _, n := range b.s.Nodes() {
		v.Nodes[n.Info.ID] = plan.Presence{Want: want, Heard: true}
	}
	out := map[task.NodeID][]int{}
	for _, c := range plan.Place(v) {
		g := c.(*fsm.Grant)
		out[g.Node] = append(out[g.Node], g.Shards...)
	}
	return out
}

func info(id string, labels ...task.KV) task.NodeInfo {
	return task.NodeInfo{ID: task.NodeID(id), Name: id, Slots: 4, CPUs: 4, Labels: labels}
}

func TestWhatIsInFlightIsNotGrantedAgain(t *testing.T) {
	b := newBoard(t, info("a"), info("b"), info("c"))
	b.submit("j", simStage("s", 3, 5000), 50)
	f := plan.NewFlight()
	first := b.place(4, f)
	if len(first["b"])+len(first["c"]) != 3 {
		t.Fatalf("%v", first)
	}
	for node, shards := range first {
		f.Add(b.s.Job("j"), &fsm.Grant{Node: node, Job: "j", Shards: shards})
	}
	if again := b.place(4, f); len(again) != 0 {
		t.Fatalf("granted again: %v", again)
	}
}

func TestShardsSpreadOverTheMachinesWithRoom(t *testing.T) {
	b := newBoard(t, info("a"), info("b"), info("c"))
	b.submit("j", simStage("s", 4, 5000), 50)
	got := b.place(4, plan.NewFlight())
	if len(got["b"]) != 2 || len(got["c"]) != 2 {
		t.Fatalf("%v", got)
	}
}

func TestTheLeaderWorksIfNobodyElseFits(t *testing.T) {
	b := newBoard(t, info("a", task.KV{Name: "gpu", Value: "true"}), info("b"))
	st := simStage("s", 2, 5000)
	st.Require = []task.Requirement{{Label: "gpu", Op: task.OpEqual, Values: []string{"true"}}}
	b.submit("j", st, 50)
	if got := b.place(4, plan.NewFlight()); len(got["a"]) != 2 || len(got["b"]) != 0 {
		t.Fatalf("%v", got)
	}
}

func TestHigherPriorityGoesFirstThenAge(t *testing.T) {
	b := newBoard(t, info("a"))
	for id, p := range map[string]int{"low": 10, "high": 90} {
		b.submit(id, simStage("s", 4, 5000), p)
	}
	v := &plan.View{State: b.s, Self: "a", Nodes: map[task.NodeID]plan.Presence{"a": {Want: 4, Heard: true}}, Flight: plan.NewFlight()}
	cs := plan.Place(v)
	if len(cs) != 1 || cs[0].(*fsm.Grant).Job != "high" {
		t.Fatalf("%+v", cs)
	}
}

// C26: a shard that failed somewhere goes elsewhere, and back only if there is no elsewhere.
func TestAFailedShardPrefersAnotherMachine(t *testing.T) {
	for _, others := range []bool{true, false} {
		nodes := []task.NodeInfo{info("b")}
		if others {
			nodes = append(nodes, info("c"))
		}
		b := newBoard(t, nodes...)
		st := simStage("s", 1, 5000)
		st.Retry.Initial, st.Retry.JitterPct = 0, 0
		b.submit("j", st, 50)
		tok := b.apply(&fsm.Grant{Node: "b", Incarnation: 1, Job: "j", Shards: []int{0}})[0].Tokens[0]
		b.apply(&fsm.Report{Node: "b", Reports: []task.Report{{Job: "j", Token: tok, Outcome: task.Outcome{End: task.EndExited, ExitCode: 1}}}})
		got := b.place(4, plan.NewFlight())
		want := task.NodeID("b")
		if others {
			want = "c"
		}
		if len(got[want]) != 1 {
			t.Errorf("with another machine %v: %v", others, got)
		}
	}
}
