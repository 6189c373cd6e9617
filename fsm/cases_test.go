package fsm

import (
	"testing"

	"lanjobs/task"
)

// What other schedulers got wrong, as far as the ledger alone can get it wrong. The numbers are those of the case list.

// lead lets time pass as a leader does.
func (l *ledger) lead(m task.Millis) {
	for ; m > 0; m -= MaxElapsed {
		l.do(min(m, MaxElapsed))
	}
}

// expire ends what has lapsed.
func (l *ledger) expire() []task.Event {
	l.t.Helper()
	_, events := l.do(0, &Expire{Tokens: l.s.Lapsed(l.s.Clock)})
	return events
}

// one grants a shard to node a.
func (l *ledger) one(job string, stage, shard int) task.Token {
	l.t.Helper()
	tok := l.ok(0, grant(job, stage, shard))[0].Tokens[0]
	if tok == 0 {
		l.t.Fatalf("%s/%d/%d was not granted", job, stage, shard)
	}
	return tok
}

func (l *ledger) shard(job string, stage, shard int) *Shard {
	return l.s.Job(task.JobID(job)).Shard(stage, shard)
}

func TestC03LongWorkIsNotHandedOverWhileItIsRenewed(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 1)))
	tok := l.one("j1", 0, 0)
	for range 6 * 10 { // six times the TTL, a heartbeat each tenth
		l.lead(task.DefaultTTL / 10)
		if r := l.ok(0, &Renew{Node: "a", Incarnation: 1, Tokens: []task.Token{tok}})[0]; r.TTLs[0] == 0 {
			t.Fatal("the lease was lost")
		}
		if ev := l.expire(); len(ev) != 0 {
			t.Fatalf("something expired: %+v", ev)
		}
	}
	if sh := l.shard("j1", 0, 0); sh.Token != tok || sh.Tries != 1 {
		t.Fatalf("%+v", sh)
	}
	l.ok(0, exit("j1", 0, 0, tok, 0))
}

func TestC10WhatALostNodeRanIsPendingAgain(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 2)))
	confirmed, silent := l.one("j1", 0, 0), l.one("j1", 0, 1)
	l.ok(0, &Renew{Node: "a", Incarnation: 1, Tokens: []task.Token{confirmed}})
	l.lead(task.AssignTTL)
	l.expire()
	if a, b := l.shard("j1", 0, 0), l.shard("j1", 0, 1); a.State != task.ShardRunning || b.State != task.ShardPending || b.History()[0].Outcome.End != task.EndNotConfirmed {
		t.Fatalf("%+v, %+v", a, b)
	}
	l.lead(task.DefaultTTL)
	l.expire()
	if n := l.s.LeaseCount(); n != 0 || l.s.Job("j1").Stages[0].Active() != 0 {
		t.Fatalf("%d leases are left of a node that is gone", n)
	}
	if _, ok := l.s.Due(); ok {
		t.Fatal("something is due although nothing is leased")
	}
	if l.s.Lease(silent) != nil || l.s.Job("j1").Grantable(0) != 2 {
		t.Fatal("the shards are not ready again")
	}
}

func TestC12AReportOvertakesTheConfirmation(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 1)))
	tok := l.one("j1", 0, 0)
	l.ok(0, exit("j1", 0, 0, tok, 0))
	if r := l.ok(0, &Renew{Node: "a", Incarnation: 1, Tokens: []task.Token{tok}})[0]; r.TTLs[0] != 0 {
		t.Fatal("a lease was renewed after its end")
	}
	if j := l.s.Job("j1"); j.State != task.JobSucceeded || j.Shard(0, 0).State != task.ShardSucceeded {
		t.Fatalf("%s, shard %s", j.State, j.Shard(0, 0).State)
	}
}

