package fsm

import (
	"testing"

	"lanjobs/task"
)

// TestALateRepeatOfARegistrationFreesNothing: the node has been granted work since; freeing it would let a second node
// start what this one runs (I1).
func TestALateRepeatOfARegistrationFreesNothing(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 1)))
	l.ok(0, node("a", 2))
	tok := l.ok(0, &Grant{Node: "a", Incarnation: 2, Job: "j1", Shards: []int{0}})[0].Tokens[0]
	r, events := l.do(0, node("a", 2))
	if r[0].Err != nil || len(r[0].Tokens) != 0 || len(events) != 0 {
		t.Fatalf("%+v, %+v", r, events)
	}
	if l.s.Lease(tok) == nil {
		t.Fatal("a repeated registration freed a lease that was granted after it")
	}
	if r := l.ok(0, node("a", 2, tok)); len(r[0].Tokens) != 1 {
		t.Fatalf("kept %v", r[0].Tokens)
	}
	l.ok(0, node("a", 3))
	if l.s.Lease(tok) != nil {
		t.Fatal("a new start does not hold it and did not free it (I13)")
	}
}

func TestReportsCountOnlyFromTheNodeThatHolds(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), node("b", 1), submit("j1", stage("main", 1)))
	tok := l.one("j1", 0, 0)
	forged := exit("j1", 0, 0, tok, 0)
	forged.Node = "b"
	if r, ev := l.do(0, forged); r[0].Codes[0] != "stale_token" || len(ev) != 1 || ev[0].Node != "b" {
		t.Fatalf("%+v, %+v", r, ev)
	}
	if r, ev := l.do(0, &Renew{Node: "b", Incarnation: 1, Tokens: []task.Token{tok}}); r[0].TTLs[0] != 0 || len(ev) != 1 || ev[0].Kind != task.EventLeaseRefuse {
		t.Fatalf("another node renewed: %+v, %+v", r, ev)
	}
	l.ok(0, exit("j1", 0, 0, tok, 0))
	if r, _ := l.do(0, forged); r[0].Codes[0] != "stale_token" {
		t.Fatalf("a repeat by another node was accepted: %+v", r)
	}
}

func TestNobodyReportsWhatOnlyTheClusterDecides(t *testing.T) {
	for _, end := range clusterEnds {
		l := newLedger(t)
		l.ok(0, node("a", 1), submit("j1", stage("main", 1)))
		c := exit("j1", 0, 0, l.one("j1", 0, 0), 0)
		c.Reports[0].Outcome.End = end
		if r := l.ok(0, c)[0]; r.Codes[0] != "invalid" {
			t.Fatalf("%s: %+v", end, r)
		}
	}
}

func TestTokensGrowOverGenerations(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 4)))
	last := l.one("j1", 0, 0)
	next := func(shard int) {
		t.Helper()
		l.s = reread(t, l.s)
		tok := l.one("j1", 0, shard)
		if tok <= last {
			t.Fatalf("token %x follows %x (I3)", tok, last)
		}
		last = tok
	}
	l.ok(0, &NewGeneration{Reason: "recovered"})
	next(1)
	l.ok(0, &NewGeneration{Reason: "an old backup", AtLeast: 7})
	if next(2); last.Generation() != 7 {
		t.Fatalf("generation %d", last.Generation())
	}
	l.s.nextToken = maxToken // 2^40 grants later
	if next(3); last.Generation() != 8 {
		t.Fatalf("a used-up generation is followed by %d", last.Generation())
	}
}

func TestNothingIsGrantedWhenTheTokensAreUsedUp(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 1)))
	if r, _ := l.do(0, &NewGeneration{AtLeast: maxGeneration + 1}); r[0].Err == nil {
		t.Fatal("a generation beyond the last was begun")
	}
	l.ok(0, &NewGeneration{AtLeast: maxGeneration})
	l.s.nextToken = maxToken
	if tok := l.ok(0, grant("j1", 0, 0))[0].Tokens[0]; tok != 0 {
		t.Fatalf("granted %x", tok)
	}
	if r, _ := l.do(0, &NewGeneration{}); r[0].Err == nil {
		t.Fatal("a generation beyond the last was begun")
	}
}

