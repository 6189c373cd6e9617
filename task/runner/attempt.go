package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"lanjobs/task"
)

// attempt is one execution in the agent; the runner's mu guards it.
type attempt struct {
	x          task.ExecutionID
	record     *record
	assignment task.Assignment // with the newest checkpoint that was here when it began or was found again
	deadlines  task.Deadlines
	link       *link     // the guard that has it; nil while it is prepared and after its guard died
	grave      *journal  // of its dead guard
	handed     task.Boot // when the guard was told
	started    bool      // the guard says that its process exists
	pid        int
	pidHeard   task.Boot // when that was told: what began later and has the number is another process
	stop       task.StopReason
	stopKill   task.Boot // once stopping
	chased     bool      // watch is killing it in the guard's place
	ended      bool
	exit       *exitRecord
	endpoint   *endpoint
}

// handOver is how long a guard may take to begin an attempt. After that its deadlines are not moved any more: it must lapse
// before somebody else may run the shard, since a frozen guard could still begin it.
const handOver = 10 * time.Second

// Start begins an attempt and returns when it is on disk and handed over; how it ends comes through Exits, a command that could not
// be started too. An error means that this machine could not even try (disk full, no guard).
func (r *Runner) Start(a *task.Assignment, spec *task.Spec, d task.Deadlines) error {
	x := a.Execution()
	rec, stage, err := newRecord(a, spec, r.cfg.NodeName)
	if err != nil {
		return err
	}
	at := &attempt{x: x, record: rec, assignment: *a, deadlines: d}
	if err := r.admit(at); err != nil {
		return err
	}
	begin := func() error { return r.begin(at, stage, spec.Files, a.Checkpoint) }
	if !needsDisk(stage) {
		return begin()
	}
	// A directory may be on a share that answers late or never; other starts do not wait for it.
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	r.wg.Go(func() {
		if err := begin(); err != nil {
			r.end(at, &exitRecord{Code: 126, StartError: err.Error()})
		}
	})
	return nil
}

var errClosed = errors.New("runner is closed")

func (r *Runner) admit(a *attempt) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return errClosed
	case r.attempts[a.x] != nil:
		return fmt.Errorf("execution %s is here already: %w", a.x, task.ErrConflict)
	}
	r.attempts[a.x] = a
	return nil
}

// begin prepares an attempt, opens its endpoint and hands it to the guard. A fault of the job is an end; any other is returned.
func (r *Runner) begin(a *attempt, stage *task.StageSpec, files []task.File, cp *task.Checkpoint) error {
	u, err := r.userFor(stage)
	if missing, ok := errors.AsType[*unmetError](err); ok {
		r.end(a, &exitRecord{Unmet: missing.text})
		return nil
	}
	a.record.Owner = u.owner()
	e, err := r.openEndpoint(a)
	if err != nil {
		return r.undo(a, fmt.Errorf("task endpoint: %w", err))
	}
	l, err := r.prepare(a.record, u, stage, files, cp)
	if bad, ok := errors.AsType[*startError](err); ok {
		e.close()
		r.end(a, &exitRecord{Code: bad.code, StartError: bad.text})
		return nil
	}
	if missing, ok := errors.AsType[*unmetError](err); ok {
		e.close()
		r.end(a, &exitRecord{Unmet: missing.text})
		return nil
	}
	if err == nil {
		err = r.handOver(a, l, e)
	}
	if err != nil {
		e.close()
		return r.undo(a, err)
	}
	return nil
}

// undo takes back an attempt that never came to be.
func (r *Runner) undo(a *attempt, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.attempts[a.x] == a {
		delete(r.attempts, a.x)
		r.discard(r.paths(a.x))
	}
	return err
}

func (r *Runner) handOver(a *attempt, l *launch, e *endpoint) error {
	blob, err := json.Marshal(a.record)
	if err != nil {
		return err
	}
	guard, err := r.guard()
	if err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.stop != "" { // while it was prepared
		r.endLocked(a, &exitRecord{Reason: a.stop})
		e.close()
		return nil
	}
	d := a.deadlines
	if err := guard.out.send(&message{Op: opStart, X: a.x, Deadlines: &d, Launch: l, Blob: blob}); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	a.link, a.handed, a.endpoint = guard, r.clock.Boot(), e
	nudge(r.wakeW)
	return nil
}

// Extend moves an attempt's deadlines after an acknowledged renewal; they never move back.
func (r *Runner) Extend(x task.ExecutionID, d task.Deadlines) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.attempts[x]
	if a == nil || a.ended || a.late(r.clock.Boot()) {
		return
	}
	a.deadlines = a.deadlines.Later(d)
	if a.link != nil {
		d = a.deadlines
		_ = a.link.out.send(&message{Op: opExtend, X: x, Deadlines: &d}) // a lost guard is dealt with by its reader
	}
}

// late: the guard should have begun it long ago, or never will since it is to stop.
func (a *attempt) late(now task.Boot) bool {
	return a.link != nil && !a.started && (a.stop != "" || now.Sub(a.handed) > handOver)
}

// Stop asks an attempt to end: reason first into its LANJOBS_STOP file, SIGTERM, after grace SIGKILL (whole process tree). A
// grace of 0 kills at once. Its exit carries the first reason's End.
func (r *Runner) Stop(x task.ExecutionID, reason task.StopReason, grace task.Millis) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.attempts[x]
	if a == nil || a.ended {
		return
	}
	killAt := r.clock.Boot().Add(grace.Duration())
	if a.stop == "" {
		a.stop, a.stopKill = reason, killAt
	}
	a.stopKill = min(a.stopKill, killAt)
	if a.link != nil {
		_ = a.link.out.send(&message{Op: opStop, X: x, Reason: reason, Grace: grace})
	}
}

// Forget drops an ended attempt's record and private directory; its logs stay.
func (r *Runner) Forget(x task.ExecutionID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.attempts[x]
	if a == nil || !a.ended {
		return
	}
	delete(r.attempts, x)
	switch {
	case a.link != nil:
		_ = a.link.out.send(&message{Op: opForget, X: x})
		r.retire(a.link)
	case a.grave != nil:
		r.forgetDead(a.grave, x)
	}
	p := r.paths(x)
	p.tainted = len(a.exit.Survivors) > 0
	r.discard(p)
}

func (r *Runner) end(a *attempt, e *exitRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endLocked(a, e)
}

// endLocked is called with mu held; the first end counts.
func (r *Runner) endLocked(a *attempt, e *exitRecord) {
	if a.ended {
		return
	}
	a.ended, a.exit = true, e
	r.ended = append(r.ended, a)
	nudge(r.wakeD)
}
