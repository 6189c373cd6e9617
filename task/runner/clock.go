package runner

import (
	"time"

	"lanjobs/task"
)

// SystemClock is the real clock of this machine (DESIGN 2). Boot and Awake are read by clock_{linux,darwin,windows}.go.
func SystemClock() task.Clock { return systemClock{} }

type systemClock struct{}

func (systemClock) Boot() task.Boot      { return task.Boot(bootTime()) }
func (systemClock) Awake() time.Duration { return awakeTime() }
func (systemClock) Wall() time.Time      { return time.Now() }

func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

func (systemClock) NewTimer(d time.Duration) task.Timer { return systemTimer{time.NewTimer(d)} }

// systemTimer counts awake time: Go's timers stand still while the machine sleeps, so whoever waits for a deadline compares
// Boot() again when one fires, and keeps his waits short.
type systemTimer struct{ t *time.Timer }

func (t systemTimer) C() <-chan time.Time        { return t.t.C }
func (t systemTimer) Stop() bool                 { return t.t.Stop() }
func (t systemTimer) Reset(d time.Duration) bool { return t.t.Reset(d) }
