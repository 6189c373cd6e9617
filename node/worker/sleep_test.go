package worker

import (
	"context"
	"sync"
	"testing"
	"time"

	"lanjobs/task"
)

// fakeAwake keeps what it was told last.
type fakeAwake struct {
	mu           sync.Mutex
	runs, finish bool
	told         int
}

func (f *fakeAwake) Want(runs, finish bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs, f.finish = runs, finish
	f.told++
}

func (f *fakeAwake) see() (runs, finish bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs, f.finish
}

// on gives every stage of a job the same word on sleeps.
func (g *granter) on(id task.JobID, s task.OnSleep) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.specs[id].Stages {
		g.specs[id].Stages[i].OnSleep = s
	}
}

// toldOf is how long a sleep was that a registration told of, 0 if none did.
func (g *granter) toldOf() task.Millis { g.mu.Lock(); defer g.mu.Unlock(); return g.slept }

// I14: told before the first process starts, and after the last is gone; also over a restart of the agent.
func TestAwakeIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n := l.node(2, 1, lasting(30*time.Second))
		started := false
		n.r.onRun = func(*task.Assignment) { started, _ = n.awake.see() }
		l.sleep(time.Second)
		if runs, _ := n.awake.see(); runs {
			t.Error("kept awake while nothing runs")
		}
		l.g.job("j1", 2, task.DefaultLease(task.DefaultTTL))
		l.runs(n, 2)
		if !started {
			t.Error("told only after the start")
		}
		l.g.setDown(true) // nobody tells the next agent what the task's spec says
		n.awake = &fakeAwake{}
		n.restart()
		l.sleep(time.Second)
		if runs, finish := n.awake.see(); !runs || finish {
			t.Errorf("after a restart: runs %v, finish %v", runs, finish)
		}
		l.g.setDown(false)
		l.until(time.Minute, "all done", l.succeeded(2))
		if runs, _ := n.awake.see(); runs {
			t.Error("kept awake after the last end")
		}
		l.g.job("j2", 1, task.DefaultLease(task.DefaultTTL))
		l.g.on("j2", task.OnSleepFinish)
		l.runs(n, 1)
		if runs, finish := n.awake.see(); !runs || !finish {
			t.Errorf("to be finished: runs %v, finish %v", runs, finish)
		}
	})
}

// A sleep stops what releases, with its grace as far as there is time, and leaves what is kept; the leader hears it when all is
// reported. Until Woke nothing is asked for.
func TestSleepReleasesOrKeeps(t *testing.T) {
	for _, c := range []struct {
		on      task.OnSleep
		ends    time.Duration // after SIGTERM
		ignores bool
		stops   int
		within  time.Duration
	}{
		{"", time.Second, false, 2, 1200 * time.Millisecond},
		{task.OnSleepRelease, 10 * time.Second, true, 2, 4500 * time.Millisecond},
		{task.OnSleepKeep, 0, false, 0, 100 * time.Millisecond},
		{task.OnSleepFinish, 0, false, 0, 100 * time.Millisecond},
	} {
		bubble(t, func(t *testing.T, l *lab) {
			l.g.job("j1", 2, task.DefaultLease(task.DefaultTTL))
			l.g.on("j1", c.on)
			n := l.node(2, 1, func(*task.Assignment) work { return work{takes: -1, ends: c.ends, ignores: c.ignores} })
			l.runs(n, 2)
			l.sleep(15 * time.Second)
			began := time.Now()
			if err := n.w.Sleep(context.Background(), 4500*time.Millisecond); err != nil {
				t.Errorf("%+v: %v", c, err)
			}
			if took := time.Since(began); took > c.within {
				t.Errorf("%+v: took %s", c, took)
			}
			stops := n.r.stopped()
			if len(stops) != c.stops {
				t.Fatalf("%+v: stops %+v", c, stops)
			}
			for _, s := range stops {
				if s.reason != task.StopSleep || s.grace > 3400 {
					t.Errorf("%+v: stop %+v", c, s)
				}
			}
			if s := l.g.tally(); s[task.ShardPending] != c.stops {
				t.Errorf("%+v: %v the moment it sleeps", c, s)
			}
			for _, s := range l.g.shards {
				if c.stops > 0 && (len(s.ends) != 1 || s.ends[0] != task.EndDrained) {
					t.Errorf("%+v: ends %v", c, s.ends)
				}
			}
			l.g.mu.Lock()
			said := l.g.asleep
			l.g.mu.Unlock()
			if len(said) != 1 || len(said[0].Holding) != 2-c.stops {
				t.Fatalf("%+v: said %+v", c, said)
			}
			polls := l.g.see(&l.g.polls)
			l.sleep(20 * time.Second)
			if now := l.g.see(&l.g.polls); now != polls {
				t.Errorf("%+v: %d polls before it woke", c, now-polls)
			}
			n.w.Woke()
			l.until(2*time.Second, "it asks again", func() bool { return l.g.see(&l.g.polls) > polls })
			l.runs(n, 2)
		})
	}
}

// Deadlines come first after a sleep: what is kept and slept past its lease is killed before anything is asked of the leader, and a
// registration says how long the machine slept (I2, R16).
func TestWokenAfterItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 1, task.DefaultLease(task.Minute))
		l.g.on("j1", task.OnSleepKeep)
		n := l.node(1, 1, stubborn)
		l.runs(n, 1)
		l.confirmed(1)
		l.sleep(time.Second)
		if err := n.w.Sleep(context.Background(), time.Second); err != nil {
			t.Fatal(err)
		}
		n.pause(asleep)
		l.sleep(10 * time.Minute)
		n.resume()
		n.w.Woke()
		if s := n.r.stopped(); len(s) != 1 || s[0].reason != task.StopFenced || s[0].grace != 0 {
			t.Errorf("stops %+v", s)
		}
		l.until(time.Second, "it has said so", func() bool { d := l.g.toldOf().Duration(); return d > 599*time.Second && d < 601*time.Second })
	})
}
