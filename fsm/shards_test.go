package fsm

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"lanjobs/task"
)

func from(name, source string, needs ...string) task.StageSpec {
	st := stage(name, 0, needs...)
	st.ShardsFrom = source
	return st
}

// finish does a shard with outputs.
func (l *ledger) finish(job string, stage, shard int, outputs ...task.KV) {
	l.t.Helper()
	c := exit(job, stage, shard, l.one(job, stage, shard), 0)
	c.Reports[0].Outputs = outputs
	l.ok(0, c)
}

func TestAStageGetsItsShardsFromAnOutput(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("init", 2), from("work", "init.parts", "init"), from("more", "work.none", "work"), stage("merge", 1, "more")))
	l.finish("j1", 0, 1, task.KV{Name: "parts", Value: "c\r\n\n d \n"})
	if l.s.Job("j1").Stages[1].Len() != 0 {
		t.Fatal("it has shards before it opens")
	}
	l.finish("j1", 0, 0, task.KV{Name: "parts", Value: "a\n\nb"}, task.KV{Name: "other", Value: "x"})
	j := l.s.Job("j1")
	got := ""
	for k := range j.Stages[1].Len() {
		got += j.Item(1, k) + "|"
	}
	if got != "a|b|c| d |" || j.Stages[1].State != task.StageOpen {
		t.Fatalf("%q, %s", got, j.Stages[1].State)
	}
	l.s = reread(t, l.s)
	for k := range 4 {
		l.finish("j1", 1, k, task.KV{Name: "none", Value: "\n\n"})
	}
	j = l.s.Job("j1")
	if j.Stages[2].State != task.StageSucceeded || j.Stages[3].State != task.StageOpen { // nothing to do is done
		t.Fatalf("%+v", j.Stages[2:])
	}
	l.finish("j1", 3, 0)
	if l.s.Job("j1").State != task.JobSucceeded {
		t.Fatal(l.s.Job("j1").State)
	}
	l.ok(0, &RetryJob{Job: "j1", Stage: "init", All: true}) // the lines may be others now
	if j := l.s.Job("j1"); j.Stages[1].Len() != 0 || j.Stages[1].State != task.StageWaiting {
		t.Fatalf("%+v", j.Stages[1])
	}
	l.finish("j1", 0, 0)
	l.finish("j1", 0, 1)
	if j := l.s.Job("j1"); j.State != task.JobFailed || j.Stages[1].State != task.StageFailed || j.Stages[1].Reason != "no shard of init has an output parts" {
		t.Fatalf("%s, %+v", j.State, j.Stages[1])
	}
	l.ok(0, &RetryJob{Job: "j1"})
	if j := l.s.Job("j1"); j.State != task.JobFailed {
		t.Fatal(j.State)
	}
}

func TestTooManyLinesFailTheJobAndSayWhy(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("init", 1), from("work", "init.parts", "init")))
	c := exit("j1", 0, 0, l.one("j1", 0, 0), 0)
	c.Reports[0].Outputs = []task.KV{{Name: "parts", Value: "a\nb\nc"}}
	l.s.shards += maxTotalShards - 3
	_, events := l.s.ApplyBatch(9, &Batch{Commands: []Command{c}})
	l.s.shards -= maxTotalShards - 3
	if j := l.s.Job("j1"); j.State != task.JobFailed || !strings.Contains(j.Stages[1].Reason, "more than 2 lines") || events[len(events)-2].Reason != j.Stages[1].Reason {
		t.Fatalf("%+v, %+v", l.s.Job("j1"), events)
	}
	if err := l.s.Check(); err != nil {
		t.Fatal(err)
	}
}

// TestABroadcastLeavesOutWhoRefusesItsQueue: a shard for such a machine would wait for ever.
func TestABroadcastLeavesOutWhoRefusesItsQueue(t *testing.T) {
	st := stage("main", 0)
	st.Broadcast = true
	picky := node("b", 1)
	picky.Info.Refuses = []string{task.DefaultQueue}
	l := newLedger(t)
	l.ok(0, node("a", 1), picky, submit("j1", st))
	if got := fmt.Sprint(l.s.Job("j1").Stages[0].Pins); got != "[a]" {
		t.Fatal(got)
	}
}

