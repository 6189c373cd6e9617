package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"lanjobs/task"
)

// Whoever sleeps or is frozen past the deadline is killed within 250 ms of going on, without grace, and has no effect
// meanwhile (I2, I11, R16, C35).
func TestAwayPastTheDeadline(t *testing.T) {
	for _, state := range []machineState{asleep, frozen} {
		bubble(t, func(t *testing.T, l *lab) {
			l.g.job("j1", 1, task.DefaultLease(20*task.Second))
			n := l.node(1, 1, stubborn)
			other := l.bareNode(1, 1, stubborn)
			l.runs(n, 1)
			l.confirmed(1)
			l.sleep(3100 * time.Millisecond) // the next timer is not just now
			a := n.r.alive()[0].Assignment
			other.start()
			n.pause(state)
			l.sleep(3 * 20 * time.Second)
			l.runs(other, 1)
			n.resume()
			if _, ok := n.w.Lease(a.Execution()); ok {
				t.Error("believes in the old lease after waking")
			}
			if _, err := n.w.Checkpoint(context.Background(), &a, []byte("late")); !errors.Is(err, task.ErrStaleToken) {
				t.Errorf("late checkpoint: %v", err)
			}
			l.sleep(250 * time.Millisecond)
			if len(n.r.alive()) != 0 {
				t.Error("still running 250 ms after going on")
			}
			if s := n.r.stopped(); len(s) != 1 || s[0].reason != task.StopFenced || s[0].grace != 0 {
				t.Errorf("stops %+v", s)
			}
			l.until(10*time.Second, "its report is refused and forgotten", func() bool { _, f := n.r.count(); return l.g.see(&l.g.stale) == 1 && f == 1 })
			if len(other.r.alive()) != 1 || other.r.began() != 1 || l.g.shards[0].last != nil {
				t.Error("the new holder was disturbed")
			}
		})
	}
}

// A short sleep costs nothing: what is still believed in goes on, and is renewed at once, not at the next heartbeat.
func TestAwayShorterThanTheLease(t *testing.T) {
	for _, c := range []struct {
		state machineState
		away  time.Duration
	}{{asleep, 10 * time.Second}, {asleep, 2 * time.Minute}, {frozen, 10 * time.Second}, {frozen, 2 * time.Minute}} {
		bubble(t, func(t *testing.T, l *lab) {
			l.g.job("j1", 1, task.DefaultLease(task.DefaultTTL))
			n := l.node(1, 1, endless)
			l.runs(n, 1)
			l.confirmed(1)
			l.sleep(3 * time.Second)
			n.pause(c.state)
			l.sleep(c.away)
			n.resume()
			before := l.g.see(&l.g.renews)
			l.sleep(300 * time.Millisecond)
			if l.g.see(&l.g.renews) != before+1 {
				t.Errorf("%+v: %d renewals right after waking, want 1", c, l.g.see(&l.g.renews)-before)
			}
			if len(n.r.stopped()) != 0 || len(n.r.alive()) != 1 {
				t.Error("stopped though the lease held")
			}
			left := n.w.Status().Attempts[0].Left
			if left < 239*time.Second {
				t.Errorf("%v left after the renewal", left)
			}
		})
	}
}

// A renewal that was under way when the machine fell asleep does not keep the next from being sent at once.
func TestWakesOverADeadConnection(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 1, task.DefaultLease(task.DefaultTTL))
		n := l.node(1, 1, endless)
		l.runs(n, 1)
		l.confirmed(1)
		n.set(func(w *wire) { w.cutBack = true })
		before := l.g.see(&l.g.renews)
		l.until(time.Minute, "a heartbeat arrives, unanswered", func() bool { return l.g.see(&l.g.renews) > before })
		l.sleep(time.Second)
		n.pause(asleep)
		l.sleep(10 * time.Second)
		n.set(func(w *wire) { w.cutBack = false })
		n.resume()
		l.sleep(300 * time.Millisecond)
		if got := l.g.see(&l.g.renews) - before; got != 2 {
			t.Errorf("%d renewals, want the lost one and one right after waking", got)
		}
	})
}

// Between Term and Kill there is still a lease to be graceful in.
func TestWakesBetweenTermAndKill(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 1, task.DefaultLease(task.DefaultTTL))
		n := l.node(1, 1, stubborn)
		l.runs(n, 1)
		l.confirmed(1)
		d := n.r.alive()[0].Deadlines
		n.set(func(w *wire) { w.cutOut = true })
		n.pause(asleep)
		l.sleep(d.Term.Sub(n.Boot()) + 10*time.Second)
		n.resume()
		l.sleep(250 * time.Millisecond)
		if s := n.r.stopped(); len(s) != 1 || s[0].reason != task.StopLeaseLost || s[0].grace > 20*task.Second || s[0].grace < 19*task.Second {
			t.Errorf("stops %+v, want the 20 s of grace that are left", s)
		}
	})
}

// After a long absence the node registers again and asks anew over a fresh request: the parked poll's connection is dead.
func TestLongAbsenceRegistersAgain(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n := l.node(1, 1, endless)
		l.sleep(time.Second)
		n.pause(asleep)
		l.sleep(time.Hour)
		n.resume()
		polls := l.g.see(&l.g.polls)
		l.until(idleTick+100*time.Millisecond, "registered and asking again", func() bool {
			return l.g.see(&l.g.regs) == 2 && l.g.see(&l.g.polls) > polls
		})
	})
}

func TestGapWatch(t *testing.T) {
	clock := &handClock{}
	g := newGapWatch(clock)
	for _, c := range []struct {
		name        string
		expect      time.Duration
		boot, awake time.Duration // how far the clocks go
		want        time.Duration
	}{
		{"in time", time.Second, time.Second, time.Second, 0},
		{"early", time.Second, 100 * time.Millisecond, 100 * time.Millisecond, 0},
		{"a busy machine", time.Second, 1900 * time.Millisecond, 1900 * time.Millisecond, 0},
		{"frozen", time.Second, 61 * time.Second, 61 * time.Second, time.Minute},
		{"slept", time.Second, 61 * time.Second, time.Second, time.Minute},
		{"slept a moment", time.Second, 1400 * time.Millisecond, time.Second, 0},
		{"slept and frozen", time.Second, 71 * time.Second, 11 * time.Second, 70 * time.Second},
	} {
		g.expect(c.expect)
		clock.boot += task.Boot(c.boot)
		clock.awake += c.awake
		if got := g.look(clock); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// handClock is moved by hand.
type handClock struct {
	task.Clock
	boot  task.Boot
	awake time.Duration
}

func (c *handClock) Boot() task.Boot      { return c.boot }
func (c *handClock) Awake() time.Duration { return c.awake }
