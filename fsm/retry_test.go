package fsm

import (
	"fmt"
	"strings"
	"testing"

	"lanjobs/task"
)

func states(j *Job) (s string) {
	for i := range j.Stages {
		s += j.Stages[i].State.String() + " "
	}
	return s + string(j.State)
}

func TestNothingOpensWhileAJobIsCancelled(t *testing.T) {
	always := stage("after", 1, "main")
	always.When = task.WhenAlways
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 2), stage("next", 1, "main"), always))
	_, events := l.do(0, &CancelJob{Job: "j1"})
	for _, e := range events {
		if e.Kind == task.EventStageState && e.To != "cancelled" {
			t.Errorf("stage %s became %s", e.Stage, e.To)
		}
	}
	if got := states(l.s.Job("j1")); got != "cancelled cancelled cancelled cancelled" {
		t.Fatal(got)
	}
}

func TestARetryRunsAgainWhatReadsFromIt(t *testing.T) {
	half := stage("work", 2)
	half.Retry.Attempts, half.Success = 1, task.Success{Percent: 50}
	merge := stage("merge", 2, "work")
	merge.Retry.Attempts = 1
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", half, merge))
	l.ok(0, exit("j1", 0, 0, l.one("j1", 0, 0), 0))
	l.ok(0, exit("j1", 0, 1, l.one("j1", 0, 1), 1))
	tok := l.one("j1", 1, 0)
	if r, _ := l.do(0, &RetryJob{Job: "j1", RequestID: "r1"}); r[0].Err == nil {
		t.Fatal("a shard was retried while a stage runs on what it left")
	}
	l.ok(0, &PutOutput{Ref: task.ShardRef{Job: "j1", Stage: 1}, Token: tok, Output: task.KV{Name: "out", Value: "old"}}, exit("j1", 1, 0, tok, 0))
	l.ok(0, exit("j1", 1, 1, l.one("j1", 1, 1), 1))
	if got := states(l.s.Job("j1")); got != "partial failed failed" {
		t.Fatal(got)
	}
	l.ok(0, &RetryJob{Job: "j1", RequestID: "r2"})
	if got := states(l.s.Job("j1")); got != "open waiting running" {
		t.Fatal(got)
	}
	if sh := l.shard("j1", 1, 0); sh.State != task.ShardPending || sh.Outputs() != nil {
		t.Fatalf("a shard that read the old data keeps its result: %+v", sh)
	}
	l.ok(0, exit("j1", 0, 1, l.one("j1", 0, 1), 0))
	if got := states(l.s.Job("j1")); got != "succeeded open running" {
		t.Fatal(got)
	}
}

func TestARetryOfOneStageAloneIsRefusedWhereItWouldBeSkipped(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("first", 1), stage("second", 1, "first")), &CancelJob{Job: "j1"})
	if r, ev := l.do(0, &RetryJob{Job: "j1", Stage: "second", RequestID: "r"}); r[0].Err == nil || len(ev) != 0 {
		t.Fatalf("%+v: a stage would run on what was cancelled: %s", r[0], states(l.s.Job("j1")))
	}
	l.ok(0, &RetryJob{Job: "j1", RequestID: "r"})
	if got := states(l.s.Job("j1")); got != "open waiting running" {
		t.Fatal(got)
	}
}

func TestOldRequestsOfAJobAreNotDoneAgain(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 1)))
	cancel := &CancelJob{Job: "j1", RequestID: "c"}
	l.ok(0, cancel, &RetryJob{Job: "j1", RequestID: "r1"}, cancel)
	if got := states(l.s.Job("j1")); got != "open running" {
		t.Fatalf("a repeated cancel stopped the retry: %s", got)
	}
	l.ok(0, &CancelJob{Job: "j1", RequestID: "c2"})
	if r := l.ok(0, &RetryJob{Job: "j1", RequestID: "r1"})[0]; !r.Existed || l.s.Job("j1").State != task.JobCancelled {
		t.Fatal("a repeated retry was done again")
	}
	l.ok(0, &CancelJob{Job: "j1", RequestID: "c3"}, &RetryJob{Job: "j1", RequestID: "r2"}, &CancelJob{Job: "j1", RequestID: "c3"})
	if got := states(l.s.Job("j1")); got != "open running" {
		t.Fatalf("a cancel that had found nothing to do stopped a later retry: %s", got)
	}
	for i := range 3 * requestMemory {
		l.ok(0, &CancelJob{Job: "j1", RequestID: task.RequestID(fmt.Sprint("x", i))})
	}
	if n := len(l.s.Job("j1").acts); n != requestMemory {
		t.Fatalf("%d requests are remembered", n)
	}
}

