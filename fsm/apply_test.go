package fsm

import (
	"encoding/json"
	"testing"

	"lanjobs/task"
)

// ledger is a state and the index of its newest entry.
type ledger struct {
	t *testing.T
	s *State
	i uint64
}

func newLedger(t *testing.T) *ledger { return &ledger{t: t, s: New()} }

// ready calls f for each job that has something to grant and whose queue has room, until f gives false.
func (l *ledger) ready(f func(*Job) bool) {
	l.s.EachReady(func(j *Job) Next {
		if f(j) {
			return NextJob
		}
		return NextNone
	})
}

// do applies commands as one batch after elapsed and checks the laws.
func (l *ledger) do(elapsed task.Millis, cs ...Command) ([]Result, []task.Event) {
	l.t.Helper()
	l.i++
	b := &Batch{Elapsed: elapsed, Wall: int64(l.i), Leader: "n1", Commands: cs}
	res, ev, err := l.s.Apply(l.i, b.Encode())
	if err != nil {
		l.t.Fatal(err)
	}
	if err := l.s.Check(); err != nil {
		l.t.Fatalf("after entry %d: %v", l.i, err)
	}
	return res, ev
}

func (l *ledger) ok(elapsed task.Millis, cs ...Command) []Result {
	l.t.Helper()
	res, _ := l.do(elapsed, cs...)
	for i, r := range res {
		if r.Err != nil {
			l.t.Fatalf("%T refused: %v", cs[i], r.Err)
		}
	}
	return res
}

func node(id string, inc uint64, held ...task.Token) *RegisterNode {
	return &RegisterNode{Info: task.NodeInfo{ID: task.NodeID(id), Name: id, Slots: 4, CPUs: 4}, Incarnation: inc, Held: held}
}

func stage(name string, shards int, needs ...string) task.StageSpec {
	r := task.DefaultRetry()
	r.JitterPct = 0
	return task.StageSpec{Name: name, Shards: shards, Needs: needs, When: task.WhenSuccess, Run: "true", Lease: task.DefaultLease(task.DefaultTTL), Retry: r}
}

func submit(id string, stages ...task.StageSpec) *SubmitJob {
	spec := task.Spec{Name: id, Queue: "default", Priority: 50, Retain: task.Day, Stages: stages}
	data, _ := json.Marshal(spec)
	return &SubmitJob{RequestID: task.RequestID("r-" + id), Job: task.JobID(id), Spec: data, Digest: data}
}

func exit(job string, stage, shard int, t task.Token, code int) *Report {
	return &Report{Node: "a", Reports: []task.Report{{Job: task.JobID(job), Stage: stage, Shard: shard, Token: t, Outcome: task.Outcome{End: task.EndExited, ExitCode: code}}}}
}

func grant(job string, stage int, shards ...int) *Grant {
	return &Grant{Node: "a", Incarnation: 1, Job: task.JobID(job), Stage: stage, Shards: shards}
}

func TestStagesOpenInOrderAndTheJobEnds(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("init", 1), stage("work", 3, "init"), stage("merge", 1, "work")))
	run := func(st int, shards ...int) {
		toks := l.ok(10, grant("j1", st, shards...))[0].Tokens
		for i, tok := range toks {
			if tok == 0 {
				t.Fatalf("stage %d shard %d was not granted", st, shards[i])
			}
			l.ok(10, exit("j1", st, shards[i], tok, 0))
		}
	}
	if toks := l.ok(1, grant("j1", 1, 0))[0].Tokens; toks[0] != 0 {
		t.Fatal("a shard of a waiting stage was granted")
	}
	run(0, 0)
	run(1, 0, 1, 2)
	run(2, 0)
	if st := l.s.Job("j1").State; st != task.JobSucceeded {
		t.Fatalf("job is %s", st)
	}
}

