package plan_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

// kinds gives what Explain says, by machine ("" = about all).
func kinds(rs []plan.Reason) map[task.NodeID]plan.Kind {
	out := map[task.NodeID]plan.Kind{}
	for _, r := range rs {
		out[r.Node] = r.Kind
	}
	return out
}

func TestWhyAShardDoesNotRun(t *testing.T) {
	gpu := task.KV{Name: "gpu", Value: "true"}
	needsGPU := simStage("s", 3, 5000)
	needsGPU.Require = []task.Requirement{{Label: "gpu", Op: task.OpEqual, Values: []string{"true"}}}
	asUser := simStage("s", 3, 5000)
	asUser.User, asUser.Require = "anna", []task.Requirement{{Label: task.UserLabel + "anna", Op: task.OpEqual, Values: []string{"true"}}}
	paused, one := true, 1
	narrow := simStage("s", 3, 5000)
	narrow.Parallelism = 1
	for _, c := range []struct {
		name   string
		stage  task.StageSpec
		with   func(b *board, v *plan.View)
		node   task.NodeID
		kind   plan.Kind
		text   string
		change string
	}{
		{"label", needsGPU, nil, "a", plan.KindRequire, "does not meet gpu=true", "lanjobs node label a gpu=true"},
		{"free", needsGPU, nil, "b", "", "has room (0/4): takes it next", ""},
		{"leads", simStage("s", 3, 5000), nil, "leader", plan.KindLeads, "runs nothing while another machine can", ""},
		{"drain", needsGPU, func(b *board, _ *plan.View) { b.apply(&fsm.SetNode{Node: "b", Action: fsm.NodeDrain}) }, "b", plan.KindDraining, "is draining", "lanjobs node resume b"},
		{"unstable", needsGPU, func(b *board, _ *plan.View) {
			b.apply(&fsm.RegisterNode{Info: info("b", gpu), Incarnation: 2, Caring: true, Crashes: 4})
		}, "b", plan.KindUnstable, "crashed 4 times in a row", "lanjobs node clear b"},
		{"silent", needsGPU, func(b *board, _ *plan.View) { b.apply(&fsm.SetOnline{Node: "b"}) }, "b", plan.KindSilent, "is silent", "wake or start it"},
		{"unheard", needsGPU, func(_ *board, v *plan.View) { v.Nodes["b"] = plan.Presence{} }, "b", plan.KindUnheard, "has not been heard of", ""},
		{"not asked", needsGPU, func(_ *board, v *plan.View) { v.Nodes["b"] = plan.Presence{Heard: true} }, "b", plan.KindAsked, "about to ask", ""},
		{"full", needsGPU, func(b *board, v *plan.View) {
			b.submit("x", simStage("s", 9, 5000), 90)
			b.apply(&fsm.Grant{Node: "b", Incarnation: 1, Job: "x", Shards: []int{0, 1, 2, 3}})
		}, "b", plan.KindFull, "is full (4/4)", ""},
		{"too small", asking(task.Resources{MilliCPU: 3500}, 1), nil, "a", plan.KindTooSmall, "asks for cpu 3.5, it has 3.2 to give (of 4, 20 % stays free)", ""},
		{"refuses", needsGPU, func(b *board, _ *plan.View) {
			n := info("b", gpu)
			n.Refuses = []string{"default", "x"}
			b.apply(&fsm.RegisterNode{Info: n, Incarnation: 2})
		}, "b", plan.KindRefuses, "refuses queue default", "start it without that: lanjobs serve --refuse-queue \"\" on b"},
		{"user", asUser, nil, "a", plan.KindRequire, "does not meet user.anna=true", "lanjobs serve --allow-user anna on a"},
		{"job paused", needsGPU, func(b *board, _ *plan.View) { b.apply(&fsm.SetJob{Job: "j", Action: fsm.JobPause}) }, "", plan.KindJobPaused, "the job is paused", "lanjobs resume j"},
		{"queue paused", needsGPU, func(b *board, _ *plan.View) { b.apply(&fsm.SetQueue{Name: "default", Paused: &paused}) }, "", plan.KindQueuePaused, "queue default is paused", "lanjobs queue resume default"},
		{"queue full", needsGPU, func(b *board, _ *plan.View) {
			b.apply(&fsm.SetQueue{Name: "default", Max: &one}, &fsm.Grant{Node: "b", Incarnation: 1, Job: "j", Shards: []int{0}})
		}, "", plan.KindQueueFull, "queue default is full: 1 of 1", "lanjobs queue set default"},
		{"parallelism", narrow, func(b *board, _ *plan.View) {
			b.apply(&fsm.Grant{Node: "b", Incarnation: 1, Job: "j", Shards: []int{0}})
		}, "", plan.KindParallelism, "1 of 1 shards of stage s run at once", ""},
		{"cancelling", simStage("s", 3, 5000), func(b *board, _ *plan.View) {
			b.apply(&fsm.Grant{Node: "b", Incarnation: 1, Job: "j", Shards: []int{2}}, &fsm.CancelJob{Job: "j", RequestID: "c"})
		}, "", plan.KindRuns, "is assigned on b", ""},
	} {
		b := newBoard(t, info("leader"), info("a"), info("b", gpu))
		b.submit("j", c.stage, 50)
		v := b.viewOf(task.Load{})
		if c.with != nil {
			c.with(b, v)
		}
		shard := len(b.s.Job("j").Spec.Stages[0].Name) // 1
		if b.s.Job("j").Stages[0].Len() == 1 {
			shard = 0
		}
		if c.kind == plan.KindRuns {
			shard = 2
		}
		found := false
		for _, r := range plan.Explain(v, "j", 0, shard) {
			if r.Node == c.node {
				found = true
				if r.Kind != c.kind || !strings.Contains(r.Text, c.text) || !strings.HasPrefix(r.Change, c.change) {
					t.Errorf("%s: %+v", c.name, r)
				}
			}
		}
		if !found {
			t.Errorf("%s: nothing about %q in %+v", c.name, c.node, plan.Explain(v, "j", 0, shard))
		}
	}
}