// TestWhatWasOnceCancelledDoesNotSpoilALaterSuccess: the retry leaves one cancelled shard as it is, and enough others succeed.
func TestWhatWasOnceCancelledDoesNotSpoilALaterSuccess(t *testing.T) {
	work := stage("work", 3)
	work.Success = task.Success{Count: 2}
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", work, stage("merge", 1, "work")), &CancelJob{Job: "j1"}, &RetryJob{Job: "j1", Stage: "work", Shards: []task.Range{{First: 0, Last: 1}}})
	for k := range 2 {
		l.ok(0, exit("j1", 0, k, l.one("j1", 0, k), 0))
	}
	if got := states(l.s.Job("j1")); got != "partial open running" {
		t.Fatal(got)
	}
}

func TestTheReadyQueueIsInOrder(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1))
	order := func() (ids string) {
		l.ready(func(j *Job) bool { ids += string(j.ID) + " "; return len(ids) < 200 })
		return ids
	}
	for i, priority := range []int{50, 100, 50, 0, 100} {
		c := submit(fmt.Sprint("j", i), stage("main", 1))
		c.Spec = []byte(strings.Replace(string(c.Spec), `"priority":50`, fmt.Sprint(`"priority":`, priority), 1))
		l.ok(0, c)
	}
	if got := order(); got != "j1 j4 j0 j2 j3 " {
		t.Fatal(got)
	}
	tok := l.one("j1", 0, 0)
	l.one("j0", 0, 0)
	l.ok(0, &CancelJob{Job: "j3"})
	if got := order(); got != "j4 j2 " {
		t.Fatal(got)
	}
	c := exit("j1", 0, 0, tok, 0)
	c.Reports[0].Outcome = task.Outcome{End: task.EndDrained}
	l.ok(0, c)
	if got := order(); got != "j1 j4 j2 " {
		t.Fatal(got)
	}
	for i := range 100 { // so many go that the list is made anew
		id := fmt.Sprint("x", i)
		l.ok(0, submit(id, stage("main", 1)), &CancelJob{Job: task.JobID(id)})
	}
	l.ok(0, submit("last", stage("main", 1)))
	if got := order(); got != "j1 j4 j2 last " {
		t.Fatal(got)
	}
	n := 0
	l.ready(func(*Job) bool { n++; return n < 2 })
	if n != 2 {
		t.Fatalf("%d after being told to stop at 2", n)
	}
}

func TestARetriedSuccessKeepsItsPlaceInTheHistory(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 1)))
	tok := l.one("j1", 0, 0)
	l.ok(0, &Checkpoint{Ref: task.ShardRef{Job: "j1"}, Token: tok, Seq: 1, Data: []byte("x")})
	l.ok(500, exit("j1", 0, 0, tok, 0))
	ended := l.s.Clock
	l.ok(5000, &RetryJob{Job: "j1", All: true})
	sh := l.shard("j1", 0, 0)
	if h := sh.History(); len(h) != 1 || h[0].Ended != ended || h[0].Token != tok || sh.Checkpoint() != nil {
		t.Fatalf("%+v", sh.Extra)
	}
	if r := l.ok(0, exit("j1", 0, 0, tok, 0))[0]; r.Codes[0] != "" {
		t.Fatalf("a repeat of its report is answered %v", r.Codes)
	}
	if next := l.one("j1", 0, 0); next <= tok || l.shard("j1", 0, 0).Tries != 2 {
		t.Fatalf("token %d, %+v", next, sh)
	}
}

func TestACancelThatNobodyOrderedUsesUpLosses(t *testing.T) {
	st := stage("main", 1)
	st.Retry.LeaseLosses = 3
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", st))
	for n := 1; n <= 3; n++ {
		c := exit("j1", 0, 0, l.one("j1", 0, 0), 0)
		c.Reports[0].Outcome = task.Outcome{End: task.EndCancelled}
		l.ok(0, c)
	}
	if got := states(l.s.Job("j1")); got != "failed failed" {
		t.Fatalf("a machine that stops its task each time goes on for ever: %s", got)
	}
}

