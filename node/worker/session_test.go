package worker

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// A fresh first lease starts a task at once, counted from before the poll was written.
func TestStartsOnAFreshFirstLease(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n := l.bareNode(1, 1, endless)
		var renews int
		var at, granted time.Time
		n.r.onRun = func(*task.Assignment) {
			l.g.look(func() { renews, at, granted = l.g.renews, time.Now(), l.g.shards[0].granted })
		}
		n.start()
		l.sleep(3 * time.Second) // the poll is parked for that long
		parked := n.Boot().Add(-3 * time.Second)
		l.g.job("j1", 1, task.DefaultLease(task.DefaultTTL))
		l.runs(n, 1)
		if renews != 0 || at.Sub(granted) > 10*time.Millisecond {
			t.Errorf("%d renewals before the start, %v after the grant", renews, at.Sub(granted))
		}
		d := n.r.alive()[0].Deadlines
		if end := parked.Add(24*time.Second + 50*time.Millisecond); d.End > end {
			t.Errorf("believes until %v after the poll was written, want 0.8 × 30 s at most", d.End.Sub(parked))
		}
		l.confirmed(1)
	})
}

// The first poll is held longer than a 2 s lease likes: the assignment is not lost, it renews before it starts.
func TestStaleFirstLeaseRenewsBeforeItStarts(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n := l.bareNode(1, 1, endless)
		renews := -1
		n.r.onRun = func(*task.Assignment) { l.g.look(func() { renews = l.g.renews }) }
		n.start()
		l.sleep(4 * time.Second)
		l.g.job("j1", 1, task.DefaultLease(2*task.Second))
		l.runs(n, 1)
		if renews != 1 {
			t.Errorf("%d renewals before the start, want 1", renews)
		}
		if len(l.g.shards[0].ends) != 0 {
			t.Errorf("ends %v", l.g.shards[0].ends)
		}
	})
}

// The answer with an assignment is lost: it comes again with MustRenew and starts only after its first renewal.
func TestMustRenewStartsAfterTheFirstRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n := l.bareNode(1, 1, endless)
		renews := -1
		n.r.onRun = func(*task.Assignment) { l.g.look(func() { renews = l.g.renews }) }
		n.start()
		l.sleep(time.Second)
		n.set(func(w *wire) { w.cutBack, w.reset = true, 20*time.Millisecond })
		l.g.job("j1", 1, task.DefaultLease(task.DefaultTTL))
		l.sleep(5 * time.Second)
		if n.r.began() != 0 {
			t.Fatal("started an assignment that never arrived")
		}
		granted := l.g.shards[0].token
		n.set(func(w *wire) { w.cutBack, w.cutOut, w.reset = false, false, 0 })
		l.runs(n, 1)
		if got := n.r.alive()[0].Assignment; got.Token != granted || !got.MustRenew || renews != 1 {
			t.Errorf("started %v (granted %v, must renew %v) after %d renewals, want 1", got.Token, granted, got.MustRenew, renews)
		}
		if len(l.g.shards[0].ends) != 0 {
			t.Errorf("ends %v", l.g.shards[0].ends)
		}
	})
}

// While renewals fail nothing that must renew is started, however long its first lease.
func TestMustRenewNeverStartsUnrenewed(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n := l.bareNode(1, 1, endless)
		n.set(func(w *wire) { w.renewGate = func() bool { return false } })
		n.start()
		l.sleep(time.Second)
		n.set(func(w *wire) { w.cutBack, w.reset = true, 20*time.Millisecond })
		l.g.job("j1", 1, task.DefaultLease(task.DefaultTTL))
		l.sleep(time.Second)
		n.set(func(w *wire) { w.cutBack, w.reset = false, 0 })
		l.sleep(20 * time.Second)
		if n.r.began() != 0 {
			t.Error("started without an acknowledged renewal")
		}
	})
}

// Renewals arrive and their answers do not: the assignment is given back after its first lease, or the renewals would keep it
// for ever where it cannot start.
func TestUnconfirmedIsGivenBack(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n := l.node(1, 1, endless)
		n.set(func(w *wire) { w.renewGate = func() bool { return false } })
		l.sleep(4 * time.Second)
		l.g.job("j1", 1, task.DefaultLease(2*task.Second))
		l.sleep(time.Second)
		if s := l.g.tally(); s[task.ShardRunning] != 1 || n.r.began() != 0 {
			t.Fatalf("shards %v: its renewals were to arrive", s)
		}
		first := l.g.shards[0].token
		l.until(2*time.Second, "given back", func() bool { return l.g.see(&l.g.shards[0].tries) == 2 })
		for _, p := range n.r.alive() { // the next grant is fresh and may start
			if p.Assignment.Token == first {
				t.Error("started unconfirmed")
			}
		}
		if e := l.g.shards[0].ends; len(e) != 1 || e[0] != task.EndLeaseLost {
			t.Errorf("ends %v", e)
		}
	})
}

