package worker

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/task"
)

// stubborn never ends and ignores SIGTERM.
func stubborn(*task.Assignment) work { return work{takes: -1, ignores: true} }

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(t *testing.T, l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		defer l.close()
		f(t, l)
	})
}

// runs waits until a node runs n processes.
func (l *lab) runs(n *node, count int) {
	l.t.Helper()
	l.until(30*time.Second, fmt.Sprintf("%d running", count), func() bool { return len(n.r.alive()) == count })
}

// confirmed waits until n leases are confirmed.
func (l *lab) confirmed(n int) {
	l.t.Helper()
	l.until(10*time.Second, "confirmed", func() bool { return l.g.tally()[task.ShardRunning] == n })
}

func TestHolderStopsFirst(t *testing.T) {
	for _, ttl := range []task.Millis{2 * task.Second, task.Minute, task.DefaultTTL} {
		for _, r := range []struct{ holder, granter float64 }{{1, 1}, {0.9, 1.1}, {1.1, 0.9}, {0.9, 0.9}} {
			t.Run(fmt.Sprintf("ttl %v holder %v granter %v", ttl.Duration(), r.holder, r.granter), func(t *testing.T) {
				bubble(t, func(t *testing.T, l *lab) {
					l.g.rate = r.granter
					l.g.job("j1", 1, task.DefaultLease(ttl))
					n := l.node(1, r.holder, stubborn)
					n.r.set(func(r *fakeRunner) { r.deaf = true })
					l.runs(n, 1)
					l.confirmed(1)
					n.set(func(w *wire) { w.cutOut = true })
					l.sleep(100 * time.Millisecond)
					d := n.r.alive()[0].Deadlines
					l.until(2*ttl.Duration(), "killed", func() bool { return len(n.r.alive()) == 0 })
					if s := l.g.tally(); s[task.ShardRunning] != 1 {
						t.Fatalf("the granter ended the lease before the holder did: %v", s)
					}
					stops := n.r.stopped()
					if len(stops) != 2 {
						t.Fatalf("stops: %+v", stops)
					}
					term, kill := stops[0], stops[1]
					if term.reason != task.StopLeaseLost || term.at < d.Term || term.at > d.Term.Add(5*time.Millisecond) || term.grace <= 0 {
						t.Errorf("SIGTERM %+v, want at %v", term, d.Term)
					}
					if kill.grace != 0 || kill.at < d.Kill || kill.at > d.Kill.Add(5*time.Millisecond) {
						t.Errorf("SIGKILL %+v, want at %v", kill, d.Kill)
					}
				})
			})
		}
	}
}

// Without faults nothing ever expires, and one failover changes nothing (I12, C03).
func TestNothingExpiresWithoutFaults(t *testing.T) {
	for _, failover := range []bool{false, true} {
		hours := map[bool]int{false: 10, true: 3}[failover]
		bubble(t, func(t *testing.T, l *lab) {
			l.g.job("j1", 2, task.DefaultLease(task.DefaultTTL))
			l.g.job("j2", 1, task.DefaultLease(10*task.Second))
			a, b := l.node(2, 1.05, endless), l.node(1, 0.95, endless)
			for _, n := range l.nodes {
				n.r.set(func(r *fakeRunner) { r.nap = time.Minute }) // nobody sleeps
			}
			l.until(time.Minute, "all running", func() bool { return len(a.r.alive())+len(b.r.alive()) == 3 })
			for range hours {
				l.sleep(30 * time.Minute)
				if failover {
					l.g.setDown(true)
					l.sleep(2500 * time.Millisecond)
					l.g.setDown(false)
				}
				l.sleep(30 * time.Minute)
			}
			starts := a.r.began() + b.r.began()
			if len(l.g.expired) > 0 || starts != 3 || len(a.r.stopped())+len(b.r.stopped()) > 0 {
				t.Errorf("failover %v: expired %v, %d starts, stops %v %v", failover, l.g.expired, starts, a.r.stopped(), b.r.stopped())
			}
		})
	}
}

