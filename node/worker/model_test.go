package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/task"
)

// The model runs real workers against the reference granter while machines sleep, freeze, run too fast or too slow, and the
// network loses, delays, doubles and cuts. What must hold: at most one believer per shard (I1), no process after its
// deadline (I2), no acknowledged checkpoint lost (I5), and once all is well again everything gets done.

// modelOptions spoil the model on purpose, to prove that it can see (TestModelSees…).
type modelOptions struct {
	granterCut float64 // the granter's leases are that much shorter than it says
	clock      func(*machine) task.Clock
	guard      bool
}

type model struct {
	*lab
	rng     *rand.Rand // of the goroutine that sets up
	ttl     time.Duration
	opt     modelOptions
	mu      sync.Mutex
	faults  []string // violations
	lastAck map[task.ShardRef]int
	seen    *modelTally
}

// modelTally shows that a run was not empty.
type modelTally struct{ starts, renewedFirst, expired, saves, stale int }

func TestModelAtMostOneBeliever(t *testing.T) {
	first, n := uint64(1), uint64(24)
	for _, name := range []string{"LANJOBS_SEEDS", "LANJOBS_MODEL_SEEDS"} {
		if s := os.Getenv(name); s != "" {
			n, _ = strconv.ParseUint(s, 10, 64)
		}
	}
	if s := os.Getenv("LANJOBS_MODEL_FIRST"); s != "" {
		first, _ = strconv.ParseUint(s, 10, 64)
	}
	var seen modelTally
	for seed := first; seed < first+n; seed++ {
		if faults := runModel(t, seed, modelOptions{guard: seed%3 == 0}, &seen); len(faults) > 0 {
			t.Fatalf("seed %d (LANJOBS_MODEL_FIRST=%d LANJOBS_MODEL_SEEDS=1):\n%v", seed, seed, faults)
		}
	}
	t.Logf("%d seeds: %+v", n, seen)
	if n >= 24 && (seen.starts < 200 || seen.renewedFirst == 0 || seen.expired == 0 || seen.saves < 200 || seen.stale == 0) {
		t.Error("the model hardly does anything")
	}
}

// TestModelSees breaks the premises one by one. If one of these finds nothing, the model above proves nothing.
func TestModelSees(t *testing.T) {
	for name, opt := range map[string]modelOptions{
		"a granter that expires early":     {granterCut: 0.7},
		"a boot clock that stops in sleep": {clock: func(m *machine) task.Clock { return sleepless{m} }},
	} {
		found := false
		for seed := uint64(1); seed <= 20 && !found; seed++ {
			found = len(runModel(t, seed, opt, &modelTally{})) > 0
		}
		if !found {
			t.Errorf("%s: nothing seen", name)
		}
	}
}

// sleepless does not count sleep, as Go's own monotonic clock.
type sleepless struct{ *machine }

func (s sleepless) Boot() task.Boot { return task.Boot(bootOffset + s.Awake()) }

func runModel(t *testing.T, seed uint64, opt modelOptions, seen *modelTally) (faults []string) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, 1))
		ttls := []task.Millis{2 * task.Second, 5 * task.Second, 10 * task.Second, task.Minute}
		ttl := ttls[rng.IntN(len(ttls))]
		m := &model{lab: newLab(t), rng: rng, ttl: ttl.Duration(), opt: opt, lastAck: map[task.ShardRef]int{}, seen: seen}
		defer m.close()
		m.g.rate = drift(rng)
		if opt.granterCut != 0 {
			m.g.cut = opt.granterCut
		}
		m.g.onGrant = m.atGrant
		m.g.job("j1", 4, task.DefaultLease(ttl))
		for i := range 3 {
			m.addNode(drift(rng), seed*10+uint64(i))
		}
		m.every(50*time.Millisecond, m.sample)
		time.Sleep(30 * m.ttl)
		m.heal()
		if !m.spoiled() {
			m.until(60*m.ttl+time.Minute, fmt.Sprintf("seed %d: all done after healing", seed), m.succeeded(4))
		}
		m.g.look(func() { seen.expired, seen.stale = seen.expired+len(m.g.expired), seen.stale+m.g.stale })
		m.mu.Lock()
		defer m.mu.Unlock()
		faults = m.faults
	})
	return faults
}

