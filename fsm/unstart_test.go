package fsm

import (
	"testing"

	"lanjobs/task"
)

// What is given back because a path or program is missing has not started: start_within goes on, or it would never pass for such a job.
func TestWhatNeverStartedPassesItsStartWithin(t *testing.T) {
	l := newLedger(t)
	a := node("a", 1)
	a.Info.Level = Level
	l.ok(0, a, timed("j1", 20*task.Second, 30*task.Second, stage("main", 2)))
	unmet := func(shard int, tok task.Token) *Report {
		return &Report{Node: "a", Reports: []task.Report{{Job: "j1", Shard: shard, Token: tok, Outcome: task.Outcome{End: task.EndUnmet, Message: "no program gimp"}}}}
	}
	toks := l.ok(0, grant("j1", 0, 0, 1))[0].Tokens
	l.ok(0, unmet(0, toks[0]))
	if j := l.s.Job("j1"); j.State != task.JobRunning {
		t.Fatalf("%s while the other shard may start", j.State)
	}
	l.ok(0, unmet(1, toks[1]))
	l.s = reread(t, l.s)
	if j := l.s.Job("j1"); j.State != task.JobPending || j.Started != 0 {
		t.Fatalf("%s, started %d", j.State, j.Started)
	}
	l.lead(20 * task.Second)
	if due := l.s.Overdue(l.s.Led); len(due) != 1 {
		t.Fatalf("due: %v", due)
	}
	l.ok(0, unmet(0, l.one("j1", 0, 0)), &ExpireJob{Job: "j1"})
	if j := l.s.Job("j1"); j.State != task.JobExpired || j.CancelReason != "not started within 20s" {
		t.Fatalf("%+v", j)
	}
	// A person's retry is no new start_within, and what has once run has started.
	l.ok(0, &RetryJob{Job: "j1"})
	l.ok(0, unmet(0, l.one("j1", 0, 0)))
	if j := l.s.Job("j1"); j.State != task.JobRunning {
		t.Fatalf("%s after a retry", j.State)
	}
	l.ok(0, timed("j2", 20*task.Second, 0, stage("main", 1)))
	r := exit("j2", 0, 0, l.one("j2", 0, 0), 0)
	r.Reports[0].Outcome = task.Outcome{End: task.EndDeferred, Wait: 1}
	l.ok(0, r)
	l.ok(task.Second)
	l.ok(0, &Report{Node: "a", Reports: []task.Report{{Job: "j2", Token: l.one("j2", 0, 0), Outcome: task.Outcome{End: task.EndUnmet}}}})
	if j := l.s.Job("j2"); j.State != task.JobRunning {
		t.Fatalf("%s, though it has run once", j.State)
	}
}
