package worker

import (
	"context"
	"math"
	"sync"
	"time"

	"lanjobs/task"
)

// machine is a computer with its own two clocks, which may run fast or slow, sleep and freeze. Inside a synctest bubble the
// bubble's time is true time. A machine that sleeps or is frozen runs no timer and gets no message until it goes on.
type machine struct {
	mu     sync.Mutex
	origin time.Time
	rate   float64 // of both clocks, against true time
	state  machineState
	since  time.Time     // of the state
	slept  time.Duration // true time asleep before the current state
	on     chan struct{} // closed while running
	timers map[*machineTimer]bool
}

type machineState int

const (
	running machineState = iota
	asleep
	frozen
)

const bootOffset = 90 * time.Minute // boot clocks start anywhere

func newMachine(rate float64) *machine {
	now := time.Now()
	on := make(chan struct{})
	close(on)
	return &machine{origin: now, rate: rate, since: now, on: on, timers: map[*machineTimer]bool{}}
}

func (m *machine) scale(d time.Duration) time.Duration { return time.Duration(float64(d) * m.rate) }

func (m *machine) Boot() task.Boot {
	return task.Boot(bootOffset + m.scale(time.Since(m.origin)))
}

func (m *machine) Awake() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.awake()
}

func (m *machine) awake() time.Duration {
	slept := m.slept
	if m.state == asleep {
		slept += time.Since(m.since)
	}
	return m.scale(time.Since(m.origin) - slept)
}

func (m *machine) Wall() time.Time { return time.Now().Add(time.Duration(m.rate*1e3) * time.Hour) } // far off on purpose

func (m *machine) After(d time.Duration) <-chan time.Time { return m.NewTimer(d).C() }

func (m *machine) NewTimer(d time.Duration) task.Timer {
	t := &machineTimer{m: m, c: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

// pause puts the machine to sleep or freezes it.
func (m *machine) pause(s machineState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state != running {
		return
	}
	m.state, m.since, m.on = s, time.Now(), make(chan struct{})
}

// resume lets it go on; timers that are due by its awake clock fire now.
func (m *machine) resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state == running {
		return
	}
	if m.state == asleep {
		m.slept += time.Since(m.since)
	}
	m.state, m.since = running, time.Now()
	close(m.on)
	for t := range m.timers {
		t.arm()
	}
}

func (m *machine) runs() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state == running
}

// runsFor is how long it has been running without a break.
func (m *machine) runsFor() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state != running {
		return 0
	}
	return time.Since(m.since)
}

// gate holds whoever wants to reach the machine until it runs.
func (m *machine) gate(ctx context.Context) bool {
	for {
		m.mu.Lock()
		on := m.on
		m.mu.Unlock()
		select {
		case <-on:
			if m.runs() {
				return true
			}
		case <-ctx.Done():
			return false
		}
	}
}

type machineTimer struct {
	m    *machine
	c    chan time.Time
	due  time.Duration // awake clock; guarded by m.mu like all below
	live bool
	gen  int
	t    *time.Timer
}

func (t *machineTimer) C() <-chan time.Time { return t.c }

func (t *machineTimer) Stop() bool {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	return t.stop()
}

func (t *machineTimer) stop() bool {
	was := t.live
	t.live = false
	t.gen++
	delete(t.m.timers, t)
	if t.t != nil {
		t.t.Stop()
	}
	select {
	case <-t.c:
	default:
	}
	return was
}

func (t *machineTimer) Reset(d time.Duration) bool {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	was := t.stop()
	t.live, t.due = true, t.m.awake()+d
	t.m.timers[t] = true
	t.arm()
	return was
}

// arm is called with m.mu held.
func (t *machineTimer) arm() {
	t.gen++
	gen := t.gen
	if t.t != nil {
		t.t.Stop()
	}
	wait := time.Duration(math.Ceil(float64(t.due-t.m.awake()) / t.m.rate))
	t.t = time.AfterFunc(max(wait, 0), func() { t.fire(gen) })
}

func (t *machineTimer) fire(gen int) {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	switch {
	case !t.live || t.gen != gen || t.m.state != running: // resume arms it again
	case t.m.awake() < t.due:
		t.arm()
	default:
		t.live = false
		delete(t.m.timers, t)
		t.c <- time.Now()
	}
}
