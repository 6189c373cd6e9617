package runner

import (
	"time"

	"lanjobs/task"
)

// stall_timeout: an attempt that shows no output, progress or checkpoint for so long is hung and is stopped like one that took too
// long. Silence is counted on the awake clock, and a stretch in which the guard itself did not run (frozen, or the machine too
// busy) does not count: the task may have had no chance to speak either. Output the guard sees by itself; the rest the agent
// tells, which serves the task's endpoint.

// signOfLife tells the guard that the task did something which it cannot see. It counts from the request on, whatever becomes of
// it: a task that waits for a leader is not hung.
func (e *endpoint) signOfLife() {
	if e.rec.StallTimeout > 0 {
		e.r.tellAlive(e.x)
	}
}

func (r *Runner) tellAlive(x task.ExecutionID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.attempts[x]; a != nil && a.link != nil && !a.ended {
		_ = a.link.out.send(&message{Op: opAlive, X: x}) // a lost guard is dealt with by its reader
	}
}

// heardFrom notes output.
func (g *guard) heardFrom(a *guarded) {
	if a.launch.StallTimeout == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	a.heard = g.clock.Awake()
}

// pardon leaves a stretch out of all counts of silence.
func (g *guard) pardon(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.held {
		a.heard += d
	}
}

// stalled tells whether the attempt has been silent for too long, unless it is stopping anyway.
func (a *guarded) stalled(awake time.Duration) bool {
	limit := a.launch.StallTimeout.Duration()
	return limit > 0 && a.reason == "" && !a.killing && awake-a.heard >= limit
}

// graceful are the reasons to stop that give the grace of the job, not that of the lease.
func graceful(r task.StopReason) bool { return r == task.StopTimeout || r == task.StopStalled }
