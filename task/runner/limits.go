package runner

import (
	"fmt"
	"strings"

	"lanjobs/task"
)

// limits are the resources of a stage as they are enforced on its processes together (R34). The zero value limits nothing: what a
// job file does not say is only booked, never enforced, so that no default kills anybody's work (C56).
type limits struct {
	MilliCPU int `json:"milli_cpu,omitempty"` // thousandths of a processor
	MemoryMB int `json:"memory_mb,omitempty"` // MiB; swap is not given beside it
}

// maxProcesses is how many processes and threads an attempt with limits may have: far above what anything but a fork bomb needs.
const maxProcesses = 16384

func limitsOf(r task.Resources) limits { return limits{MilliCPU: r.MilliCPU, MemoryMB: r.MemoryMB} }

// The words of NodeInfo.Limits.
const (
	limitsEnforced    = "cgroup"
	limitsNotEnforced = "not enforced: "
)

// Limits says whether this machine enforces the resources of a job file: "cgroup", "cgroup: memory, pids only", or "not enforced: "
// with the reason.
func (r *Runner) Limits() string { return r.cgroups.String() }

// cgroupBase is where guards make their control groups, and what these may limit.
type cgroupBase struct {
	dir         string   // "" = nowhere
	controllers []string // of limitControllers, those that may be used
	why         string   // some or all may not
}

// limitControllers are what limits need, the most important first.
var limitControllers = []string{"memory", "cpu", "pids"}

func (b cgroupBase) String() string {
	switch len(b.controllers) {
	case 0:
		return limitsNotEnforced + b.why
	case len(limitControllers):
		return limitsEnforced
	}
	return fmt.Sprintf("%s: %s only", limitsEnforced, strings.Join(b.controllers, ", "))
}

// length is a length of time as a job file has it: 10m, 1h30m, 1.5s.
func length(m task.Millis) string {
	s := m.Duration().String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// memorySize is 4 GiB, 1.5 GiB or 100 MiB.
func memorySize(mb int) string {
	if mb >= 1024 {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(mb)/1024), ".0") + " GiB"
	}
	return fmt.Sprintf("%d MiB", mb)
}

// openCgroups is called once at the start. What cannot be enforced is said once, here.
func (r *Runner) openCgroups() {
	r.cgroups = cgroupBase{why: "control groups are switched off"}
	if !r.cfg.NoCgroups {
		r.cgroups = openCgroupBase()
	}
	switch {
	case len(r.cgroups.controllers) == 0:
		r.log.Info("resource limits of jobs", "limits", r.cgroups.String())
	case r.cgroups.why != "":
		r.log.Info("resource limits of jobs", "limits", r.cgroups.String(), "why", r.cgroups.why)
	}
}
