package node

import (
	"testing"

	"github.com/shirou/gopsutil/v4/cpu"
)

// R6: what a heartbeat says of the processors is measured, between 0 and their number.
func TestBusyProcessors(t *testing.T) {
	at := func(user, system, idle, wait float64) cpu.TimesStat {
		return cpu.TimesStat{User: user, System: system, Idle: idle, Iowait: wait}
	}
	for name, c := range map[string]struct {
		last, now cpu.TimesStat
		want      float64
	}{
		"half of eight":    {at(10, 0, 10, 0), at(13, 1, 14, 0), 4},
		"waits for a disk": {at(10, 0, 10, 0), at(10, 0, 11, 3), 0},
		"all":              {at(10, 0, 10, 0), at(18, 0, 10, 0), 8},
		"no time between":  {at(10, 0, 10, 0), at(10, 0, 10, 0), 0},
		"counter set back": {at(10, 0, 10, 0), at(9, 0, 20, 0), 0},
	} {
		if got := busyProcessors(c.last, c.now, 8); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// The system's counters are there and move.
func TestCPUMeterReadsThisSystem(t *testing.T) {
	var m cpuMeter
	m.busy()
	if m.last == (cpu.TimesStat{}) {
		t.Fatal("no processor times on this system")
	}
	first := m.last
	for range 1 << 24 { // until the counters, which count hundredths of a second, have moved
		if m.busy(); m.last != first {
			return
		}
	}
	t.Error("the processor times stand still")
}
