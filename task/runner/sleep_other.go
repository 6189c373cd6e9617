//go:build !linux && !windows

package runner

import (
	"context"
	"errors"

	"lanjobs/task"
)

// WatchSleep tells s of each sleep until ctx ends. macOS tells only programs with a run loop of its own frameworks, which want cgo;
// a sleep is noticed after waking, by the clocks, and the deadlines of leases cover the time until then.
func WatchSleep(_ context.Context, _ task.Clock, s Sleeper) error {
	s.Watching(errors.New("this system does not tell lanjobs of sleeps before they begin; they are noticed after waking"))
	return nil
}
