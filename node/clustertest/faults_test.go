package clustertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/node/worker"
	"lanjobs/task"
)

// busyWorker gives a machine that does not lead and runs something.
func (c *cluster) busyWorker() *machine {
	c.t.Helper()
	var found *machine
	c.until(time.Minute, "a busy worker", func() bool {
		l := c.leader()
		for _, m := range c.machines {
			if m != l && m.core != nil && slices.ContainsFunc(m.core.Worker().Status().Attempts, runs) {
				found = m
				return l != nil
			}
		}
		return false
	})
	return found
}

// runs: what is only on its way would be given back by a machine that goes to sleep.
func runs(a worker.AttemptStatus) bool { return a.State == "running" }

func TestTheLeaderDiesAndNothingIsLostOrDoneTwice(t *testing.T) {
	run(t, 3, func(c *cluster) {
		id := c.submit("j1", stage("a", 12, task.Minute), stage("b", 1, task.Minute, "a"))
		c.busyWorker()
		l := c.leader()
		l.crash()
		c.untilDone(id, 5*time.Minute)
		l.start(false)
	})
}

func TestAWorkerCutOffStopsBeforeItsLeaseAndAnotherResumes(t *testing.T) {
	run(t, 3, func(c *cluster) {
		id := c.submit("j1", stage("a", 4, 10*task.Second))
		w := c.busyWorker()
		time.Sleep(1500 * time.Millisecond) // some checkpoints are in
		c.net.Isolate(w.id)
		c.untilDone(id, 5*time.Minute)
		c.net.Rejoin(w.id)
	})
}

// I7: the shard of a machine that has died is given to another one within TTL + 10 s.
func TestAShardOfADeadMachineMovesInTime(t *testing.T) {
	run(t, 3, func(c *cluster) {
		id := c.submit("j1", stage("a", 2, 10*task.Second))
		w := c.busyWorker()
		w.crash()
		start := time.Now()
		c.until(20*time.Second, "the shards running elsewhere", func() bool {
			held := -1
			if l := c.leader(); l != nil {
				l.core.Read(func(s *fsm.State) { held = s.Held(w.id) })
			}
			return held == 0
		})
		t.Logf("moved after %s", time.Since(start))
		c.untilDone(id, 5*time.Minute)
	})
}

func TestOneWayCuts(t *testing.T) {
	for _, toLeader := range []bool{true, false} {
		t.Run(fmt.Sprintf("to the leader %v", toLeader), func(t *testing.T) {
			run(t, 3, func(c *cluster) {
				id := c.submit("j1", stage("a", 6, 10*task.Second))
				w, l := c.busyWorker(), c.leader()
				if toLeader {
					c.net.CutOneWay(w.id, l.id)
				} else {
					c.net.CutOneWay(l.id, w.id)
				}
				c.untilDone(id, 5*time.Minute)
				c.net.Heal()
			})
		})
	}
}

// suspend stops a machine as sleep does: nothing of it runs, its awake clock stands still, its boot clock goes on.
func (m *machine) suspend() (wake func()) { return m.stand(m.clock.Suspend) }

// freeze stops all processes of a machine; its clocks go on.
func (m *machine) freeze() (thaw func()) { return m.stand(m.clock.Freeze) }

func (m *machine) stand(stop func()) (undo func()) {
	m.c.net.Freeze(m.id)
	stop()
	m.still = func() {
		m.still = nil
		m.clock.Resume()
		m.c.net.Thaw(m.id)
	}
	still := m.still
	return func() {
		if m.still != nil { // else it crashed meanwhile
			still()
		}
	}
}

func TestAMachineThatSleptPastItsLeaseHasNoEffect(t *testing.T) {
	run(t, 3, func(c *cluster) {
		id := c.submit("j1", stage("a", 6, 10*task.Second))
		w := c.busyWorker()
		time.Sleep(time.Second)
		wake := w.suspend()
		time.Sleep(40 * time.Second)
		wake()
		c.untilDone(id, 5*time.Minute)
	})
}

func TestWallClocksDaysApartChangeNothing(t *testing.T) {
	run(t, 3, func(c *cluster) {
		for i, m := range c.machines {
			m.clock.Shift(time.Duration(i-1) * 400 * 24 * time.Hour)
		}
		id := c.submit("j1", stage("a", 12, 10*task.Second))
		time.Sleep(2 * time.Second)
		c.machines[0].clock.Shift(-90 * 365 * 24 * time.Hour)
		c.untilDone(id, 5*time.Minute)
	})
}

// I12 with the real Raft: without faults nothing expires. (Ten hours of it, with failovers, are in plan's simulation.)
func TestAQuietHour(t *testing.T) {
	run(t, 3, func(c *cluster) {
		long := stage("a", 4, task.Minute)
		long.Timeout = 0
		id := c.submit("j1", long)
		for range 2 {
			w := c.busyWorker()
			w.runner.pause(true) // the tasks wait; their agent does not
			time.Sleep(20 * time.Minute)
			w.runner.pause(false)
		}
		c.untilDone(id, time.Hour)
		c.leader().core.Read(func(s *fsm.State) {
			st := &s.Job(id).Stages[0]
			for i := range st.Len() {
				if sh := st.At(i); sh.Losses != 0 || sh.Tries != 1 {
					t.Errorf("shard %d: %d leases lost, %d tries", i, sh.Losses, sh.Tries)
				}
			}
		})
	})
}

// I12 with failovers: a change of leader neither shortens a lease nor costs the machines that go on working.
func TestFailoversExpireNothing(t *testing.T) {
	run(t, 3, func(c *cluster) {
		c.pace = 40 // a step takes 20 s and more
		// A lease of 10 s: ten seconds that a new leader did not lead would end it.
		id := c.submit("j1", stage("a", 2, 10*task.Second))
		w := c.busyWorker()
		for range 6 {
			l := c.leader()
			if l == w {
				break // killing it is another test
			}
			l.crash()
			c.until(20*time.Second, "another leader", func() bool { return c.leader() != nil })
			time.Sleep(3 * time.Second)
			l.start(false)
			time.Sleep(2 * time.Second)
		}
		c.untilDone(id, 20*time.Minute)
		c.leader().core.Read(func(s *fsm.State) {
			for i := range s.Job(id).Stages[0].Len() {
				for _, a := range s.Job(id).Stages[0].At(i).History() {
					if a.Node == w.id {
						t.Errorf("shard %d was lost by a machine that was there all the time: %s", i, a.Outcome)
					}
				}
			}
		})
	})
}

// I11 between the holder's deadline and the granter's: the ledger would still take the write, and the holder must not send it.
func TestAHolderPastItsDeadlineWritesNothing(t *testing.T) {
	run(t, 3, func(c *cluster) {
		id := c.submit("j1", stage("a", 6, task.Minute))
		w := c.busyWorker()
		time.Sleep(100 * time.Millisecond)
		var p *process
		w.runner.mu.Lock()
		for _, q := range w.runner.procs {
			if !q.over {
				p = q
			}
		}
		w.runner.mu.Unlock()
		wake := w.suspend()
		time.Sleep(50 * time.Second) // more than 0.8 of the lease, less than what is left of it at the granter
		wake()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if seq, err := w.core.Worker().Checkpoint(ctx, &p.a, []byte("late")); !errors.Is(err, task.ErrStaleToken) {
			t.Errorf("saved %d, %v", seq, err)
		}
		c.untilDone(id, 5*time.Minute)
	})
}
