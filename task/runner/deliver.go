package runner

import (
	"fmt"
	"time"

	"lanjobs/task"
)

// deliver sends ended attempts to Exits, one after the other. It waits when the channel is full; the guard does not, since it
// keeps the ends anyway.
func (r *Runner) deliver() {
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.wakeD:
		}
		for {
			a := r.nextEnded()
			if a == nil {
				break
			}
			select {
			case <-r.ctx.Done():
				return
			case r.exits <- r.exitOf(a):
			}
		}
	}
}

func (r *Runner) nextEnded() *attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ended) == 0 {
		return nil
	}
	a := r.ended[0]
	r.ended = r.ended[1:]
	return a
}

// exitOf reads what belongs to an end from the disk. The endpoint closes first: nothing may be saved under this execution any
// more once its end is known.
func (r *Runner) exitOf(a *attempt) Exit {
	r.mu.Lock()
	e, exit := a.endpoint, a.exit
	if exit.Reason == "" && exit.Signal != 0 && a.chased {
		killed := *exit
		killed.Reason = a.stop
		exit = &killed // the guard, thawed, does not know who killed it
	}
	r.mu.Unlock()
	if e != nil {
		e.close()
	}
	out := Exit{Assignment: a.assignment, Outcome: outcomeOf(exit)}
	if out.Outcome.End == task.EndExited && out.Outcome.ExitCode == 0 {
		kvs, err := readOutputs(r.paths(a.x).output)
		if err != nil {
			out.Outcome.ExitCode = task.DataError
			out.Outcome.Message = oneLine(fmt.Sprintf("exit 0, but its LANJOBS_OUTPUT file cannot be taken: %v", err))
		}
		out.Outputs = kvs
	}
	if wantsTail(out.Outcome) {
		out.Outcome.Tail = logTail(r.logDir(), a.x, exit.Packed, task.MaxTailBytes)
	}
	return out
}

// discard is called with mu held: clean removes the files, which may take long.
func (r *Runner) discard(p paths) {
	r.trash = append(r.trash, p)
	nudge(r.wakeC)
}

// Old logs are looked for when attempts are forgotten, but not more often than this.
const sweepEvery = 10 * time.Minute

// clean removes private directories, and old logs now and then. An idle runner does nothing.
func (r *Runner) clean() {
	swept := r.clock.Awake() - sweepEvery
	for {
		r.mu.Lock()
		trash := r.trash
		r.trash = nil
		r.mu.Unlock()
		for _, p := range trash {
			if err := p.remove(r.spares); err != nil {
				r.log.Warn("private directory not removed", "path", p.dir, "error", err)
			}
		}
		if now := r.clock.Awake(); now-swept >= sweepEvery {
			swept = now
			if err := r.Sweep(r.cfg.LogKeepBytes, r.cfg.LogKeepAge); err != nil {
				r.log.Warn("old logs not removed", "error", err)
			}
		}
		select {
		case <-r.ctx.Done():
			return
		case <-r.wakeC:
		}
	}
}
