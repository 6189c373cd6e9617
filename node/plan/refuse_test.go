package plan_test

import (
	"testing"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

// TestRefusedQueueIsNotPlaced: a machine whose owner refuses a queue gets nothing of it, however free it is, and the rest of the work as
// before; stages of one shape in two queues are told apart.
func TestRefusedQueueIsNotPlaced(t *testing.T) {
	gpu := task.KV{Name: "gpu", Value: "true"}
	picky := info("picky", gpu)
	picky.Refuses = []string{"heavy"}
	b := newBoard(t, info("a"), picky, info("c", gpu))
	b.queue("heavy", task.BalanceLeastLoaded, 0)
	for _, needs := range [][]task.Requirement{nil, {{Label: "gpu", Op: task.OpEqual, Values: []string{"true"}}}} {
		name := "plain"
		if needs != nil {
			name = "needy"
		}
		light, heavy := simStage("s", 2, 5000), simStage("s", 6, 5000)
		light.Require, heavy.Require = needs, needs
		b.submitTo("heavy", name+"-heavy", heavy)
		b.submitTo("default", name+"-light", light)
	}
	v := &plan.View{State: b.s, Self: "a", Nodes: map[task.NodeID]plan.Presence{"picky": {Want: 100, Heard: true}, "c": {Want: 2, Heard: true}}, Flight: plan.NewFlight()}
	got := map[task.NodeID]map[task.JobID]int{}
	for _, c := range plan.Place(v) {
		g := c.(*fsm.Grant)
		if got[g.Node] == nil {
			got[g.Node] = map[task.JobID]int{}
		}
		got[g.Node][g.Job] += len(g.Shards)
	}
	if got["picky"]["plain-heavy"]+got["picky"]["needy-heavy"] > 0 {
		t.Errorf("picky got %v", got["picky"])
	}
	if got["picky"]["plain-light"] != 2 || got["picky"]["needy-light"] != 2 || got["c"]["plain-heavy"]+got["c"]["needy-heavy"] == 0 {
		t.Errorf("got %v", got)
	}
	for _, r := range plan.Fits(v, "heavy", &b.s.Job("plain-heavy").Spec.Stages[0]) {
		if (r.Kind == plan.KindRefuses) != (r.Node == "picky") {
			t.Errorf("%+v", r)
		}
	}
	for _, r := range plan.Fits(v, "", &b.s.Job("plain-light").Spec.Stages[0]) {
		if r.Kind == plan.KindRefuses {
			t.Errorf("%+v", r)
		}
	}
}