// Attempts that end at once are reported and never renewed (C12).
func TestVeryShortAttemptsNeverRenew(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 500, task.DefaultLease(task.DefaultTTL))
		n := l.node(4, 1, instant)
		l.until(time.Minute, "all done", l.succeeded(500))
		if l.g.see(&l.g.renews) != 0 || n.r.began() != 500 {
			t.Errorf("%d renewals, %d starts", l.g.see(&l.g.renews), n.r.began())
		}
	})
}

// Slots stay busy: the time for many short attempts is that of their round trips, and no slot is used twice.
func TestThroughputShape(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		const shards, slots = 4000, 8
		n := l.node(slots, 1, lasting(2*time.Millisecond)) // a round trip takes 2 ms as well
		l.sleep(time.Second)
		begin := time.Now()
		l.g.job("j1", shards, task.DefaultLease(task.DefaultTTL))
		l.until(time.Minute, "all done", func() bool { _, f := n.r.count(); return l.succeeded(shards)() && f == shards })
		// Each attempt: run, report, reply of the poll; polls overlap only in part, as one is answered once.
		if took, ideal := time.Since(begin), shards/slots*6*time.Millisecond; took > ideal*3/2 {
			t.Errorf("took %v, ideal %v", took, ideal)
		}
		if n.r.most() > slots {
			t.Errorf("%d at once in %d slots", n.r.most(), slots)
		}
	})
}

// An idle node talks at the pace of its polls and ticks no faster than it must.
func TestIdleIsQuiet(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n := l.bareNode(4, 1, endless)
		counter := &countingClock{Clock: n.machine}
		n.clock = counter
		n.start()
		l.sleep(time.Minute)
		polls, timers := l.g.see(&l.g.polls), counter.timers.Load()
		l.sleep(time.Hour)
		if got := l.g.see(&l.g.polls) - polls; got > 721 {
			t.Errorf("%d polls in an hour", got)
		}
		if got := counter.timers.Load() - timers; got > 3*721 {
			t.Errorf("%d timers in an idle hour", got)
		}
	})
}

type countingClock struct {
	task.Clock
	timers atomic.Int64
}

func (c *countingClock) NewTimer(d time.Duration) task.Timer {
	c.timers.Add(1)
	return c.Clock.NewTimer(d)
}

func TestHold(t *testing.T) {
	var s shortLease
	at := func(d time.Duration) task.Boot { return task.Boot(d) }
	check := func(now time.Duration, want task.Millis) {
		t.Helper()
		if got := s.hold(at(now)); got != want {
			t.Errorf("at %v: hold %v, want %v", now, got, want)
		}
	}
	check(0, 5*task.Second)
	s.note(30*task.Second, at(time.Second))
	check(time.Second, 7500)
	s.note(2*task.Second, at(2*time.Second))
	s.note(30*task.Second, at(3*time.Second))
	check(3*time.Second, 500)
	check(11*time.Minute, 5*task.Second) // the short job is history
	s.note(task.Hour, at(12*time.Minute))
	check(12*time.Minute, 10*task.Second)
	// At a quarter of the first lease a start needs no renewal, with 15 % of it to spare for the network.
	for _, ttl := range []task.Millis{2 * task.Second, 10 * task.Second, 30 * task.Second} {
		a := newAttempt(task.Assignment{FirstTTL: ttl})
		a.deadlines = task.DefaultLease(ttl).HolderDeadlines(0, ttl)
		if now := task.Boot((ttl/4 + ttl*15/100).Duration()); !a.fresh(now) {
			t.Errorf("a first lease of %v is not fresh after %v", ttl.Duration(), time.Duration(now))
		}
	}
}

// More work than slots waits for one, known tokens are not taken twice, and what comes during a drain is given back.
func TestAdmit(t *testing.T) {
	b := newBook()
	b.setSlots(2)
	none := func(task.Token) bool { return false }
	as := func(tokens ...task.Token) (out []task.Assignment) {
		for _, tok := range tokens {
			out = append(out, task.Assignment{Token: tok, FirstTTL: 30 * task.Second})
		}
		return out
	}
	if taken, left, _ := b.admit(as(6), 0, 0, func(t task.Token) bool { return t == 6 }); taken+left != 0 {
		t.Error("took one whose report is in the outbox")
	}
	if taken, left, _ := b.admit(as(1, 2), 0, 0, none); taken != 2 || left != 0 {
		t.Fatalf("taken %d left %d", taken, left)
	}
	if got := len(b.takeQueued()); got != 2 {
		t.Fatalf("%d got slots", got)
	}
	if taken, left, _ := b.admit(as(2, 3, 4, 5), 0, 0, none); taken != 2 || left != 1 {
		t.Errorf("taken %d left %d, want 3 and 4 queued, 5 left", taken, left)
	}
	if got := len(b.takeQueued()); got != 0 {
		t.Errorf("%d got slots that are taken", got)
	}
	b.end(1)
	if got := b.takeQueued(); len(got) != 1 || got[0].Token != 3 {
		t.Errorf("the free slot went to %v", got)
	}
	if _, dropped, _ := b.enforce(task.Boot(31 * time.Second)); dropped != 3 {
		t.Errorf("%d forgotten after their first lease, want 2, 3 and 4", dropped)
	}
	b.closing = true
	_, _, declined := b.admit(as(7), 0, 0, none)
	if len(declined) != 1 || declined[0].Token != 7 || declined[0].Outcome.End != task.EndShutdown {
		t.Errorf("declined %+v", declined)
	}
	if b.want() != 0 {
		t.Error("wants work while it ends")
	}
}

