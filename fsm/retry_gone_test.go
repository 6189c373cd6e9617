package fsm

import (
	"testing"

	"lanjobs/task"
)

func newest(id string) *RegisterNode {
	c := node(id, 1)
	c.Info.Level = Level
	return c
}

// TestARetryDoesNotWaitForAMachineThatIsGone: also not while other shards of the stage still run.
func TestARetryDoesNotWaitForAMachineThatIsGone(t *testing.T) {
	st := stage("main", 0)
	st.Broadcast = true
	l := newLedger(t)
	l.ok(0, newest("a"), newest("b"), submit("j1", st, stage("next", 1, "main")))
	tok := l.one("j1", 0, 0)
	l.ok(0, &SetNode{Node: "b", Action: NodeRemove})
	l.ok(0, &RetryJob{Job: "j1"})
	if sh := l.shard("j1", 0, 1); sh.State != task.ShardFailed {
		t.Errorf("the shard of a machine that is gone is %s after a retry", sh.State)
	}
	l.ok(0, exit("j1", 0, 0, tok, 0))
	if j := l.s.Job("j1"); j.State != task.JobFailed {
		t.Fatalf("%s: it waits for a machine that is gone", j.State)
	}
}

// TestACancelledStageThatNeverOpenedRunsAgain: it has no shards yet that a person could choose.
func TestACancelledStageThatNeverOpenedRunsAgain(t *testing.T) {
	l := newLedger(t)
	l.ok(0, newest("a"), submit("j1", stage("init", 1), stage("slow", 1), from("work", "init.parts", "init", "slow")))
	init, slow := l.one("j1", 0, 0), l.one("j1", 1, 0)
	c := exit("j1", 0, 0, init, 0)
	c.Reports[0].Outputs = []task.KV{{Name: "parts", Value: "x\ny"}}
	l.ok(0, c, &CancelJob{Job: "j1"}, exit("j1", 1, 0, slow, 0)) // it ended well all the same
	if got := states(l.s.Job("j1")); got != "succeeded succeeded cancelled cancelled" {
		t.Fatal(got)
	}
	if r, _ := l.do(0, &RetryJob{Job: "j1"}); r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	if got := states(l.s.Job("j1")); got != "succeeded succeeded open running" {
		t.Fatal(got)
	}
}
