package node

import (
	"runtime"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/load"
)

// cpuMeter tells how many processors were busy since it was asked last. The systems' own load averages would not do: on Linux they
// count who waits for a disk, on Windows there is none.
type cpuMeter struct{ last cpu.TimesStat }

// busy is from 0 to the number of processors. The first answer, which has no past, is the load average; 0 if there is none.
func (c *cpuMeter) busy() float64 {
	times, err := cpu.Times(false)
	if err != nil || len(times) == 0 {
		return 0
	}
	now, last := times[0], c.last
	c.last = now
	if last != (cpu.TimesStat{}) {
		return busyProcessors(last, now, runtime.NumCPU())
	}
	if a, err := load.Avg(); err == nil {
		return min(a.Load1, float64(runtime.NumCPU()))
	}
	return 0
}

// busyProcessors is the share of the time between two readings, over all processors, that was not idle.
func busyProcessors(last, now cpu.TimesStat, processors int) float64 {
	idle := now.Idle - last.Idle + now.Iowait - last.Iowait
	work := now.User - last.User + now.System - last.System + now.Nice - last.Nice + now.Irq - last.Irq +
		now.Softirq - last.Softirq + now.Steal - last.Steal
	if total := idle + work; total > 0 {
		return min(max(work/total, 0), 1) * float64(processors)
	}
	return 0
}