func TestHeartbeatFollowsTheShortestLease(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n := l.node(4, 1, endless)
		for i := range 3 { // they start at different times, and renew together none the less
			l.g.job(task.JobID(fmt.Sprintf("j%d", i)), 1, task.DefaultLease(task.DefaultTTL))
			l.runs(n, i+1)
			l.sleep(7 * time.Second)
		}
		l.sleep(time.Minute)
		before := l.g.see(&l.g.renews)
		l.sleep(time.Hour)
		if got := l.g.see(&l.g.renews) - before; got < 118 || got > 122 {
			t.Errorf("%d requests in an hour for three leases with 30 s heartbeat, want one each 30 s", got)
		}
		l.g.job("short", 1, task.LeaseTerms{TTL: 6 * task.Second, Heartbeat: 5 * task.Second})
		l.runs(n, 4)
		l.sleep(time.Second)
		before = l.g.see(&l.g.renews)
		l.sleep(time.Minute)
		if got := l.g.see(&l.g.renews) - before; got < 29 || got > 32 {
			t.Errorf("%d requests in a minute with a 6 s lease, want one each 2 s: at most a third of it (R6)", got)
		}
	})
}

// Requests arrive and answers do not: the granter's lease is fresh, and the holder stops nevertheless, by what it knows.
func TestOneWayLoss(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 1, task.DefaultLease(task.Minute))
		n := l.node(1, 1, func(*task.Assignment) work { return work{takes: -1, ends: time.Second} })
		l.runs(n, 1)
		l.confirmed(1)
		n.set(func(w *wire) { w.cutBack = true })
		l.until(time.Minute, "stopped", func() bool { return len(n.r.alive()) == 0 })
		if len(l.g.expired) > 0 {
			t.Fatal("the lease was to be valid still")
		}
		n.set(func(w *wire) { w.cutBack = false })
		l.until(30*time.Second, "the report is accepted and it runs again", func() bool { return n.r.began() == 2 })
		if e := l.g.shards[0].ends; len(e) != 1 || e[0] != task.EndLeaseLost {
			t.Errorf("ends %v", e)
		}
	})
}

// A leader whose disk takes longer than the first time-out of a short lease keeps it none the less.
func TestLateAcknowledgementsCount(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 1, task.DefaultLease(2*task.Second))
		n := l.node(1, 1, endless)
		n.set(func(w *wire) { w.minDelay = 275 * time.Millisecond }) // 550 ms a round trip; the time-out is 500 ms
		l.runs(n, 1)
		l.sleep(5 * time.Minute)
		if len(n.r.stopped()) > 0 || len(l.g.expired) > 0 {
			t.Errorf("stops %v, expired %v", n.r.stopped(), l.g.expired)
		}
	})
}

func TestBeliefNeverShrinksAndCountsFromItsOwnRequest(t *testing.T) {
	a := newAttempt(task.Assignment{FirstTTL: 30 * task.Second})
	a.terms = task.DefaultLease(task.Minute)
	sec := func(n int) task.Boot { return task.Boot(time.Duration(n) * time.Second) }
	a.extend(sec(100), task.Minute)
	want := a.terms.HolderDeadlines(sec(100), task.Minute)
	a.extend(sec(40), task.Minute) // an older request is answered late
	if a.deadlines != want {
		t.Errorf("deadlines %v, want %v", a.deadlines, want)
	}
	if a.ackSent != sec(100) {
		t.Errorf("newest acknowledged request sent at %v", a.ackSent)
	}
}

// However long a renewal is under way, what it gives counts from before it was written (R9).
func TestRenewalCountsFromBeforeItWasSent(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 1, task.DefaultLease(task.DefaultTTL))
		n := l.node(1, 1, endless)
		l.runs(n, 1)
		l.confirmed(1)
		n.set(func(w *wire) { w.minDelay = 2 * time.Second })
		before := l.g.see(&l.g.renews)
		l.until(time.Minute, "a renewal arrives", func() bool { return l.g.see(&l.g.renews) > before })
		written := n.Boot().Add(-2 * time.Second)
		l.sleep(3 * time.Second)
		d := n.r.alive()[0].Deadlines
		if late := d.End.Sub(written.Add(240 * time.Second)); late > 0 || late < -20*time.Millisecond {
			t.Errorf("believes %v longer than 0.8 × 300 s after the request was written", late)
		}
	})
}

