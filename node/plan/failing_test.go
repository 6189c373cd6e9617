package plan_test

import (
	"testing"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

// attempt runs a shard of job j on a node to an end.
func (b *board) attempt(node task.NodeID, shard int, o task.Outcome) {
	b.t.Helper()
	b.apply(&fsm.Grant{Node: node, Incarnation: 1, Job: "j", Shards: []int{shard}})
	token := b.s.Job("j").Shard(0, shard).Token
	b.apply(&fsm.Report{Node: node, Reports: []task.Report{{Job: "j", Shard: shard, Token: token, Outcome: o}}})
}

// failures judges in one go.
func failures(s *fsm.State) map[task.NodeID]plan.Failing {
	var f plan.Failures
	for f.Look(s) {
	}
	return f.Judge()
}

func TestAMachineThatFailsWhereOthersSucceedIsFlagged(t *testing.T) {
	b := newBoard(t, info("good"), info("bad"), info("off"))
	b.submit("j", patient(), 50)
	fails, works := task.Outcome{End: task.EndExited, ExitCode: 1}, task.Outcome{End: task.EndExited}
	want := func(node task.NodeID, failed, of int, flagged bool) {
		t.Helper()
		if f := failures(b.s)[node]; f != (plan.Failing{Failed: failed, Of: of}) || f.Flagged() != flagged {
			t.Fatalf("%s: %s, want %d of %d", node, f, failed, of)
		}
	}
	for i := range 4 {
		b.attempt("bad", i, fails)
	}
	want("bad", 0, 4, false) // perhaps they fail everywhere
	for i := range 4 {
		b.attempt("good", i, works)
	}
	want("bad", 4, 4, false)
	b.attempt("bad", 4, works)
	b.attempt("bad", 5, fails)
	b.attempt("bad", 5, works) // in the end it did: not elsewhere
	want("bad", 4, 7, false)
	b.attempt("bad", 6, fails)
	b.attempt("good", 6, works)
	want("bad", 5, 8, true)
	want("good", 0, 5, false)
	b.attempt("off", 7, task.Outcome{End: task.EndDrained}) // says nothing of the machine
	want("off", 0, 0, false)
	for i := 10; i < 30; i++ {
		b.attempt("bad", i, works)
	}
	want("bad", 0, 20, false) // the newest count
	for i := 30; i < 36; i++ {
		b.attempt("bad", i, fails)
		b.attempt("good", i, works)
	}
	want("bad", 6, 20, false)
	for i := 36; i < 40; i++ {
		b.attempt("bad", i, fails)
		b.attempt("good", i, works)
	}
	want("bad", 10, 20, true)
}

func TestFailuresAreForgottenAfterADay(t *testing.T) {
	b := newBoard(t, info("good"), info("bad"))
	b.submit("j", patient(), 50)
	b.failOnBad()
	if !failures(b.s)["bad"].Flagged() {
		t.Fatal("not flagged")
	}
	b.aDay()
	if f := failures(b.s)["bad"]; f != (plan.Failing{}) {
		t.Errorf("%+v", f)
	}
}

func TestAnUnstableMachineGetsNothingNew(t *testing.T) {
	b := newBoard(t, info("leader"), info("b"))
	b.submit("j", simStage("s", 8, 5000), 50)
	b.apply(&fsm.RegisterNode{Info: info("b"), Incarnation: 2, Caring: true, Crashes: task.UnstableAfter})
	b.s.Leader = "leader"
	if got := b.place(2, plan.NewFlight()); len(got["b"]) > 0 || len(got["leader"])+len(got["a"]) != 2 {
		t.Fatalf("placed %v", got)
	}
	b.apply(&fsm.SetNode{Node: "b", Action: fsm.NodeClear})
	if got := b.place(2, plan.NewFlight()); len(got["b"]) != 2 {
		t.Fatalf("after clear: %v", got)
	}
}

// failOnBad has five shards of job j fail on "bad" and succeed on "good".
func (b *board) failOnBad() {
	b.t.Helper()
	for i := range 5 {
		b.attempt("bad", i, task.Outcome{End: task.EndExited, ExitCode: 1})
		b.attempt("good", i, task.Outcome{End: task.EndExited})
	}
}

// patient is a stage that is retried at once and often.
func patient() task.StageSpec {
	st := simStage("s", 60, 5000)
	st.Retry.Initial, st.Retry.Attempts = 0, 9
	return st
}

// aDay lets a day of the cluster's clock pass.
func (b *board) aDay() {
	for range task.Day / fsm.MaxElapsed {
		b.n++
		b.s.ApplyBatch(b.n, &fsm.Batch{Leader: "a", Elapsed: fsm.MaxElapsed})
	}
}

// However many shards there are, no look takes long, and the newest jobs count.
func TestFailuresAreLookedForInSlices(t *testing.T) {
	for _, c := range []struct {
		jobs, shards int // newer ones
		slices       int
		flagged      bool
	}{{0, 0, 1, true}, {3, 3999, 4, true}, {2, 99_960, 50, true}, {2, 100_000, 50, false}} {
		b := newBoard(t, info("good"), info("bad"))
		b.submit("j", patient(), 50)
		b.failOnBad()
		for i := range c.jobs {
			b.submit(string(rune('k'+i)), simStage("s", c.shards, 5000), 50)
		}
		var f plan.Failures
		slices := 1
		for f.Look(b.s) {
			slices++
		}
		if slices != c.slices || f.Judge()["bad"].Flagged() != c.flagged {
			t.Errorf("%d jobs of %d shards: %d slices, %s", c.jobs, c.shards, slices, f.Judge()["bad"])
		}
	}
}

// A job that is collected between two slices costs those before it nothing.
func TestFailuresWhileJobsGo(t *testing.T) {
	b := newBoard(t, info("good"), info("bad"))
	b.submit("j", patient(), 50)
	b.submit("k", simStage("s", 9000, 5000), 50)
	b.apply(&fsm.CancelJob{Job: "k"})
	b.aDay()
	b.failOnBad()
	var f plan.Failures
	if !f.Look(b.s) {
		t.Fatal("one slice was enough")
	}
	b.apply(&fsm.CollectJobs{Jobs: []task.JobID{"k"}})
	if b.s.Job("k") != nil {
		t.Fatal("it is still there")
	}
	if f.Look(b.s) || !f.Judge()["bad"].Flagged() {
		t.Errorf("%s", f.Judge()["bad"])
	}
}