func TestC19DoneShardsAreNotRunAgain(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("work", 4), stage("merge", 1, "work")))
	toks := l.ok(0, grant("j1", 0, 0, 1, 2, 3))[0].Tokens
	l.ok(0, exit("j1", 0, 0, toks[0], 0), exit("j1", 0, 1, toks[1], 0))
	l.ok(0, node("a", 2)) // the node comes back empty
	toks = l.ok(0, &Grant{Node: "a", Incarnation: 2, Job: "j1", Shards: []int{0, 1, 2, 3}})[0].Tokens
	if toks[0] != 0 || toks[1] != 0 || toks[2] == 0 || toks[3] == 0 {
		t.Fatalf("granted %v", toks)
	}
	merges := 0
	_, events := l.do(0, exit("j1", 0, 2, toks[2], 0), exit("j1", 0, 3, toks[3], 0))
	for _, e := range events {
		if e.Kind == task.EventStageState && e.Stage == "merge" {
			merges++
		}
	}
	if merges != 1 {
		t.Fatalf("the merge opened %d times", merges)
	}
}

func TestC22OneBadShardSpoilsNoOther(t *testing.T) {
	for _, c := range []struct {
		success task.Success
		want    task.JobState
		merge   task.StageState
	}{
		{task.Success{Percent: 80}, task.JobPartial, task.StageOpen},
		{task.Success{Count: 4}, task.JobPartial, task.StageOpen},
		{task.Success{Percent: 81}, task.JobFailed, task.StageSkipped},
		{task.Success{}, task.JobFailed, task.StageSkipped},
	} {
		work := stage("work", 5)
		work.Parallelism, work.Success, work.Retry.Initial = 1, c.success, 0
		l := newLedger(t)
		l.ok(0, node("a", 1), submit("j1", work, stage("merge", 1, "work")))
		starts := map[int]int{}
		for l.s.Job("j1").Stages[0].State == task.StageOpen {
			k := l.s.Job("j1").NextReady(0, 0)
			tok := l.one("j1", 0, k)
			starts[k]++
			code := 0
			if k == 1 {
				code = 1
			}
			l.ok(0, exit("j1", 0, k, tok, code))
		}
		j := l.s.Job("j1")
		if starts[0] != 1 || starts[1] != 3 || starts[2] != 1 || starts[3] != 1 || starts[4] != 1 || j.Shard(0, 1).State != task.ShardFailed {
			t.Fatalf("%+v: starts %v", c.success, starts)
		}
		if j.Stages[1].State != c.merge {
			t.Fatalf("%+v: the merge is %s", c.success, j.Stages[1].State)
		}
		if c.merge == task.StageOpen {
			l.ok(0, exit("j1", 1, 0, l.one("j1", 1, 0), 0))
		}
		if j := l.s.Job("j1"); j.State != c.want {
			t.Fatalf("%+v: the job is %s", c.success, j.State)
		}
		// The rerun starts the bad shard alone, then the stage after it.
		l.ok(0, &RetryJob{Job: "j1", RequestID: "again"})
		if j := l.s.Job("j1"); j.Grantable(0) != 1 || j.NextReady(0, 0) != 1 {
			t.Fatalf("%+v: %d are ready after the retry", c.success, j.Grantable(0))
		}
		l.ok(0, exit("j1", 0, 1, l.one("j1", 0, 1), 0))
		l.ok(0, exit("j1", 1, 0, l.one("j1", 1, 0), 0))
		if j := l.s.Job("j1"); j.State != task.JobSucceeded {
			t.Fatalf("%+v: %s after the retry", c.success, j.State)
		}
	}
}

func TestC23AttemptsAreCountedExactly(t *testing.T) {
	for _, attempts := range []int{1, 3, 4} {
		st := stage("main", 3)
		st.Retry.Attempts, st.Retry.Initial = attempts, 0
		l := newLedger(t)
		l.ok(0, node("a", 1), submit("j1", st))
		starts := map[int]int{}
		lost := 0
		for inc := uint64(1); !l.s.Job("j1").State.Final(); {
			k := l.s.Job("j1").NextReady(0, 0)
			tok := l.ok(0, &Grant{Node: "a", Incarnation: inc, Job: "j1", Shards: []int{k}})[0].Tokens[0]
			starts[k]++
			if starts[k] == 2 { // power off: no attempt of the task's
				inc++
				lost++
				l.ok(0, node("a", inc))
				continue
			}
			l.ok(0, exit("j1", 0, k, tok, 1))
		}
		for k := range 3 {
			want := attempts
			if attempts > 1 {
				want++ // the lost one
			}
			sh := l.shard("j1", 0, k)
			if starts[k] != want || int(sh.Tries) != want || int(sh.Fails) != attempts || sh.State != task.ShardFailed {
				t.Fatalf("%d attempts: shard %d was started %d times: %+v", attempts, k, starts[k], sh)
			}
		}
	}
}