// TestARepeatedWriteIsAnsweredWithItsVersion: another attempt has written the key since, so that neither "version changed" nor
// the newest version would be true of the write.
func TestARepeatedWriteIsAnsweredWithItsVersion(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 2)))
	toks := l.ok(0, grant("j1", 0, 0, 1))[0].Tokens
	zero, one := uint64(0), uint64(1)
	first := &PutState{Ref: task.ShardRef{Job: "j1"}, Token: toks[0], RequestID: "r1", Key: "k", Value: []byte("a"), IfVersion: &zero}
	second := &PutState{Ref: task.ShardRef{Job: "j1", Shard: 1}, Token: toks[1], RequestID: "r2", Key: "k", Value: []byte("b"), IfVersion: &one}
	l.ok(0, first, second)
	l.s = reread(t, l.s)
	if r, ev := l.do(0, first); r[0].Err != nil || r[0].Version != 1 || len(ev) != 0 {
		t.Fatalf("%+v, %+v", r[0], ev)
	}
	if v, n := l.s.Job("j1").StateValue("k"); string(v) != "b" || n != 2 {
		t.Fatalf("%q at %d", v, n)
	}
	other := *first
	other.RequestID = "r3"
	if r, _ := l.do(0, &other); r[0].Err == nil || r[0].Version != 2 {
		t.Fatalf("%+v", r[0])
	}
}

func TestALateRepeatOfAnOutputDoesNotBringItsValueBack(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 1)))
	put := func(r task.RequestID, v string) Command {
		return &PutOutput{Ref: task.ShardRef{Job: "j1"}, Token: 1, Output: task.KV{Name: "a", Value: v}, RequestID: r}
	}
	l.one("j1", 0, 0)
	l.ok(0, put("r1", "old"), put("r2", "new"), put("r1", "old"))
	if got := l.shard("j1", 0, 0).Outputs(); len(got) != 1 || got[0].Value != "new" {
		t.Fatalf("%v", got)
	}
}

// TestAnOldWaitDoesNotEndANewOne: the shard waited for a minute, was cancelled and retried, and now waits for three.
func TestAnOldWaitDoesNotEndANewOne(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 1)), submit("j2", stage("main", 1)))
	postpone := func(job string, m task.Millis) {
		c := exit(job, 0, 0, l.one(job, 0, 0), 0)
		c.Reports[0].Outcome = task.Outcome{End: task.EndDeferred, Wait: m}
		l.ok(0, c)
	}
	postpone("j2", 30*task.Second) // something else is due first
	postpone("j1", task.Minute)
	l.ok(0, &CancelJob{Job: "j1"}, &RetryJob{Job: "j1"})
	postpone("j1", 3*task.Minute)
	l.lead(2 * task.Minute)
	if n := l.s.Job("j1").Grantable(0); n != 0 {
		t.Fatal("it may be granted at the time of its old wait")
	}
	if at, _ := l.s.Due(); at != task.Instant(3*task.Minute) {
		t.Fatalf("due %d", at)
	}
	l.lead(task.Minute)
	if n := l.s.Job("j1").Grantable(0); n != 1 {
		t.Fatal("it is not ready at its time")
	}
}

func TestWhenTellsWhatFollows(t *testing.T) {
	for _, c := range []struct {
		first     int // exit code of the first stage
		when      task.When
		last      task.When // of a stage after it
		want, end string
	}{
		{0, task.WhenSuccess, task.WhenSuccess, "open", "open"},
		{0, task.WhenFailure, task.WhenSuccess, "skipped", "open"}, // no failure to handle is no failure
		{0, task.WhenAlways, task.WhenSuccess, "open", "open"},
		{1, task.WhenSuccess, task.WhenSuccess, "skipped", "skipped"},
		{1, task.WhenSuccess, task.WhenFailure, "skipped", "open"},
		{1, task.WhenFailure, task.WhenSuccess, "open", "open"},
		{1, task.WhenAlways, task.WhenFailure, "open", "skipped"},
	} {
		first, mid, last := stage("first", 1), stage("mid", 1, "first"), stage("last", 1, "mid")
		first.Retry.Attempts, mid.When, last.When = 1, c.when, c.last
		l := newLedger(t)
		l.ok(0, node("a", 1), submit("j1", first, mid, last))
		l.ok(0, exit("j1", 0, 0, l.one("j1", 0, 0), c.first))
		if got := l.s.Job("j1").Stages[1].State.String(); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
		if c.want == "open" {
			l.ok(0, exit("j1", 1, 0, l.one("j1", 1, 0), 0))
		}
		if got := l.s.Job("j1").Stages[2].State.String(); got != c.end {
			t.Errorf("%+v: last is %s", c, got)
		}
	}
}