func TestABroadcastRunsOnceOnEveryMemberThatFits(t *testing.T) {
	st := stage("main", 0)
	st.Broadcast = true
	st.Require = []task.Requirement{{Label: "node", Op: task.OpNotEqual, Values: []string{"c"}}}
	l := newLedger(t)
	l.ok(0, node("a", 1), node("b", 1), node("c", 1), node("d", 1), &SetOnline{Node: "d"}, submit("j1", st))
	j := l.s.Job("j1")
	if got := fmt.Sprint(j.Stages[0].Pins); got != "[a b d]" { // d comes back some day
		t.Fatal(got)
	}
	on := func(id string, shards ...int) int {
		t.Helper()
		return granted2(l.ok(0, &Grant{Node: task.NodeID(id), Incarnation: 1, Job: "j1", Shards: shards})[0])
	}
	if on("b", 0, 2) != 0 || on("c", 0, 1, 2) != 0 || on("a", 0, 1, 2) != 1 || on("b", 0, 1, 2) != 1 {
		t.Fatal("a shard went to another machine than its own")
	}
	l.ok(0, exit("j1", 0, 0, l.shard("j1", 0, 0).Token, 0))
	_, events := l.do(0, &SetNode{Node: "d", Action: NodeRemove})
	if sh := l.shard("j1", 0, 2); sh.State != task.ShardFailed || events[1].Reason != "its machine d is no longer a member" {
		t.Fatalf("%+v, %+v", sh, events)
	}
	l.ok(0, &SetNode{Node: "b", Action: NodeLeave}) // it runs there still
	if sh := l.shard("j1", 0, 1); sh.State != task.ShardAssigned {
		t.Fatalf("%+v", sh)
	}
	l.lead(task.AssignTTL)
	l.expire()
	if j := l.s.Job("j1"); j.State != task.JobFailed || l.shard("j1", 0, 1).State != task.ShardFailed {
		t.Fatalf("%+v", j)
	}
	l.ok(0, &RetryJob{Job: "j1"})
	if j := l.s.Job("j1"); j.State != task.JobFailed {
		t.Fatalf("%s: it waits for machines that are gone", j.State)
	}
	st.Require[0].Op, st.Require[0].Values = task.OpEqual, []string{"nowhere"}
	l.ok(0, submit("j2", st))
	if j := l.s.Job("j2"); j.State != task.JobFailed || j.Stages[0].Reason != "no machine fits" {
		t.Fatalf("%+v", j)
	}
}

