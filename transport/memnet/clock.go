package memnet

import (
	"context"
	"math"
	"sync"
	"time"

	"lanjobs/task"
)

// Clock is a machine's task.Clock on the time of a bubble. It may run fast or slow, its wall clock may be wrong, and the
// machine may be suspended or frozen: then no timer of it fires until it goes on.
type Clock struct {
	mu     sync.Mutex // guards all below
	origin time.Time
	rate   float64       // of the boot and awake clocks, against true time
	boot   time.Duration // what the boot clock showed at the origin, and jumps since
	wrong  time.Duration // of the wall clock
	state  state
	since  time.Time     // of the state
	slept  time.Duration // true time suspended before the current state
	on     chan struct{} // closed while running
	timers map[*timer]bool
}

type state int

const (
	running state = iota
	suspended
	frozen
)

var _ task.Clock = (*Clock)(nil)

// NewClock starts a machine with right clocks.
func NewClock() *Clock { return NewDriftingClock(1) }

// NewDriftingClock starts one whose clocks run at a rate against true time: 1.1 gains a tenth.
func NewDriftingClock(rate float64) *Clock {
	now, on := time.Now(), make(chan struct{})
	close(on)
	return &Clock{origin: now, rate: rate, since: now, on: on, timers: map[*timer]bool{}}
}

// Sleep makes the boot clock count d of sleep, all at once.
func (c *Clock) Sleep(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boot += d
}

// Reboot makes the boot clock show d, as after a start of the machine. Deadlines of its former life mean nothing.
func (c *Clock) Reboot(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boot = d - c.scale(time.Since(c.origin))
}

// Shift sets the wall clock off by d more.
func (c *Clock) Shift(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong += d
}

// Suspend stops the machine as sleep does: its awake clock stands still, its boot clock goes on.
func (c *Clock) Suspend() { c.stop(suspended) }

// Freeze stops all processes of the machine, as SIGSTOP does: both clocks go on.
func (c *Clock) Freeze() { c.stop(frozen) }

func (c *Clock) stop(s state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == running {
		c.state, c.since, c.on = s, time.Now(), make(chan struct{})
	}
}

// Resume lets the machine go on; timers that are due by its awake clock fire now.
func (c *Clock) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == running {
		return
	}
	if c.state == suspended {
		c.slept += time.Since(c.since)
	}
	c.state, c.since = running, time.Now()
	close(c.on)
	for t := range c.timers {
		t.arm()
	}
}

// Runs tells whether the machine is neither suspended nor frozen.
func (c *Clock) Runs() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state == running
}

// RunsFor is for how long of true time it has been running without a break, 0 if it does not run.
func (c *Clock) RunsFor() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != running {
		return 0
	}
	return time.Since(c.since)
}

// Await holds whoever wants to reach the machine until it runs. False when ctx ended first.
func (c *Clock) Await(ctx context.Context) bool {
	for {
		c.mu.Lock()
		on := c.on
		c.mu.Unlock()
		select {
		case <-on:
			if c.Runs() {
				return true
			}
		case <-ctx.Done():
			return false
		}
	}
}

func (c *Clock) scale(d time.Duration) time.Duration { return time.Duration(float64(d) * c.rate) }

// Boot counts sleep.
func (c *Clock) Boot() task.Boot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return task.Boot(c.boot + c.scale(time.Since(c.origin)))
}

// Awake does not.
func (c *Clock) Awake() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.awake()
}

func (c *Clock) awake() time.Duration {
	slept := c.slept
	if c.state == suspended {
		slept += time.Since(c.since)
	}
	return c.scale(time.Since(c.origin) - slept)
}

// Wall is what the machine shows.
func (c *Clock) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.wrong)
}

// After fires after d of awake time.
func (c *Clock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }

// NewTimer is After with a stop.
func (c *Clock) NewTimer(d time.Duration) task.Timer {
	t := &timer{clock: c, c: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

// timer counts on the awake clock. What is below c is guarded by the clock's lock.
type timer struct {
	clock *Clock
	c     chan time.Time

	due  time.Duration // awake clock
	live bool
	turn int // of arming: a firing of an earlier one is late
	t    *time.Timer
}

func (t *timer) C() <-chan time.Time { return t.c }

func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.stop()
}

// stop also takes back what was not received yet, as Go's timers do.
func (t *timer) stop() bool {
	was := t.live
	t.live = false
	t.turn++
	delete(t.clock.timers, t)
	if t.t != nil {
		t.t.Stop()
	}
	select {
	case <-t.c:
	default:
	}
	return was
}

func (t *timer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	was := t.stop()
	t.live, t.due = true, t.clock.awake()+d
	t.clock.timers[t] = true
	t.arm()
	return was
}

// arm is called under the clock's lock.
func (t *timer) arm() {
	t.turn++
	turn := t.turn
	if t.t != nil {
		t.t.Stop()
	}
	wait := time.Duration(math.Ceil(float64(t.due-t.clock.awake()) / t.clock.rate))
	t.t = time.AfterFunc(max(wait, 0), func() { t.fire(turn) })
}

func (t *timer) fire(turn int) {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	switch {
	case !t.live || t.turn != turn || t.clock.state != running: // Resume arms it again
	case t.clock.awake() < t.due:
		t.arm()
	default:
		t.live = false
		delete(t.clock.timers, t)
		t.c <- time.Now()
	}
}