// Only failures in a row count for the strict rule: an answer in between begins anew (R10).
func TestAnAnswerEndsARowOfFailures(t *testing.T) {
	strict := task.DefaultLease(task.DefaultTTL)
	strict.MaxRenewFailures = 3
	a := newAttempt(task.Assignment{FirstTTL: strict.FirstTTL()})
	a.phase, a.terms = phaseRunning, strict
	second := func(n int) task.Boot { return task.Boot(time.Duration(n) * time.Second) }
	for i, missed := range []bool{false, true, true, false, true, true} {
		if missed {
			a.miss(second(i))
		} else {
			a.extend(second(i), strict.TTL)
		}
		if _, _, act := a.lapse(second(i)); act {
			t.Fatalf("stopped after turn %d, two failures in a row", i)
		}
	}
	a.miss(second(7))
	if reason, _, act := a.lapse(second(7)); !act || reason != task.StopLeaseLost {
		t.Errorf("three failures in a row: %q %v", reason, act)
	}
}

// Three strikes end a strict attempt long before its deadline; one that is only renewed along is not charged.
func TestStrictRule(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		strict := task.DefaultLease(task.DefaultTTL)
		strict.MaxRenewFailures = 3
		l.g.job("j1", 1, strict)
		l.g.job("j2", 1, task.DefaultLease(10*task.Second)) // renews, and fails, 30 times as often
		n := l.node(2, 1, endless)
		l.runs(n, 2)
		l.confirmed(2)
		cut := time.Now()
		n.set(func(w *wire) { w.cutOut, w.reset = true, 10*time.Millisecond })
		strictStop := func() *stopCall {
			for _, s := range n.r.stopped() {
				if s.x == l.g.shards[0].token.Execution() {
					return &s
				}
			}
			return nil
		}
		l.until(2*time.Minute, "the strict one stopped", func() bool { return strictStop() != nil })
		took := time.Since(cut)
		// It is due up to 30 s after the cut, then after about 5 and 10 s more (R10).
		if took < 10*time.Second || took > 60*time.Second {
			t.Errorf("stopped after %v", took)
		}
		if s := strictStop(); s.reason != task.StopLeaseLost || s.grace != strict.StopGrace {
			t.Errorf("stop %+v", s)
		}
	})
}

func TestRetriesFollowTheTable(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 1, task.DefaultLease(task.DefaultTTL))
		n := l.node(1, 1, endless)
		l.runs(n, 1)
		l.confirmed(1)
		var at []time.Time
		n.set(func(w *wire) {
			w.renewGate = func() bool { l.g.look(func() { at = append(at, time.Now()) }); return false }
		})
		l.sleep(3 * time.Minute)
		l.g.look(func() {})
		var gaps []time.Duration
		for i := 1; i < len(at); i++ {
			gaps = append(gaps, at[i].Sub(at[i-1]))
		}
		// The reply is lost, so the time-out (5 s, then as long as the wait before it) comes on top of the wait of 5, 10, 20 s.
		for i, want := range []time.Duration{10 * time.Second, 15 * time.Second, 30 * time.Second, 40 * time.Second} {
			if i >= len(gaps) || gaps[i] < want*3/4 || gaps[i] > want*5/4 {
				t.Fatalf("gaps %v, want about 10, 15, 30, 40 s", gaps)
			}
		}
	})
}