func TestTheHeavierShardGoesFirst(t *testing.T) {
	st := stage("main", 5)
	st.Weights = []int{1, 9, 1, 9, 5}
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", st))
	order := func(want string) {
		t.Helper()
		got := ""
		l.s.Job("j1").EachReady(0, func(k int) bool { got += fmt.Sprint(k); return true })
		if got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
	order("13402")
	l.finish("j1", 0, 3)
	order("1402")
	l.s = reread(t, l.s)
	order("1402")
	if j := l.s.Job("j1"); j.NextReady(0, 0) != 0 || j.NextReady(0, 3) != 4 {
		t.Fatal(j.NextReady(0, 0), j.NextReady(0, 3))
	}
}

func ranged(start, end, size int64) task.StageSpec {
	r := &task.RangeSpec{Start: start, End: end, Size: size}
	st := stage("main", int(r.Shards()))
	st.Range = r
	return st
}

func TestASplitGivesAwayWhatIsNotBegun(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", ranged(0, 100, 50)))
	tok := l.one("j1", 0, 0)
	ref := task.ShardRef{Job: "j1"}
	cursor := func(at int64) task.ShardRange {
		t.Helper()
		return l.ok(0, &Cursor{Ref: ref, Token: tok, Cursor: at})[0].Range
	}
	want := &SplitShard{Ref: ref, Token: tok}
	l.refused("conflict", want) // it has not said how far it is
	if r := cursor(10); r != (task.ShardRange{Start: 0, End: 50}) {
		t.Fatal(r)
	}
	if left, ok := l.s.Job("j1").Splittable(0, 0); left != 40 || !ok {
		t.Fatal(left, ok)
	}
	l.ok(0, want, want)
	if r := cursor(10); r.End != 50 { // a late repeat: the task may have gone on since
		t.Fatal(r)
	}
	l.s = reread(t, l.s)
	r := cursor(21)
	if r != (task.ShardRange{Start: 0, End: 36}) || l.s.Job("j1").Stages[0].Len() != 3 {
		t.Fatal(r)
	}
	if part, _ := l.s.Job("j1").RangeOf(0, 2); part != (task.ShardRange{Start: 36, End: 50}) {
		t.Fatal(part)
	}
	if again := cursor(21); again != r || l.s.Job("j1").Stages[0].Len() != 3 {
		t.Fatal(again)
	}
	l.refused("invalid", &Cursor{Ref: ref, Token: tok, Cursor: 37}, &Cursor{Ref: ref, Token: tok, Cursor: -1})
	if r, ev := l.do(0, &Cursor{Ref: ref, Token: tok + 9, Cursor: 30}); r[0].Err == nil || ev[0].Kind != task.EventLeaseRefuse {
		t.Fatalf("%+v", r)
	}
	l.ok(0, exit("j1", 0, 0, tok, 1)) // the next attempt begins its part anew
	l.lead(task.Minute)
	tok = l.one("j1", 0, 0)
	if part, _ := l.s.Job("j1").RangeOf(0, 0); part != r {
		t.Fatal(part)
	}
	l.refused("conflict", &SplitShard{Ref: ref, Token: tok})
	cursor(35)
	l.refused("conflict", &SplitShard{Ref: ref, Token: tok}) // one number is left
	for k := range 3 {
		if k > 0 {
			tok = l.one("j1", 0, k)
		}
		l.ok(0, exit("j1", 0, k, tok, 0))
	}
	if j := l.s.Job("j1"); j.State != task.JobSucceeded {
		t.Fatal(j.State)
	}
}

// TestEveryNumberOfARangeIsDone: workers take numbers at their cursors, die, come back and are split at any time; each number is
// begun within the shard that has it, and in the end each was done by a shard that succeeded, none by two.
func TestEveryNumberOfARangeIsDone(t *testing.T) {
	const numbers = 300
	for seed := range int64(40) {
		r := rand.New(rand.NewSource(seed))
		st := ranged(0, numbers, 100)
		st.Retry.Attempts, st.Retry.LeaseLosses, st.Retry.Initial = maxRetries, maxRetries, 0
		l := newLedger(t)
		l.ok(0, node("a", 1), submit("j1", st))
		type work struct {
			token task.Token
			at    int64
			part  task.ShardRange
		}
		running, done := map[int]*work{}, make([]int, numbers)
		splits := 0
		for step := 0; l.s.Job("j1").State != task.JobSucceeded; step++ {
			if step > 5000 {
				t.Fatalf("seed %d does not end", seed)
			}
			if r.Intn(50) == 0 {
				l.s = reread(t, l.s)
			}
			j := l.s.Job("j1")
			k := r.Intn(j.Stages[0].Len())
			w, ref := running[k], task.ShardRef{Job: "j1", Shard: k}
			if w == nil {
				if tok := l.ok(1, grant("j1", 0, k))[0].Tokens[0]; tok != 0 {
					part, _ := j.RangeOf(0, k)
					running[k] = &work{tok, part.Start, part}
				}
				continue
			}
			switch n := r.Intn(10); {
			case n == 0: // it dies
				l.ok(1, &Report{Node: "a", Reports: []task.Report{{Job: "j1", Shard: k, Token: w.token, Outcome: task.Outcome{End: task.EndSignal, Signal: 9}}}})
				delete(running, k)
			case n < 4:
				if _, ok := j.Splittable(0, k); ok {
					l.ok(1, &SplitShard{Ref: ref, Token: w.token})
				}
			case w.at < w.part.End:
				before := j.Stages[0].Len()
				cursor := &Cursor{Ref: ref, Token: w.token, Cursor: w.at}
				w.part = l.ok(1, cursor)[0].Range
				if r.Intn(4) == 0 { // a repeat of it comes late: it must not take what is being begun now
					w.at = min(w.at+1+int64(r.Intn(9)), w.part.End)
					if again := l.ok(1, cursor)[0].Range; again != w.part {
						t.Fatalf("seed %d: a repeat took %v of %v", seed, again, w.part)
					}
				} else {
					w.at = min(w.at+1+int64(r.Intn(9)), w.part.End)
				}
				splits += l.s.Job("j1").Stages[0].Len() - before
			default:
				l.ok(1, exit("j1", 0, k, w.token, 0))
				for x := w.part.Start; x < w.part.End; x++ {
					done[x]++
				}
				delete(running, k)
			}
		}
		for x, n := range done {
			if n != 1 {
				t.Fatalf("seed %d: number %d was done %d times", seed, x, n)
			}
		}
		if splits == 0 {
			t.Errorf("seed %d: nothing was split", seed)
		}
	}
}