// drift is the rate of a clock, often as far off as the promise goes.
func drift(rng *rand.Rand) float64 {
	return []float64{0.9, 1.1, 0.9 + 0.2*rng.Float64()}[rng.IntN(3)]
}

func (m *model) spoiled() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.faults) > 0 || m.opt.granterCut != 0 || m.opt.clock != nil
}

func (m *model) fault(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.faults) < 5 {
		m.faults = append(m.faults, fmt.Sprintf("%v: ", time.Since(m.g.origin))+fmt.Sprintf(format, args...))
	}
}

func (m *model) addNode(rate float64, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	var mu sync.Mutex
	n := m.bareNode(2, rate, func(*task.Assignment) work {
		mu.Lock()
		defer mu.Unlock()
		return work{takes: m.part(rng, 5), ends: m.part(rng, 0.25), ignores: rng.IntN(3) == 0}
	})
	n.r.guard = m.opt.guard
	n.r.onRun = func(a *task.Assignment) { m.atStart(n, a) }
	n.r.life = func(ctx context.Context, a *task.Assignment) { m.live(ctx, n, a) }
	if m.opt.clock != nil {
		n.clock = m.opt.clock(n.machine)
	}
	n.start()
	// Two at once, so that faults come on top of each other.
	m.wg.Go(func() { m.torment(n, rand.New(rand.NewPCG(seed, 3))) })
	m.wg.Go(func() { m.torment(n, rand.New(rand.NewPCG(seed, 4))) })
}

// part draws up to k TTLs.
func (m *model) part(rng *rand.Rand, k float64) time.Duration {
	return time.Duration(rng.Float64() * k * float64(m.ttl))
}

// nap waits in true time; false when the lab closes.
func (m *model) nap(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-m.stop:
		return false
	}
}

// torment brings one fault after the other over a node.
func (m *model) torment(n *node, rng *rand.Rand) {
	for end := time.Now().Add(30 * m.ttl); time.Now().Before(end); {
		if !m.nap(m.part(rng, 2)) {
			return
		}
		undo := m.strike(n, rng)
		if !m.nap(m.part(rng, 2.5)) {
			return
		}
		undo()
	}
}

func (m *model) strike(n *node, rng *rand.Rand) (undo func()) {
	switch rng.IntN(9) {
	case 0:
		n.set(func(w *wire) { w.cutOut, w.cutBack = true, true })
	case 1:
		n.set(func(w *wire) { w.cutBack, w.reset = true, m.part(rng, 0.2) })
	case 2:
		n.set(func(w *wire) { w.lossOut, w.lossBack, w.reset = rng.Float64()/2, rng.Float64()/2, m.part(rng, 0.1) })
	case 3:
		n.set(func(w *wire) { w.delay = m.part(rng, 0.5) })
	case 4:
		n.set(func(w *wire) { w.double, w.delay = 0.5, m.part(rng, 0.1) })
	case 5, 6:
		n.pause([]machineState{asleep, frozen}[rng.IntN(2)])
		return func() { n.resume(); m.atResume(n) }
	case 7: // slow, and then cut off: what was counted from a late answer would show
		n.set(func(w *wire) { w.minDelay = m.part(rng, 0.06) })
		m.nap(m.part(rng, 0.5))
		n.set(func(w *wire) { w.cutOut, w.cutBack = true, true })
	case 8:
		if m.opt.guard {
			return n.bounce()
		}
		m.g.setDown(true)
		return func() { m.g.setDown(false) }
	}
	return func() {
		n.set(func(w *wire) {
			w.cutOut, w.cutBack, w.lossOut, w.lossBack, w.delay, w.double, w.reset = false, false, 0, 0, 0, 0, 0
			w.minDelay = time.Millisecond
		})
	}
}