func TestTokensGrowAndStaleOnesChangeNothing(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 1)))
	old := l.ok(1, grant("j1", 0, 0))[0].Tokens[0]
	l.ok(0, &Checkpoint{Ref: task.ShardRef{Job: "j1"}, Token: old, Seq: 1, Data: []byte("one")})
	for range 4 {
		l.do(10 * task.Second)
	}
	l.ok(0, &Expire{Tokens: []task.Token{old}})
	neu := l.ok(0, grant("j1", 0, 0))[0].Tokens[0]
	if neu <= old {
		t.Fatalf("token %d does not follow %d", neu, old)
	}
	ref := task.ShardRef{Job: "j1"}
	stale := []Command{
		&Checkpoint{Ref: ref, Token: old, Seq: 9, Data: []byte("late")},
		&PutOutput{Ref: ref, Token: old, Output: task.KV{Name: "a", Value: "b"}},
		&PutState{Ref: ref, Token: old, Key: "k", Value: []byte("v")},
		exit("j1", 0, 0, old, 0),
		&Renew{Node: "a", Incarnation: 1, Tokens: []task.Token{old}},
		&Expire{Tokens: []task.Token{old}},
	}
	before := l.s.Job("j1").Shard(0, 0)
	want := *before
	for _, c := range stale {
		res, ev := l.do(0, c)
		if sh := l.s.Job("j1").Shard(0, 0); sh.Token != want.Token || sh.State != want.State || sh.Due != want.Due || string(sh.Checkpoint().Data) != "one" || sh.Outputs() != nil {
			t.Fatalf("%T with a stale token changed the shard: %+v", c, sh)
		}
		switch c.(type) {
		case *Renew:
			if res[0].TTLs[0] != 0 {
				t.Fatal("a stale token was renewed")
			}
		case *Expire:
		default:
			if len(ev) != 1 || ev[0].Kind != task.EventLeaseRefuse {
				t.Fatalf("%T: the refusal is not audited: %+v", c, ev)
			}
		}
	}
	if neu != l.s.Job("j1").Shard(0, 0).Token {
		t.Fatal("the new owner lost its lease")
	}
	if cp := l.s.Job("j1").Shard(0, 0).Checkpoint(); cp == nil || string(cp.Data) != "one" {
		t.Fatal("the checkpoint did not survive the move")
	}
}

func TestARenewalBeforeTheExpiryWins(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 1)))
	tok := l.ok(1, grant("j1", 0, 0))[0].Tokens[0]
	for range 3 {
		l.do(10 * task.Second)
	}
	if got := l.s.Lapsed(l.s.Clock); len(got) != 1 {
		t.Fatalf("lapsed %v", got)
	}
	l.ok(0, &Renew{Node: "a", Incarnation: 1, Tokens: []task.Token{tok}}, &Expire{Tokens: []task.Token{tok}})
	if l.s.Lease(tok) == nil {
		t.Fatal("an expiry took effect over a renewal committed before it")
	}
	if sh := l.s.Job("j1").Shard(0, 0); sh.State != task.ShardRunning {
		t.Fatalf("first renewal did not confirm: %s", sh.State)
	}
}

func TestRetriesAreCountedAndDelayed(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 1)))
	waits := []task.Millis{10 * task.Second, 20 * task.Second}
	for try := 1; try <= 3; try++ {
		tok := l.ok(0, grant("j1", 0, 0))[0].Tokens[0]
		if tok == 0 {
			t.Fatalf("try %d was not granted", try)
		}
		l.ok(0, exit("j1", 0, 0, tok, 1))
		l.ok(0, exit("j1", 0, 0, tok, 1)) // a repeat is harmless
		if try == 3 {
			break
		}
		if got := l.s.Job("j1").Shard(0, 0).Due.Sub(l.s.Clock); got != waits[try-1] {
			t.Fatalf("wait after failure %d is %d", try, got)
		}
		if l.ok(0, grant("j1", 0, 0))[0].Tokens[0] != 0 {
			t.Fatal("granted before its time")
		}
		for range int(waits[try-1] / MaxElapsed) {
			l.do(MaxElapsed)
		}
	}
	j := l.s.Job("j1")
	if j.State != task.JobFailed || len(j.Shard(0, 0).History()) != 3 {
		t.Fatalf("%s after %d attempts", j.State, len(j.Shard(0, 0).History()))
	}
}

func TestRegistrationFreesWhatTheNodeDoesNotHold(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 2)))
	toks := l.ok(0, grant("j1", 0, 0, 1))[0].Tokens
	res := l.ok(5, node("a", 2, toks[0]))
	if len(res[0].Tokens) != 1 || res[0].Tokens[0] != toks[0] {
		t.Fatalf("kept %v", res[0].Tokens)
	}
	if sh := l.s.Job("j1").Shard(0, 1); sh.State != task.ShardPending || sh.Losses != 1 || sh.Fails != 0 {
		t.Fatalf("%+v", sh)
	}
	if r, _ := l.do(0, &Renew{Node: "a", Incarnation: 1, Tokens: toks}); r[0].Err == nil {
		t.Fatal("an old incarnation renewed")
	}
	if r, _ := l.do(0, node("a", 1)); r[0].Err == nil {
		t.Fatal("an old incarnation registered")
	}
}

