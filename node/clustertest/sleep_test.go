package clustertest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/task/runner"
)

// inhibitor is what keeps a simulated machine awake.
type inhibitor struct {
	mu   sync.Mutex
	held int
}

func (i *inhibitor) Check() error { return nil }

func (i *inhibitor) Take() (*runner.Hold, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.held++
	return &runner.Hold{What: "all", Release: func() { i.mu.Lock(); i.held--; i.mu.Unlock() }}, nil
}

func (i *inhibitor) holds() bool { i.mu.Lock(); defer i.mu.Unlock(); return i.held == 1 }

// untilAllMaySleep is the other half of I14: where nothing runs nothing is held, a moment later.
func (c *cluster) untilAllMaySleep() {
	c.t.Helper()
	c.until(10*time.Second, "no machine is kept awake by nothing (I14)", func() bool {
		for _, m := range c.machines {
			if m.core != nil && m.clock.Runs() && m.awake.holds() && !m.runner.busy() {
				return false
			}
		}
		return true
	})
}

// busy tells whether a process lives here, or has ended and its agent was not told yet.
func (r *fakeRunner) busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.procs {
		if !p.over {
			return true
		}
	}
	return false
}

// fallAsleep is an orderly sleep: the machine says so, waits as a delay lock lets it, and sleeps. wake is what follows it.
func (m *machine) fallAsleep() (wake func()) {
	m.core.Sleep(context.Background(), 4500*time.Millisecond)
	up := m.suspend()
	return func() {
		up()
		m.core.Woke()
	}
}

// ledger reads what the leader has of a machine.
func (c *cluster) ledger(id task.NodeID) (n fsm.Node, held int) {
	if l := c.leader(); l != nil {
		l.core.Read(func(s *fsm.State) {
			if known := s.Node(id); known != nil {
				n, held = *known, s.Held(id)
			}
		})
	}
	return n, held
}

func sleeping(name string, shards int, ttl task.Millis, on task.OnSleep) task.StageSpec {
	s := stage(name, shards, ttl)
	s.OnSleep = on
	return s
}

// R16: what a machine releases before it sleeps runs elsewhere long before its lease would have ended, from its checkpoint, and it
// costs no try and no loss. Nothing is placed on it until it is back.
func TestWorkMovesBeforeASleep(t *testing.T) {
	run(t, 3, func(c *cluster) {
		c.pace = 10
		id := c.submit("j1", sleeping("a", 2, 5*task.Minute, task.OnSleepRelease))
		w := c.busyWorker()
		time.Sleep(15 * time.Second)
		began := time.Now()
		wake := w.fallAsleep()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %s to be ready, though its tasks end at once", took)
		}
		if n, held := c.ledger(w.id); n.Online || n.Reason != task.ReasonAsleep || held != 0 {
			t.Errorf("online %v (%s), %d leases", n.Online, n.Reason, held)
		}
		c.untilDone(id, 4*time.Minute) // less than the lease
		if n, _ := c.ledger(w.id); n.Online || n.Reason != task.ReasonAsleep {
			t.Errorf("still asleep, and the ledger has online %v (%s)", n.Online, n.Reason)
		}
		c.leader().core.Read(func(s *fsm.State) {
			for k := range 2 {
				sh := s.Job(id).Stages[0].At(k)
				if sh.Losses != 0 || sh.Fails != 0 {
					t.Errorf("shard %d: %d losses, %d fails", k, sh.Losses, sh.Fails)
				}
				for _, a := range sh.History() {
					if a.Node == w.id && a.Outcome.String() != "released: its machine goes to sleep" {
						t.Errorf("shard %d: %s", k, a.Outcome)
					}
				}
			}
		})
		time.Sleep(10 * time.Minute)
		wake()
		c.until(10*time.Second, "it is back, with how long it slept", func() bool {
			n, _ := c.ledger(w.id)
			return n.Online && strings.HasPrefix(n.Reason, "slept 1")
		})
		c.untilDone(c.submit("j2", stage("a", 4, task.Minute)), time.Minute*5)
	})
}

