package runner

import (
	"time"

	"lanjobs/task"
)

// The agent obeys the same deadlines as the guard, a little later: it acts only when the guard does not, because it is frozen
// (I2: nothing acts after its deadline while agent or guard is unfrozen).
const (
	backstopLate = 20 * time.Millisecond  // after a deadline's kill; the belief ends at least 66 ms after it
	stopLate     = 500 * time.Millisecond // after the end of a stop's grace
	synthLate    = 2 * time.Second        // then the end is reported without the guard
)

// watch polls the boot clock while something runs, for the same reason as the guard.
func (r *Runner) watch() {
	timer := r.clock.NewTimer(pollInterval)
	defer timer.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.wakeW:
		}
		for r.chaseLapsed(r.clock.Boot()) {
			timer.Reset(pollInterval)
			select {
			case <-r.ctx.Done():
				return
			case <-timer.C():
			}
		}
	}
}

// chaseLapsed goes after attempts whose guard should have ended them, and tells whether anything runs.
func (r *Runner) chaseLapsed(now task.Boot) (running bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.attempts {
		if a.ended || a.link == nil {
			continue
		}
		running = true
		if a.chased || !a.overdue(now) {
			continue
		}
		a.chased = true
		if a.stop == "" {
			a.stop, a.stopKill = task.StopLeaseLost, now
		}
		r.wg.Go(func() { r.chase(a) })
	}
	return running
}

// overdue: an attempt that the guard has not begun is left to its deadline, at which the guard will refuse it; only then is it
// certain that it never runs.
func (a *attempt) overdue(now task.Boot) bool {
	if now >= a.deadlines.Kill.Add(backstopLate) {
		return true
	}
	return a.started && a.stop != "" && now >= a.stopKill.Add(stopLate)
}

// chase kills an attempt in the guard's place. If the guard stays silent the agent reports the end itself: the tree is gone, and what
// was never begun has lapsed.
func (r *Runner) chase(a *attempt) {
	r.mu.Lock()
	l := a.link
	r.mu.Unlock()
	if l == nil {
		return // the guard died meanwhile, bury deals with it
	}
	r.killTrees([]*attempt{a}, l.hello.Pid, "")
	select {
	case <-r.ctx.Done():
		return
	case <-r.clock.After(synthLate):
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !a.ended {
		r.log.Warn("guard does not answer; end reported in its place", "execution", a.x, "guard", l.hello.ID)
		r.endLocked(a, &exitRecord{Signal: 9, Reason: a.stop})
	}
}
