package clustertest

import (
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
)

// worker gives a machine that does not lead and runs something.
func (c *cluster) busyWorker() *machine {
	c.t.Helper()
	var found *machine
	c.until(time.Minute, "a busy worker", func() bool {
		l := c.leader()
		for _, m := range c.machines {
			if m != l && m.core != nil && len(m.core.Worker().Status().Attempts) > 0 {
				found = m
				return l != nil
			}
		}
		return false
	})
	return found
}

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

// sleep freezes a machine for d, as a suspend does: nothing of it runs, and its boot clock has gone on when it wakes.
func (m *machine) sleep(d time.Duration) {
	m.c.net.Freeze(m.id)
	m.runner.setFrozen(true)
	time.Sleep(d)
	m.clock.Sleep(8 * time.Hour) // timers stood still for longer than this test shows
	m.runner.setFrozen(false)
	m.runner.lapse()
	m.c.net.Thaw(m.id)
}

func TestAMachineThatSleptPastItsLeaseHasNoEffect(t *testing.T) {
	run(t, 3, func(c *cluster) {
		id := c.submit("j1", stage("a", 6, 10*task.Second))
		w := c.busyWorker()
		time.Sleep(time.Second)
		w.sleep(40 * time.Second)
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
			w.runner.setFrozen(true) // the tasks wait; their agent does not
			time.Sleep(20 * time.Minute)
			w.runner.setFrozen(false)
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

// storm lets a random fault happen every few seconds, always leaving a majority of disks.
func (c *cluster) storm(r *rand.Rand, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Duration(r.Intn(5000)) * time.Millisecond) {
		m := c.machines[r.Intn(len(c.machines))]
		o := c.machines[r.Intn(len(c.machines))]
		pause := time.Duration(r.Intn(15000)) * time.Millisecond
		switch r.Intn(8) {
		case 0:
			m.crash()
			time.Sleep(pause)
			m.start(false)
		case 1:
			c.net.Isolate(m.id)
			time.Sleep(pause)
			c.net.Rejoin(m.id)
		case 2:
			if o != m {
				c.net.CutOneWay(m.id, o.id)
				time.Sleep(pause)
				c.net.Heal()
			}
		case 3:
			m.sleep(pause)
		case 4:
			m.clock.Shift(time.Duration(r.Intn(2000000)-1000000) * time.Second)
		case 5:
			if o != m {
				c.net.Delay(m.id, o.id, time.Duration(r.Intn(800))*time.Millisecond)
				time.Sleep(pause)
				c.net.Heal()
			}
		case 6:
			if l := c.leader(); l != nil {
				l.crash()
				time.Sleep(pause)
				l.start(false)
			}
		case 7:
			for _, m := range c.machines { // a power cut for all
				m.crash()
			}
			time.Sleep(pause)
			for _, m := range c.machines {
				m.start(false)
			}
		}
	}
	c.net.Heal()
}

func seeds(normal int) int {
	if n, err := strconv.Atoi(os.Getenv("LANJOBS_SEEDS")); err == nil {
		return n
	}
	return normal
}

func TestStorms(t *testing.T) {
	for seed := range int64(seeds(20)) {
		t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) {
			run(t, 3, func(c *cluster) {
				r := rand.New(rand.NewSource(seed))
				ttl := []task.Millis{2, 5, 10, 60}[seed%4] * task.Second
				id := c.submit("j1", stage("a", 20, ttl), stage("b", 3, ttl, "a"))
				c.storm(r, 90*time.Second)
				c.untilDone(id, 10*time.Minute)
			})
		})
	}
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
