package worker

import (
	"time"

	"lanjobs/task"
)

// gapWatch notices that this process did not run for a while. Asleep, the machine's boot clock went on and its awake clock
// and timers stood still; frozen (stopped, swapped out, its container paused), both clocks went on and a timer came late.
type gapWatch struct {
	boot  task.Boot     // at the last look
	awake time.Duration // at the last look
	until time.Duration // awake clock by which the next look was to be
	slept time.Duration // the part of the last gap that the machine was asleep
}

func newGapWatch(c task.Clock) *gapWatch {
	awake := c.Awake()
	return &gapWatch{boot: c.Boot(), awake: awake, until: awake}
}

// expect says that the next look comes after wait at the latest.
func (g *gapWatch) expect(wait time.Duration) { g.until = g.awake + wait }

// look gives how long the process was away since the last look, 0 if it was not. Only a gap that matters counts.
func (g *gapWatch) look(c task.Clock) time.Duration {
	boot, awake := c.Boot(), c.Awake()
	slept := boot.Sub(g.boot) - (awake - g.awake)
	late := awake - g.until
	g.boot, g.awake = boot, awake
	if slept < minSlept {
		slept = 0
	}
	if late < minFrozen {
		late = 0
	}
	g.slept = slept
	return slept + late
}
