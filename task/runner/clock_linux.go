package runner

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime counts sleep; CLOCK_MONOTONIC, which Go itself uses, does not (CASES part C, 2).
func bootTime() time.Duration { return readClock(unix.CLOCK_BOOTTIME) }

func awakeTime() time.Duration { return readClock(unix.CLOCK_MONOTONIC) }
