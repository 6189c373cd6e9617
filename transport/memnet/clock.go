package memnet

import (
	"sync/atomic"
	"time"

	"lanjobs/task"
)

// Clock is a machine's task.Clock on the time of a bubble, with a wall clock that may be wrong and a boot clock that may
// have slept.
type Clock struct {
	start time.Time
	slept atomic.Int64
	wrong atomic.Int64
}

var _ task.Clock = (*Clock)(nil)

// NewClock starts a machine.
func NewClock() *Clock { return &Clock{start: time.Now()} }

// Sleep makes the boot clock count d of sleep, all at once.
func (c *Clock) Sleep(d time.Duration) { c.slept.Add(int64(d)) }

// Shift sets the wall clock off by d more.
func (c *Clock) Shift(d time.Duration) { c.wrong.Add(int64(d)) }

// Boot counts the sleep.
func (c *Clock) Boot() task.Boot { return task.Boot(c.Awake() + time.Duration(c.slept.Load())) }

// Awake does not.
func (c *Clock) Awake() time.Duration { return time.Since(c.start) }

// Wall is what the machine shows.
func (c *Clock) Wall() time.Time { return time.Now().Add(time.Duration(c.wrong.Load())) }

// After fires after d of awake time.
func (c *Clock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// NewTimer is After with a stop.
func (c *Clock) NewTimer(d time.Duration) task.Timer { return timer{time.NewTimer(d)} }

type timer struct{ *time.Timer }

func (t timer) C() <-chan time.Time { return t.Timer.C }
