package worker

import (
	"context"
	"time"

	"lanjobs/task"
	"lanjobs/transport/memnet"
)

// machine is a computer with clocks of its own, which may run fast or slow, sleep and freeze. Inside a synctest bubble the
// bubble's time is true time. A machine that sleeps or is frozen runs no timer and gets no message until it goes on.
type machine struct{ *memnet.Clock }

type machineState int

const (
	asleep machineState = iota
	frozen
)

const bootOffset = 90 * time.Minute // boot clocks start anywhere

func newMachine(rate float64) *machine {
	m := &machine{memnet.NewDriftingClock(rate)}
	m.Reboot(bootOffset)
	m.Shift(time.Duration(rate*1e3) * time.Hour) // far off on purpose
	return m
}

// pause puts the machine to sleep or freezes it.
func (m *machine) pause(s machineState) {
	if s == asleep {
		m.Suspend()
	} else {
		m.Freeze()
	}
}

func (m *machine) resume() { m.Resume() }

func (m *machine) runs() bool { return m.Runs() }

// runsFor is how long it has been running without a break.
func (m *machine) runsFor() time.Duration { return m.RunsFor() }

// gate holds whoever wants to reach the machine until it runs.
func (m *machine) gate(ctx context.Context) bool { return m.Await(ctx) }

var _ task.Clock = (*machine)(nil)
