package plan_test

import (
	"testing"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

// fail has a node get the only shard of job "j" and end it.
func (b *board) fail(node task.NodeID, o task.Outcome) {
	b.t.Helper()
	tok := b.apply(&fsm.Grant{Node: node, Incarnation: 1, Job: "j", Shards: []int{0}})[0].Tokens[0]
	if o.End == task.EndLeaseExpired {
		for b.s.Lease(tok) != nil {
			b.lead(fsm.MaxElapsed, &fsm.Expire{Tokens: []task.Token{tok}})
		}
		return
	}
	b.apply(&fsm.Report{Node: node, Reports: []task.Report{{Job: "j", Token: tok, Outcome: o}}})
	for b.s.Job("j").NextReady(0, 0) < 0 {
		b.lead(fsm.MaxElapsed)
	}
}

// lead applies commands after some time.
func (b *board) lead(elapsed task.Millis, cs ...fsm.Command) {
	b.t.Helper()
	b.n++
	b.s.ApplyBatch(b.n, &fsm.Batch{Leader: "a", Elapsed: elapsed, Commands: cs})
}

// TestAShardThatWaitsForAnotherMachineTakesIt: one that has lost its lease there is another machine, too, and the least loaded of
// all may be the very one that it is to keep away from. Else it waits for ever, beside a machine that is free.
func TestAShardThatWaitsForAnotherMachineTakesIt(t *testing.T) {
	exit := func(code int) task.Outcome { return task.Outcome{End: task.EndExited, ExitCode: code} }
	lost := task.Outcome{End: task.EndLeaseExpired}
	for name, c := range map[string]struct {
		first, second, third task.Outcome // on b, b, c; the zero value is no attempt
	}{
		"its exit code asked for another one": {first: exit(69), third: lost},
		"it failed twice on the first":        {first: exit(1), second: exit(1), third: lost},
	} {
		st := simStage("s", 1, 60_000)
		st.Retry.Attempts = 9
		b := newBoard(t, info("a"), info("b"), info("c"))
		b.submit("j", st, 50)
		b.submit("other", simStage("s", 1, 60_000), 50)
		b.fail("c", c.third)
		b.fail("b", c.first)
		if c.second.End != "" {
			b.fail("b", c.second)
		}
		b.apply(&fsm.Grant{Node: "c", Incarnation: 1, Job: "other", Shards: []int{0}}) // so that b is the least loaded
		if got := b.place(1, plan.NewFlight()); len(got["c"]) != 1 {
			t.Errorf("%s, and lost its lease on c: %v", name, got)
		}
	}
}