func TestC34TheNextAttemptGetsTheLastCheckpoint(t *testing.T) {
	st := stage("main", 1)
	st.Retry.Initial = 0
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", st))
	tok := l.one("j1", 0, 0)
	for n := uint64(1); n <= 20; n++ {
		if r := l.ok(0, &Checkpoint{Ref: task.ShardRef{Job: "j1"}, Token: tok, Seq: n, Data: []byte{byte(n)}})[0]; r.Version != n {
			t.Fatalf("%+v", r)
		}
	}
	// Two saves of an attempt may overtake each other on the wire: the older one does not count, the same again does.
	for _, c := range []struct {
		seq  uint64
		data string
		ok   bool
	}{{19, "late", false}, {20, "other", false}, {20, string([]byte{20}), true}, {0, "", false}} {
		if r, ev := l.do(0, &Checkpoint{Ref: task.ShardRef{Job: "j1"}, Token: tok, Seq: c.seq, Data: []byte(c.data)}); (r[0].Err == nil) != c.ok || len(ev) != 0 {
			t.Fatalf("%+v: %+v", c, r[0])
		}
	}
	l.ok(0, exit("j1", 0, 0, tok, 1))
	l.one("j1", 0, 0)
	if cp := l.shard("j1", 0, 0).Checkpoint(); cp == nil || cp.Seq != 20 || cp.Data[0] != 20 {
		t.Fatalf("%+v", cp)
	}
}

func TestC35ALateOwnerChangesNothing(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), node("b", 1), submit("j1", stage("main", 1)))
	ref := task.ShardRef{Job: "j1"}
	old := l.one("j1", 0, 0)
	l.ok(0, &Checkpoint{Ref: ref, Token: old, Seq: 50, Data: []byte("50")})
	l.lead(task.AssignTTL)
	l.expire()
	tok := l.ok(0, &Grant{Node: "b", Incarnation: 1, Job: "j1", Shards: []int{0}})[0].Tokens[0]
	l.ok(0, &Checkpoint{Ref: ref, Token: tok, Seq: 80, Data: []byte("80")})
	late := exit("j1", 0, 0, old, 0)
	for seq := uint64(51); seq < 90; seq += 10 {
		if r, ev := l.do(0, &Checkpoint{Ref: ref, Token: old, Seq: seq, Data: []byte("late")}); r[0].Err == nil || len(ev) != 1 || ev[0].Kind != task.EventLeaseRefuse {
			t.Fatalf("late checkpoint %d: %+v, %+v", seq, r[0], ev)
		}
	}
	for range 2 {
		if r, ev := l.do(0, late); r[0].Codes[0] != "stale_token" || len(ev) != 1 || ev[0].Kind != task.EventLeaseRefuse || ev[0].Node != "a" {
			t.Fatalf("late report: %+v, %+v", r[0], ev)
		}
	}
	if sh := l.shard("j1", 0, 0); sh.State != task.ShardAssigned || sh.Token != tok || string(sh.Checkpoint().Data) != "80" {
		t.Fatalf("%+v", sh)
	}
	if r := l.ok(0, &Report{Node: "b", Reports: []task.Report{{Job: "j1", Token: tok, Outcome: task.Outcome{End: task.EndExited}}}})[0]; r.Codes[0] != "" {
		t.Fatalf("%+v", r)
	}
	l.do(0, late)
	if j := l.s.Job("j1"); j.State != task.JobSucceeded {
		t.Fatal(j.State)
	}
}