func TestAnUnorderedGrantIsRefused(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 3)))
	for _, shards := range [][]int{{1, 0}, {1, 1}} {
		if r, ev := l.do(0, grant("j1", 0, shards...)); r[0].Err == nil || len(ev) != 0 {
			t.Fatalf("%v: %+v", shards, r[0])
		}
	}
}

func TestAGrantTakesOnlyWhatIsThere(t *testing.T) {
	st := stage("main", 9)
	st.Parallelism = 3
	l := newLedger(t)
	small := node("a", 1)
	small.Info.Slots = 2
	l.ok(0, small, node("b", 1), submit("j1", st))
	count := func(node task.NodeID, shards ...int) (n int) {
		for _, tok := range l.ok(0, &Grant{Node: node, Incarnation: 1, Job: "j1", Shards: shards})[0].Tokens {
			if tok != 0 {
				n++
			}
		}
		return n
	}
	if n := count("a", -1, 0, 1, 2, 9); n != 2 {
		t.Fatalf("2 slots took %d", n)
	}
	if n := count("b", 0, 1, 2, 3, 4); n != 1 {
		t.Fatalf("parallelism 3 with 2 running let %d start", n)
	}
	for _, c := range []Command{&SetNode{Node: "b", Action: NodeDrain}, &SetOnline{Node: "b"}} {
		l.ok(0, &SetNode{Node: "b", Action: NodeResume}, &SetOnline{Node: "b", Online: true}, c)
		if r, _ := l.do(0, &Grant{Node: "b", Incarnation: 1, Job: "j1", Shards: []int{3}}); r[0].Err == nil {
			t.Fatalf("granted after %+v", c)
		}
	}
}

func TestARemovedNodeKeepsItsLeasesUntilTheyRunOut(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 2)))
	toks := l.ok(0, grant("j1", 0, 0, 1))[0].Tokens
	l.ok(0, &Renew{Node: "a", Incarnation: 1, Tokens: toks}, &SetNode{Node: "a", Action: NodeRemove})
	if l.s.LeaseCount() != 2 {
		t.Fatal("removing a node freed what it may still be running (I1)")
	}
	if r, _ := l.do(0, &Renew{Node: "a", Incarnation: 1, Tokens: toks}); r[0].Err == nil {
		t.Fatal("a removed node renewed")
	}
	l.ok(0, exit("j1", 0, 0, toks[0], 0)) // what it has done is done
	l.lead(task.DefaultTTL)
	l.expire()
	if l.s.LeaseCount() != 0 || l.shard("j1", 0, 0).State != task.ShardSucceeded {
		t.Fatal("the leases of a removed node do not end")
	}
}

// TestTheBoundOfDeadlinesHolds: a leader sleeps until Due, so nothing may lapse before it, and it must not lie far in the past.
func TestTheBoundOfDeadlinesHolds(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 3)))
	toks := l.ok(0, grant("j1", 0, 0, 1, 2))[0].Tokens
	first, _ := l.s.Due()
	if first != l.s.Clock.Add(task.AssignTTL) {
		t.Fatalf("due %d", first)
	}
	l.ok(0, &Renew{Node: "a", Incarnation: 1, Tokens: toks})
	if got := l.s.Lapsed(first); len(got) != 0 {
		t.Fatalf("lapsed %v", got)
	}
	l.lead(task.AssignTTL)
	if at, _ := l.s.Due(); at != task.Instant(task.DefaultTTL) {
		t.Fatalf("due %d, after the first bound has passed", at)
	}
	for _, tok := range toks {
		l.ok(0, exit("j1", 0, int(tok-toks[0]), tok, 0))
	}
	if _, ok := l.s.Due(); ok {
		t.Fatal("something is due although nothing is left")
	}
}

// TestACancelledWaitIsNotDue: a leader would keep the clock running for it, and the disks awake.
func TestACancelledWaitIsNotDue(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 1)))
	c := exit("j1", 0, 0, l.one("j1", 0, 0), 0)
	c.Reports[0].Outcome = task.Outcome{End: task.EndDeferred, Wait: task.Hour}
	l.ok(0, c)
	if at, ok := l.s.Due(); !ok || at != l.s.Clock.Add(task.Hour) {
		t.Fatalf("due %d, %v", at, ok)
	}
	l.ok(0, &CancelJob{Job: "j1"})
	if at, ok := l.s.Due(); ok {
		t.Fatalf("a cancelled shard is due at %d", at)
	}
}