func TestWhyAShardWaitsForItsTimeOrItsStage(t *testing.T) {
	b := newBoard(t, info("a"), info("b"))
	two := simStage("t", 1, 5000, "s")
	st := simStage("s", 1, 5000)
	st.Retry.Initial, st.Retry.JitterPct = 8000, 0
	b.submitSpec("j", task.Spec{Queue: "default", Stages: []task.StageSpec{st, two}})
	if rs := plan.Explain(b.viewOf(task.Load{}), "j", 1, 0); len(rs) != 1 || rs[0].Kind != plan.KindNeeds || rs[0].Text != "waits for stage s (0 of 1 shards done)" {
		t.Errorf("%+v", rs)
	}
	tok := b.apply(&fsm.Grant{Node: "a", Incarnation: 1, Job: "j", Shards: []int{0}})[0].Tokens[0]
	b.apply(&fsm.Report{Node: "a", Reports: []task.Report{{Job: "j", Token: tok, Outcome: task.Outcome{End: task.EndExited, ExitCode: 1}}}})
	if rs := plan.Explain(b.viewOf(task.Load{}), "j", 0, 0); len(rs) != 1 || rs[0].Kind != plan.KindBackoff || rs[0].Text != "waits 8s before it is tried again, after: exit 1" {
		t.Errorf("%+v", rs)
	}
}

func TestWhoDoesNotLeadExplainsByTheLedger(t *testing.T) {
	b := newBoard(t, info("leader"), info("a"))
	b.submit("j", simStage("s", 1, 5000), 50)
	v := &plan.View{State: b.s, Self: "leader", Stranger: true}
	if got := kinds(plan.Explain(v, "j", 0, 0)); got["a"] != "" || got["leader"] != plan.KindLeads || len(got) != 2 {
		t.Errorf("%v", got)
	}
}

// What Explain says is what Place does: the machine that it says takes a shard gets it, and where it names none, none does.
func TestExplainAndPlaceAgree(t *testing.T) {
	taken, kept := 0, 0
	for seed := range int64(seeds(300)) {
		r := rand.New(rand.NewSource(seed))
		b := newBoard(t, info("leader"), big("a"), info("b", task.KV{Name: "ssd", Value: "true"}), big("c"))
		b.queue("default", task.Balances[r.Intn(len(task.Balances))], r.Intn(3)*4)
		for i := range 3 {
			st := simStage("s", 1+r.Intn(3), 300_000)
			st.Retry.Initial, st.Retry.Attempts = 0, 10
			switch r.Intn(4) {
			case 0:
				st.Require = []task.Requirement{{Label: "ssd", Op: task.OpExists}}
			case 1:
				st.Prefer = []task.Requirement{{Label: "ssd", Op: task.OpExists}}
			case 2:
				st.Resources = task.Resources{MilliCPU: 500 + r.Intn(4000), MemoryMB: r.Intn(10) << 10}
			}
			b.submit(fmt.Sprintf("x%d", i), st, 90)
		}
		for range r.Intn(6) { // some run, some have failed
			for _, res := range b.apply(plan.Place(b.viewOf(task.Load{}))...) {
				for _, tok := range res.Tokens {
					if l := b.s.Lease(tok); l != nil && r.Intn(2) == 0 {
						b.apply(&fsm.Report{Node: b.s.NodeByPlace(l.Node).Info.ID, Reports: []task.Report{{Job: l.Ref.Job, Shard: l.Ref.Shard, Token: tok, Outcome: task.Outcome{End: task.EndExited, ExitCode: r.Intn(2)}}}})
					}
				}
			}
		}
		b.apply(&fsm.CancelJob{Job: "x0", RequestID: "c0"}, &fsm.CancelJob{Job: "x2", RequestID: "c2"})
		v := b.viewOf(task.Load{CPU: r.Float64() * 3, MemFreeMB: r.Intn(16) << 10})
		want := map[task.ShardRef]task.NodeID{}
		for id := range v.Nodes {
			p := v.Nodes[id]
			p.Want = r.Intn(3)
			v.Nodes[id] = p
		}
		j := b.s.Job("x1")
		for shard := range j.Stages[0].Len() {
			for _, reason := range plan.Explain(v, "x1", 0, shard) {
				if reason.Kind == "" {
					want[task.ShardRef{Job: "x1", Shard: shard}] = reason.Node
				}
			}
		}
		got := map[task.ShardRef]task.NodeID{}
		for _, c := range plan.Place(v) {
			g := c.(*fsm.Grant)
			for _, shard := range g.Shards {
				got[task.ShardRef{Job: g.Job, Shard: shard}] = g.Node
			}
		}
		// Only the first that is granted is sure: it may take the room of the next.
		for shard := range j.Stages[0].Len() {
			ref := task.ShardRef{Job: "x1", Shard: shard}
			if want[ref] != got[ref] && len(got) == 0 || len(want) == 0 && got[ref] != "" {
				t.Fatalf("seed %d shard %d: explained as %q, placed on %q", seed, shard, want[ref], got[ref])
			}
			if want[ref] != "" || got[ref] != "" {
				if want[ref] != got[ref] {
					t.Fatalf("seed %d shard %d: explained as %q, placed on %q", seed, shard, want[ref], got[ref])
				}
				taken++
				break
			}
			kept++
		}
	}
	if few := seeds(300) / 15; taken < few || kept < few {
		t.Errorf("%d placed, %d kept: the cases do not show enough", taken, kept)
	}
}
