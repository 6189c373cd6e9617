package runner

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime is mach_continuous_time: on macOS CLOCK_MONOTONIC_RAW goes on during sleep, unlike its namesake on Linux.
func bootTime() time.Duration { return readClock(unix.CLOCK_MONOTONIC_RAW) }

// awakeTime is mach_absolute_time.
func awakeTime() time.Duration { return readClock(unix.CLOCK_UPTIME_RAW) }