func TestOrders(t *testing.T) {
	for _, deaf := range []bool{false, true} { // in the answer to a poll; to a renewal, while polls are not answered
		bubble(t, func(t *testing.T, l *lab) {
			l.g.job("j1", 1, task.DefaultLease(10*task.Second))
			hang := false
			n := l.bareNode(1, 1, stubborn)
			n.control = &oddControl{wire: n.wire, poll: func(ctx context.Context, r *transport.PollRequest) (*transport.PollReply, error) {
				hung := false
				l.g.look(func() { hung = hang })
				if hung {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return n.wire.Poll(ctx, r)
			}}
			n.start()
			l.runs(n, 1)
			l.confirmed(1)
			l.g.look(func() { hang = deaf })
			l.sleep(10 * time.Second) // the poll that was parked is over
			l.g.order(0, task.StopCancel, 5*task.Second)
			l.until(5*time.Second, "stopped", func() bool { return len(n.r.stopped()) == 1 })
			l.g.order(0, task.StopCancel, 5*task.Second) // repeated, as its answer may be lost
			l.sleep(2 * time.Second)
			if s := n.r.stopped(); len(s) != 1 || s[0].reason != task.StopCancel || s[0].grace != 5*task.Second {
				t.Errorf("stops %+v", s)
			}
			l.g.order(0, task.StopCancel, 0) // stricter
			l.until(2*time.Second, "cancelled", func() bool { return l.g.tally()[task.ShardCancelled] == 1 })
			if s := n.r.stopped(); len(s) != 2 || s[1].grace != 0 {
				t.Errorf("stops %+v", s)
			}
		})
	}
}

// An order for what has not started ends it without a start.
func TestOrderBeforeTheStart(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 2, task.DefaultLease(task.DefaultTTL))
		n := l.bareNode(1, 1, func(*task.Assignment) work { return work{takes: -1, ends: time.Second} })
		n.start()
		l.runs(n, 1)
		// A second one waits for the slot.
		l.g.look(func() {
			l.g.nodes[n.id].slots = 2
			if p := l.g.nodes[n.id].park; p != nil {
				p.want = 2
			}
			l.g.serve()
		})
		l.until(time.Second, "queued", func() bool { return len(n.w.Status().Attempts) == 2 })
		l.g.order(1, task.StopCancel, 5*task.Second)
		l.until(10*time.Second, "cancelled", func() bool { return l.g.tally()[task.ShardCancelled] == 1 })
		if n.r.began() != 1 || len(n.r.stopped()) != 0 {
			t.Errorf("%d starts, stops %v", n.r.began(), n.r.stopped())
		}
	})
}

// What never runs is reported as such: no such stage, no such job, a command that cannot start.
func TestStartFailures(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 1, task.DefaultLease(task.DefaultTTL))
		l.g.job("j2", 1, task.DefaultLease(task.DefaultTTL))
		n := l.bareNode(1, 1, func(*task.Assignment) work { return work{fail: "no such directory"} })
		var got []task.Report
		l.g.answer = func(r task.Report) (string, bool) {
			got = append(got, r)
			l.g.end(l.g.find(r.Token), r.Outcome.End, task.ShardFailed)
			return "", true
		}
		l.g.look(func() { l.g.shards[1].ref.Stage = 4 })
		n.start()
		l.until(10*time.Second, "both reported", func() bool { return l.g.tally()[task.ShardFailed] == 2 })
		for i, want := range []string{"no such directory", "the job's spec has no such stage"} {
			if got[i].Outcome.End != task.EndStartFailed || got[i].Outcome.Message != want {
				t.Errorf("report %+v, want %q", got[i].Outcome, want)
			}
		}
		if n.store.puts != 0 {
			t.Errorf("%d disk writes for reports that were acknowledged at once", n.store.puts)
		}
	})
}
