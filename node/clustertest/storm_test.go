package clustertest

import (
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
)

// A storm brings one fault after the other over a cluster of three, often two at once. A majority keeps its disks.

// strike does something to the cluster and gives what undoes it, nil if there is nothing to undo.
func (c *cluster) strike(r *rand.Rand) (undo func()) {
	m, o := c.machines[r.Intn(len(c.machines))], c.machines[r.Intn(len(c.machines))]
	if r.Intn(3) == 0 {
		if l := c.leader(); l != nil {
			m = l
		}
	}
	up := m.core != nil && m.still == nil
	switch r.Intn(9) {
	case 0, 1:
		if m.core == nil {
			return nil
		}
		m.crash()
		return func() { m.start(false) }
	case 2:
		c.net.Isolate(m.id)
		return func() { c.net.Rejoin(m.id) }
	case 3:
		if o == m {
			return nil
		}
		c.net.CutOneWay(m.id, o.id)
		return func() { c.net.HealLink(m.id, o.id) }
	case 4:
		if up {
			return m.suspend()
		}
	case 5:
		if up {
			return m.freeze()
		}
	case 6:
		m.clock.Shift(time.Duration(r.Intn(2_000_000)-1_000_000) * time.Second)
	case 7:
		if o != m {
			c.net.Delay(m.id, o.id, time.Duration(r.Intn(800))*time.Millisecond)
			return func() { c.net.Delay(m.id, o.id, 0) }
		}
	case 8:
		if r.Intn(3) > 0 {
			return nil
		}
		var off []*machine
		for _, m := range c.machines {
			if m.core != nil {
				m.crash()
				off = append(off, m)
			}
		}
		return func() {
			for _, m := range off {
				m.start(false)
			}
		}
	}
	return nil
}

// storm lasts about d. What undoes a fault comes after up to 15 s; another fault may strike meanwhile.
func (c *cluster) storm(r *rand.Rand, d time.Duration) {
	nap := func(most int) { time.Sleep(time.Duration(r.Intn(most)) * time.Millisecond) }
	for end := time.Now().Add(d); time.Now().Before(end); nap(5000) {
		undo := c.strike(r)
		if undo == nil {
			continue
		}
		if r.Intn(2) == 0 {
			nap(5000)
			if also := c.strike(r); also != nil {
				nap(10_000)
				also()
			}
		}
		nap(15_000)
		undo()
	}
	c.net.Heal()
}

// replace loses a machine with its disk. A person takes it out, and a new one comes in under a new identity.
func (c *cluster) replace(m *machine) {
	c.t.Helper()
	m.crash()
	c.mu.Lock()
	for i := range c.machines {
		if c.machines[i] == m {
			c.machines = append(c.machines[:i:i], c.machines[i+1:]...)
			break
		}
	}
	c.mu.Unlock()
	c.propose(&fsm.SetNode{Node: m.id, Action: fsm.NodeRemove})
	fresh := c.add(m.id + "x")
	c.admit(fresh)
	fresh.start(false)
	c.untilVoters()
}

func seeds(normal int) int {
	if n, err := strconv.Atoi(os.Getenv("LANJOBS_SEEDS")); err == nil {
		return n
	}
	return normal
}

func TestStorms(t *testing.T) {
	var mu sync.Mutex
	var all tally
	n := seeds(20)
	t.Run("seeds", func(t *testing.T) {
		for seed := range int64(n) {
			t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewSource(seed))
				rough := func(c *cluster) { c.rough, c.rand = true, r }
				runWith(t, 3, rough, func(c *cluster) {
					ttl := []task.Millis{2, 5, 10, 60}[seed%4] * task.Second
					id := c.submit("j1", stage("a", 20, ttl), stage("b", 3, ttl, "a"))
					c.storm(r, 60*time.Second)
					if seed%4 == 0 {
						c.replace(c.machines[r.Intn(3)])
					}
					c.storm(r, 30*time.Second)
					c.untilDone(id, 10*time.Minute)
					mu.Lock()
					defer mu.Unlock()
					all.add(&c.oracle.seen)
				})
			})
		}
	})
	t.Logf("%d seeds: %+v", n, all)
	if n >= 100 && !t.Failed() && (all.expiries == 0 || all.refusals == 0 || all.lateWrites == 0 || all.thawed == 0) {
		t.Errorf("the storms do not bite: %+v", all)
	}
}

func (t *tally) add(u *tally) {
	t.grants, t.expiries, t.refusals = t.grants+u.grants, t.expiries+u.expiries, t.refusals+u.refusals
	t.saves, t.lateWrites, t.thawed = t.saves+u.saves, t.lateWrites+u.lateWrites, t.thawed+u.thawed
}

// The leader dies right after each kind of entry: what it had committed stands, what it had not told is told by the next.
func TestTheLeaderDiesAtEveryStep(t *testing.T) {
	for _, kind := range []task.EventKind{task.EventJobSubmit, task.EventStageState, task.EventLeaseGrant, task.EventLeaseConfirm,
		task.EventLeaseRenew, task.EventCheckpoint, task.EventLeaseRelease, task.EventLeaseExpire, task.EventLeaderElected} {
		t.Run(string(kind), func(t *testing.T) {
			for nth := 1; nth <= most(kind); nth++ {
				t.Run(fmt.Sprint(nth), func(t *testing.T) {
					t.Parallel()
					dieAt(t, kind, nth)
				})
			}
		})
	}
}

// most is how many events of a kind there are at least.
func most(kind task.EventKind) int {
	switch kind {
	case task.EventJobSubmit, task.EventLeaderElected:
		return 1
	case task.EventLeaseExpire:
		return 2
	}
	return 3
}

// dieAt kills the leader when the nth event of a kind has happened, after a worker's death if leases are to expire.
func dieAt(t *testing.T, kind task.EventKind, nth int) {
	run(t, 3, func(c *cluster) {
		c.pace = 3
		happened := c.oracle.at(kind, nth)
		id := c.submit("j1", stage("a", 8, 5*task.Second), stage("b", 2, 5*task.Second, "a"))
		switch kind {
		case task.EventLeaseExpire:
			c.busyWorker().crash()
		case task.EventLeaderElected:
			c.leader().crash()
		}
		select {
		case <-happened:
		case <-time.After(2 * time.Minute):
			t.Fatalf("no %s in two minutes", kind)
		}
		if l := c.leader(); l != nil {
			l.crash()
		}
		time.Sleep(3 * time.Second)
		for _, m := range c.machines {
			if m.core == nil {
				m.start(false)
			}
		}
		c.untilDone(id, 5*time.Minute)
	})
}
