package runner

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// startAwake and start tie Go's clock, which is CLOCK_MONOTONIC and read without a system call, to the kernel's value.
var startAwake, start = readClock(unix.CLOCK_MONOTONIC), time.Now()

func awakeTime() time.Duration { return startAwake + time.Since(start) }

// bootTime counts sleep; CLOCK_MONOTONIC, which Go itself uses, does not (CASES part C, 2). It needs a system call, so a
// reading serves for bootFresh of awake time. A sleep within that is noticed that much later, which is no more than what may
// lie between any reading and the act it decides.
func bootTime() time.Duration {
	awake := awakeTime()
	if last := lastBoot.Load(); last != nil && awake-last.awake < bootFresh {
		return last.boot + (awake - last.awake)
	}
	now := &bootReading{awake: awake, boot: readClock(unix.CLOCK_BOOTTIME)}
	lastBoot.Store(now)
	return now.boot
}

const bootFresh = 500 * time.Microsecond

type bootReading struct{ awake, boot time.Duration }

var lastBoot atomic.Pointer[bootReading]
