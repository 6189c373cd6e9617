package fsm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"lanjobs/task"
)

func TestFailFastStopsWhatCannotSucceedAnyMore(t *testing.T) {
	st := stage("main", 5)
	st.Retry.Attempts = 1
	st.Success = task.Success{Count: 3, FailFast: true}
	after := stage("after", 1, "main")
	after.When = task.WhenFailure
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", st, after))
	toks := l.ok(0, grant("j1", 0, 0, 1, 2, 3))[0].Tokens
	l.ok(0, exit("j1", 0, 0, toks[0], 1), exit("j1", 0, 1, toks[1], 1))
	if _, stopping := l.s.Job("j1").Stopping(0); stopping { // three may still succeed
		t.Fatal("it stops too early")
	}
	l.ok(0, exit("j1", 0, 2, toks[2], 1))
	j := l.s.Job("j1")
	if reason, stopping := j.Stopping(0); !stopping || !strings.Contains(reason, "3 of 5 failed") || l.shard("j1", 0, 4).State != task.ShardCancelled {
		t.Fatalf("%q %v", reason, l.shard("j1", 0, 4).State)
	}
	l.refused("conflict", &RetryJob{Job: "j1"})
	l.s = reread(t, l.s)
	l.ok(0, &Report{Node: "a", Reports: []task.Report{{Job: "j1", Shard: 3, Token: toks[3], Outcome: task.Outcome{End: task.EndCancelled}}}})
	if j := l.s.Job("j1"); states(j) == "" || j.Stages[0].State != task.StageFailed || l.shard("j1", 0, 3).State != task.ShardCancelled || j.Stages[1].State != task.StageOpen || j.Cancelling {
		t.Fatalf("%+v", j)
	}
	st.Success.FailFast = false
	l.ok(0, submit("j2", st))
	toks = l.ok(0, grant("j2", 0, 0, 1, 2))[0].Tokens
	for k, tok := range toks {
		l.ok(0, exit("j2", 0, k, tok, 1))
	}
	if l.shard("j2", 0, 4).State != task.ShardPending {
		t.Fatal("without fail_fast the others run as well")
	}
}

// timed is a submit with a start_within and a deadline.
func timed(id string, within, deadline task.Millis, st task.StageSpec) *SubmitJob {
	data, _ := json.Marshal(task.Spec{Name: id, Retain: task.Day, StartWithin: within, Deadline: deadline, Stages: []task.StageSpec{st}})
	return &SubmitJob{RequestID: task.RequestID("r-" + id), Job: task.JobID(id), Spec: data, Digest: data}
}

func TestJobsExpire(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), timed("j1", 20*task.Second, 0, stage("main", 1)), timed("j2", 20*task.Second, 30*task.Second, stage("main", 2)))
	if at, ok := l.s.DueLed(); !ok || at != l.s.Led+20*task.Second {
		t.Fatalf("due at %d, %v: no leader wakes for a start_within", at, ok)
	}
	l.refused("conflict", &ExpireJob{Job: "j1"})
	l.refused("not_found", &ExpireJob{Job: "j9"})
	tok := l.one("j2", 0, 0)
	l.lead(20 * task.Second)
	if due := l.s.Overdue(l.s.Led); fmt.Sprint(due) != "[j1]" {
		t.Fatal(due)
	}
	l.refused("conflict", &ExpireJob{Job: "j2"}) // it has started
	l.ok(0, &ExpireJob{Job: "j1"}, &ExpireJob{Job: "j1"})
	if j := l.s.Job("j1"); j.State != task.JobExpired || j.CancelReason != "not started within 20s" {
		t.Fatalf("%+v", j)
	}
	l.s = reread(t, l.s)
	if at, ok := l.s.DueLed(); !ok || at > l.s.Led+10*task.Second {
		t.Fatalf("due at %d of %d: no leader wakes for the deadline", at, l.s.Led)
	}
	l.ok(0, &Renew{Node: "a", Incarnation: 1, Tokens: []task.Token{tok}})
	l.s.ApplyBatch(9, &Batch{Idle: 10 * task.Second})
	if due := l.s.Overdue(l.s.Led); fmt.Sprint(due) != "[j2]" {
		t.Fatal(due)
	}
	l.ok(0, &ExpireJob{Job: "j2"})
	if j := l.s.Job("j2"); !j.Cancelling || j.State.Final() {
		t.Fatalf("%+v: what runs is told to stop first", j)
	}
	l.ok(0, &Report{Node: "a", Reports: []task.Report{{Job: "j2", Token: tok, Outcome: task.Outcome{End: task.EndCancelled}}}})
	if j := l.s.Job("j2"); j.State != task.JobExpired || j.CancelReason != "deadline of 30s passed" {
		t.Fatalf("%+v", j)
	}
	l.ok(0, &RetryJob{Job: "j2"}) // a new life, with a deadline of its own
	if due := l.s.Overdue(l.s.Led + 29*task.Second); len(due) > 0 {
		t.Fatal(due)
	}
	l.one("j2", 0, 0)
	if _, ok := l.s.DueLed(); !ok {
		t.Fatal("nothing is due")
	}
}

func TestWhatWasGivenBackCountsNeitherAsAttemptNorAsLoss(t *testing.T) {
	st := stage("main", 1)
	st.Retry.Attempts, st.Retry.LeaseLosses = 2, 1
	st.Retry.Initial = 0
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", st))
	l.ok(0, exit("j1", 0, 0, l.one("j1", 0, 0), 1))
	for range task.MaxHistory + 5 {
		l.ok(0, &Report{Node: "a", Reports: []task.Report{{Job: "j1", Token: l.one("j1", 0, 0), Outcome: task.Outcome{End: task.EndUnmet, Message: "path /mnt/nas is not there"}}}})
	}
	sh := l.shard("j1", 0, 0)
	if sh.State != task.ShardPending || sh.Fails != 1 || sh.Losses != 0 || sh.Due != 0 || len(sh.History()) != 2 || sh.History()[0].Outcome.ExitCode != 1 {
		t.Fatalf("%+v, %+v", sh, sh.History())
	}
}

func TestRetentionByNumber(t *testing.T) {
	l := &ledger{t: t, s: New()}
	one := submit("x", stage("main", 1))
	l.s.ApplyBatch(1, &Batch{Commands: []Command{submit("old", stage("main", 1))}}) // unfinished, and older than all
	for i := range task.MaxFinishedJobs + 3 {
		id := task.JobID(fmt.Sprint("j", i))
		l.s.ApplyBatch(1, &Batch{Commands: []Command{&SubmitJob{Job: id, Spec: one.Spec, Digest: one.Digest}, &CancelJob{Job: id}}})
	}
	if ids := l.s.CollectableJobs(9); len(ids) != 0 {
		t.Fatalf("%v: a repeat of their submits may still come", ids)
	}
	l.s.ApplyBatch(2, &Batch{Idle: requestWindow})
	ids := l.s.CollectableJobs(9)
	if fmt.Sprint(ids) != "[j0 j1 j2]" {
		t.Fatal(ids)
	}
	l.s.ApplyBatch(2, &Batch{Commands: []Command{&CollectJobs{Jobs: append(ids, "j3", "old")}}})
	if l.s.Job("j0") != nil || l.s.Job("j2") != nil || l.s.Job("j3") == nil || l.s.Job("old") == nil || len(l.s.CollectableJobs(9)) != 0 {
		t.Fatal("not the three oldest finished ones were collected")
	}
}