// heal waits for the tormentors to end; each undoes what it did.
func (m *model) heal() { time.Sleep(5 * m.ttl) }

// live is the task: it saves a checkpoint now and then and goes on from the last one.
func (m *model) live(ctx context.Context, n *node, a *task.Assignment) {
	done := 0
	if a.Checkpoint != nil {
		done, _ = strconv.Atoi(string(a.Checkpoint.Data))
	}
	m.mu.Lock()
	acked := m.lastAck[a.Ref()]
	m.seen.starts++
	if a.MustRenew {
		m.seen.renewedFirst++
	}
	m.mu.Unlock()
	if done < acked {
		m.fault("attempt %d of %v goes on at %d, acknowledged was %d (I5)", a.Attempt, a.Ref(), done, acked)
	}
	for {
		select {
		case <-n.machine.After(m.ttl / 7):
		case <-ctx.Done():
			return
		}
		w := n.agent.Load()
		if w == nil {
			continue
		}
		done++
		if _, err := w.Checkpoint(ctx, a, []byte(strconv.Itoa(done))); err != nil {
			done--
			continue
		}
		m.mu.Lock()
		m.lastAck[a.Ref()] = max(m.lastAck[a.Ref()], done)
		m.seen.saves++
		m.mu.Unlock()
	}
}

// atGrant is called under the granter's lock, as a new execution comes to be.
func (m *model) atGrant(s *gshard) {
	for _, n := range m.nodes {
		for _, p := range n.r.alive() {
			if p.Assignment.Ref() == s.ref && p.Assignment.Token != s.token {
				m.judge(n, &p.Assignment, fmt.Sprintf("while %v is granted to %s", s.token, s.node))
			}
		}
	}
}

// judge faults an execution that is over for the granter. A machine that does not run cannot act; one that just woke has
// 250 ms to kill, but may not believe for a moment.
func (m *model) judge(n *node, a *task.Assignment, when string) {
	if !n.runs() {
		return
	}
	if w := n.agent.Load(); w != nil {
		if d, ok := w.Lease(a.Execution()); ok {
			m.fault("%s believes in %v of %v for %v more %s (I1)", n.id, a.Token, a.Ref(), d.Remaining(n.Boot()), when)
		}
	}
	if n.runsFor() > 260*time.Millisecond {
		m.fault("%s still runs %v of %v %s (I2)", n.id, a.Token, a.Ref(), when)
	}
}

func (m *model) atStart(n *node, a *task.Assignment) {
	m.g.look(func() {
		if m.g.find(a.Token) == nil && n.runs() {
			m.fault("%s starts %v of %v whose lease is over (I1)", n.id, a.Token, a.Ref())
		}
	})
}

func (m *model) atResume(n *node) {
	m.g.look(func() {
		for _, p := range n.r.alive() {
			if m.g.find(p.Assignment.Token) == nil {
				m.judge(n, &p.Assignment, "right after the machine went on")
			}
		}
	})
}

// sample looks at all machines at one moment.
func (m *model) sample() {
	m.g.look(func() {
		for _, n := range m.nodes {
			for _, p := range n.r.alive() {
				if m.g.find(p.Assignment.Token) == nil {
					m.judge(n, &p.Assignment, "though the granter has ended it")
				}
				if n.runsFor() > 260*time.Millisecond && n.Boot() > p.Deadlines.Kill.Add(10*time.Millisecond) && m.opt.clock == nil {
					m.fault("%s runs %v past its kill by %v (I2)", n.id, p.Assignment.Token, n.Boot().Sub(p.Deadlines.Kill))
				}
			}
		}
		m.tokensRise()
	})
}

// tokensRise is the granter's own sanity: one holder per shard.
func (m *model) tokensRise() {
	var seen []task.Token
	for _, s := range m.g.shards {
		if s.state.Leased() && slices.Contains(seen, s.token) {
			m.fault("token %v held twice", s.token)
		}
		seen = append(seen, s.token)
	}
}