// The leader hands over before it sleeps, and the others need no election by time-out.
func TestALeaderHandsOverBeforeItSleeps(t *testing.T) {
	run(t, 3, func(c *cluster) {
		c.until(time.Minute, "all are registered", func() bool {
			return !slices.ContainsFunc(c.machines, func(m *machine) bool { n, _ := c.ledger(m.id); return !n.Online })
		})
		l := c.leader()
		wake := l.fallAsleep()
		if n := c.leader(); n == nil || n == l {
			t.Error("nobody else leads the moment it sleeps")
		}
		c.until(2*time.Second, "the new leader knows", func() bool { n, _ := c.ledger(l.id); return n.Reason == task.ReasonAsleep })
		id := c.submit("j1", stage("a", 4, task.Minute))
		c.untilDone(id, time.Minute)
		wake()
		c.until(10*time.Second, "it is back", func() bool { n, _ := c.ledger(l.id); return n.Online })
	})
}

// on_sleep: keep. A task that wakes before its lease ends goes on as if nothing had been; one that does not is moved, and has no
// effect any more (I2, I11: the oracle looks at every step).
func TestWhatIsKeptOverASleep(t *testing.T) {
	for _, away := range []time.Duration{30 * time.Second, 3 * time.Minute} {
		run(t, 3, func(c *cluster) {
			c.pace = 10
			for _, on := range []task.OnSleep{task.OnSleepKeep, task.OnSleepFinish} {
				id := c.submit("j-"+string(on), sleeping("a", 1, task.Minute, on))
				w := c.busyWorker()
				time.Sleep(10 * time.Second)
				wake := w.fallAsleep()
				if n, held := c.ledger(w.id); n.Reason != task.ReasonAsleep || held != 1 {
					t.Errorf("%s: %q, %d leases", on, n.Reason, held)
				}
				time.Sleep(away)
				wake()
				c.until(10*time.Second, "it is back", func() bool { n, _ := c.ledger(w.id); return n.Online })
				c.untilDone(id, 10*time.Minute)
				moved := 0
				c.leader().core.Read(func(s *fsm.State) { moved = len(s.Job(id).Stages[0].At(0).History()) })
				if want := 0; away > time.Minute && moved == want || away < time.Minute && moved != want {
					t.Errorf("%s, away for %s: moved %d times", on, away, moved)
				}
			}
		})
	}
}

// What was granted to a machine the moment it went to sleep, and never reached it, does not wait for a lease to end.
func TestAGrantThatMeetsASleep(t *testing.T) {
	run(t, 3, func(c *cluster) {
		l := c.leader()
		var w *machine
		for _, m := range c.machines {
			if m != l {
				w = m
			}
		}
		c.net.CutOneWay(l.id, w.id) // answers do not come through: the grant is lost, the calls are served
		id := c.submit("j1", stage("a", 4, 5*task.Minute))
		c.until(10*time.Second, "a lost grant", func() bool { _, held := c.ledger(w.id); return held > 0 })
		wake := w.fallAsleep()
		c.net.Heal()
		if n, held := c.ledger(w.id); n.Reason != task.ReasonAsleep || held != 0 {
			t.Errorf("%q, %d leases", n.Reason, held)
		}
		c.untilDone(id, time.Minute)
		wake()
	})
}

// A sleep that is called off costs a registration.
func TestASleepThatDoesNotCome(t *testing.T) {
	run(t, 3, func(c *cluster) {
		c.pace = 10
		c.submit("j1", sleeping("a", 1, 5*task.Minute, task.OnSleepKeep))
		w := c.busyWorker()
		w.core.Sleep(context.Background(), 4500*time.Millisecond)
		time.Sleep(20 * time.Second)
		if n, held := c.ledger(w.id); n.Online || held != 1 {
			t.Errorf("online %v, %d leases", n.Online, held)
		}
		w.core.Woke()
		c.until(5*time.Second, "it is back", func() bool { n, held := c.ledger(w.id); return n.Online && n.Reason == "" && held == 1 })
		c.untilDone("j1", 5*time.Minute)
	})
}

// Without notice (macOS) a sleep is found out after waking: the ledger says how long it was all the same.
func TestASleepWithoutNotice(t *testing.T) {
	run(t, 3, func(c *cluster) {
		w := c.machines[2]
		if w == c.leader() {
			w = c.machines[1]
		}
		wake := w.suspend()
		c.until(2*time.Minute, "it is silent", func() bool { n, _ := c.ledger(w.id); return !n.Online })
		time.Sleep(10 * time.Minute)
		wake()
		c.until(10*time.Second, "it is back, with how long it slept", func() bool {
			n, _ := c.ledger(w.id)
			return n.Online && strings.HasPrefix(n.Reason, "slept 11m")
		})
	})
}
