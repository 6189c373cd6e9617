package runner

import "time"

// Sleeper is told what the system says of this machine's sleep (R16).
type Sleeper interface {
	// Sleeps: the machine sleeps as soon as this returns, and after about budget in any case.
	Sleeps(budget time.Duration)
	// Woke: it is awake again, or the sleep was called off.
	Woke()
	// Watching tells whether sleeps are told of from now on: nil, or why not.
	Watching(err error)
}

// retryNotices is how long until a system that could not tell of sleeps is asked again.
const retryNotices = time.Minute