func TestCancelWaitsForWhatRuns(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 3), stage("after", 1, "main")))
	tok := l.ok(0, grant("j1", 0, 0))[0].Tokens[0]
	l.ok(0, &CancelJob{Job: "j1", Reason: "no longer needed"})
	if st := l.s.Job("j1").State; st.Final() {
		t.Fatalf("%s while a shard still runs", st)
	}
	l.ok(1, &Report{Node: "a", Reports: []task.Report{{Job: "j1", Token: tok, Outcome: task.Outcome{End: task.EndCancelled}}}})
	if st := l.s.Job("j1").State; st != task.JobCancelled {
		t.Fatal(st)
	}
	l.ok(0, &RetryJob{Job: "j1", RequestID: "x"})
	if n := l.s.Job("j1").Grantable(0); n != 3 {
		t.Fatalf("%d shards are ready after retry", n)
	}
}

func TestFailureStagesAndRetry(t *testing.T) {
	l := newLedger(t)
	work := stage("work", 2)
	work.Retry.Attempts = 1
	notify := stage("notify", 1, "merge")
	notify.When = task.WhenFailure
	l.ok(0, node("a", 1), submit("j1", work, stage("merge", 1, "work"), notify))
	toks := l.ok(0, grant("j1", 0, 0, 1))[0].Tokens
	l.ok(0, exit("j1", 0, 0, toks[0], 0), exit("j1", 0, 1, toks[1], 1))
	j := l.s.Job("j1")
	if j.Stages[1].State != task.StageSkipped || j.Stages[2].State != task.StageOpen {
		t.Fatalf("merge %s, notify %s", j.Stages[1].State, j.Stages[2].State)
	}
	n := l.ok(0, grant("j1", 2, 0))[0].Tokens[0]
	l.ok(0, exit("j1", 2, 0, n, 0))
	if j := l.s.Job("j1"); j.State != task.JobFailed {
		t.Fatal(j.State)
	}
	l.ok(0, &RetryJob{Job: "j1", RequestID: "again"})
	if j := l.s.Job("j1"); j.State != task.JobRunning || j.Grantable(0) != 1 || j.NextReady(0, 0) != 1 {
		t.Fatalf("%s, %d ready", j.State, j.Grantable(0))
	}
	tok := l.ok(0, grant("j1", 0, 1))[0].Tokens[0]
	l.ok(0, exit("j1", 0, 1, tok, 0))
	tok = l.ok(0, grant("j1", 1, 0))[0].Tokens[0]
	l.ok(0, exit("j1", 1, 0, tok, 0))
	if j := l.s.Job("j1"); j.State != task.JobSucceeded || j.Stages[2].State != task.StageSkipped {
		t.Fatalf("%s, notify %s", j.State, j.Stages[2].State)
	}
}

func TestIdempotencyKeys(t *testing.T) {
	l := newLedger(t)
	keyed := func(id, cmd string) *SubmitJob {
		st := stage("main", 1)
		st.Run = cmd
		spec := task.Spec{Name: "x", Queue: "default", IdempotencyKey: "k", IdempotencyWindow: task.Minute, Retain: task.Day, Stages: []task.StageSpec{st}}
		data, _ := json.Marshal(spec)
		return &SubmitJob{RequestID: task.RequestID(id), Job: task.JobID(id), Spec: data, Digest: data}
	}
	l.ok(0, keyed("j1", "a"))
	if r := l.ok(0, keyed("j2", "a"))[0]; r.Job != "j1" || !r.Existed {
		t.Fatalf("%+v", r)
	}
	if r, _ := l.do(0, keyed("j3", "b")); r[0].Err == nil || r[0].Err.Code != "conflict" {
		t.Fatalf("%+v", r[0])
	}
	for range 6 {
		l.do(10 * task.Second)
	}
	if r := l.ok(0, keyed("j4", "b"))[0]; r.Existed {
		t.Fatal("the window has no end")
	}
}
