package task

import "time"

// Millis is a length of time in milliseconds.
type Millis int64

// Lengths in Millis.
const (
	Second Millis = 1000
	Minute        = 60 * Second
	Hour          = 60 * Minute
	Day           = 24 * Hour
)

// Duration converts to a time.Duration.
func (m Millis) Duration() time.Duration { return time.Duration(m) * time.Millisecond }

// MillisOf converts from a time.Duration, rounding down.
func MillisOf(d time.Duration) Millis { return Millis(d / time.Millisecond) }

// Instant is a point on the cluster clock: the milliseconds that some leader has led. It advances only with committed
// batches, so every replica agrees on it and a change of leader neither shortens nor renews anything (I6, I8, I12). 0 is "never".
type Instant int64

// Add moves an instant.
func (i Instant) Add(m Millis) Instant { return i + Instant(m) }

// Sub is the length between two instants.
func (i Instant) Sub(j Instant) Millis { return Millis(i - j) }

// Boot is a point on one machine's clock that also counts the time asleep. A Boot value means nothing outside the
// machine and the boot it was read in: it never leaves a process except to the machine's own guard, and never reaches disk (I9).
type Boot time.Duration

// Add moves a boot instant.
func (b Boot) Add(d time.Duration) Boot { return b + Boot(d) }

// Sub is the length between two boot instants.
func (b Boot) Sub(c Boot) time.Duration { return time.Duration(b - c) }

// Clock is the only source of time in lanjobs; everything that waits or measures is handed one (DESIGN 2, R3).
type Clock interface {
	// Boot counts sleep. Deadlines of lease holders live on it.
	Boot() Boot
	// Awake does not count sleep. Leaders measure the time they have led with it.
	Awake() time.Duration
	// Wall is for display, audit and cron only; no decision compares two machines' values.
	Wall() time.Time
	// After fires once after d of awake time; callers compare Boot() again when it does.
	After(d time.Duration) <-chan time.Time
	// NewTimer is After with a stop.
	NewTimer(d time.Duration) Timer
}

// Timer is a running timer of a Clock.
type Timer interface {
	C() <-chan time.Time
	Stop() bool
	Reset(d time.Duration) bool
}