// A lease that the granter has ended is fenced: killed without grace, never renewed again, its report refused, its
// successor untouched.
func TestLostLeaseIsFenced(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 1, task.DefaultLease(task.Minute))
		n := l.node(2, 1, endless)
		l.runs(n, 1)
		l.confirmed(1)
		first := l.g.shards[0].token
		l.g.look(func() { l.g.end(l.g.shards[0], task.EndLeaseExpired, task.ShardPending) })
		l.until(time.Minute, "fenced", func() bool { return len(n.r.stopped()) > 0 })
		if s := n.r.stopped()[0]; s.x != first.Execution() || s.reason != task.StopFenced || s.grace != 0 {
			t.Errorf("stop %+v", s)
		}
		if _, ok := n.w.Lease(first.Execution()); ok {
			t.Error("believes in a lost lease")
		}
		l.until(time.Minute, "the next attempt runs", func() bool { return l.g.tally()[task.ShardRunning] == 1 })
		l.until(time.Second, "the late report is refused and forgotten", func() bool { _, f := n.r.count(); return l.g.see(&l.g.stale) == 1 && f == 1 })
		if len(n.r.stopped()) != 1 {
			t.Errorf("stops %+v", n.r.stopped())
		}
	})
}

// A process that outlives its lost lease keeps its slot, though the leader counts it as free, and nobody believes in it.
func TestOrphanKeepsItsSlot(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 1, task.DefaultLease(task.Minute))
		n := l.node(1, 1, endless)
		l.runs(n, 1)
		l.confirmed(1)
		n.r.set(func(r *fakeRunner) { r.tough = true })
		first := l.g.shards[0].token
		l.g.look(func() { l.g.end(l.g.shards[0], task.EndLeaseExpired, task.ShardPending) })
		l.until(time.Minute, "fenced", func() bool { return len(n.r.stopped()) > 0 })
		if _, ok := n.w.Lease(first.Execution()); ok {
			t.Error("believes in a lost lease")
		}
		l.sleep(time.Minute) // the poll that was parked may bring one that cannot start
		tries := l.g.shards[0].tries
		renews := l.g.see(&l.g.renews)
		l.sleep(10 * time.Minute)
		if got := l.g.see(&l.g.renews) - renews; got != 0 {
			t.Errorf("%d renewals of a lost lease", got)
		}
		if n.r.began() != 1 || l.g.shards[0].tries != tries || tries > 3 {
			t.Errorf("%d starts, %d and then %d grants", n.r.began(), tries, l.g.shards[0].tries)
		}
		n.r.set(func(r *fakeRunner) { r.tough = false })
		n.r.Stop(first.Execution(), task.StopFenced, 0)
		l.until(time.Second, "its slot is used again", func() bool { return n.r.began() == 2 })
	})
}

func TestLapseTable(t *testing.T) {
	at := func(s float64) task.Boot { return task.Boot(s * float64(time.Second)) }
	d := task.Deadlines{Term: at(20), Kill: at(30), End: at(32)}
	for _, c := range []struct {
		name   string
		a      attempt
		now    float64
		reason task.StopReason
		grace  task.Millis
		act    bool
	}{
		{"far away", attempt{}, 19.9, "", 0, false},
		{"at Term", attempt{}, 20, task.StopLeaseLost, 10 * task.Second, true},
		{"late at Term", attempt{}, 28, task.StopLeaseLost, 2 * task.Second, true},
		{"told at Term already", attempt{lapsed: true}, 25, "", 0, false},
		{"at Kill", attempt{lapsed: true, stop: stopping{told: true}}, 30, task.StopLeaseLost, 0, true},
		{"woke after Kill, never told", attempt{}, 100, task.StopFenced, 0, true},
		{"killed already", attempt{killed: true}, 100, "", 0, false},
		{"fenced already", attempt{fenced: true}, 100, "", 0, false},
		{"strict, not yet", attempt{failures: 2, terms: task.LeaseTerms{MaxRenewFailures: 3}}, 1, "", 0, false},
		{"strict", attempt{failures: 3, terms: task.LeaseTerms{MaxRenewFailures: 3, StopGrace: 5 * task.Second}}, 1, task.StopLeaseLost, 5 * task.Second, true},
	} {
		c.a.phase, c.a.deadlines = phaseRunning, d
		reason, grace, act := c.a.lapse(at(c.now))
		if reason != c.reason || grace != c.grace || act != c.act {
			t.Errorf("%s: %q %v %v, want %q %v %v", c.name, reason, grace, act, c.reason, c.grace, c.act)
		}
	}
}
