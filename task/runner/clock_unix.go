//go:build unix

package runner

import (
	"time"

	"golang.org/x/sys/unix"
)

// readClock cannot fail for a clock that the kernel has; without a clock no lease can be kept, so it is a broken invariant.
func readClock(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic("clock_gettime: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
