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

func TestAMachineThatFailsWhereOthersSucceedIsFlagged(t *testing.T) {
	b := newBoard(t, info("good"), info("bad"), info("off"))
	st := simStage("s", 60, 5000)
	st.Retry.Initial, st.Retry.Attempts = 0, 9
	b.submit("j", st, 50)
	fails, works := task.Outcome{End: task.EndExited, ExitCode: 1}, task.Outcome{End: task.EndExited}
	want := func(node task.NodeID, failed, of int, flagged bool) {
		t.Helper()
		if f := plan.Failures(b.s)[node]; f != (plan.Failing{Failed: failed, Of: of}) || f.Flagged() != flagged {
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
	st := simStage("s", 60, 5000)
	st.Retry.Initial, st.Retry.Attempts = 0, 9
	b.submit("j", st, 50)
	for i := range 5 {
		b.attempt("bad", i, task.Outcome{End: task.EndExited, ExitCode: 1})
		b.attempt("good", i, task.Outcome{End: task.EndExited})
	}
	if !plan.Failures(b.s)["bad"].Flagged() {
		t.Fatal("not flagged")
	}
	for range task.Day / fsm.MaxElapsed {
		b.n++
		b.s.ApplyBatch(b.n, &fsm.Batch{Leader: "a", Elapsed: fsm.MaxElapsed})
	}
	if f := plan.Failures(b.s)["bad"]; f != (plan.Failing{}) {
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
