package worker

import (
	"context"
	"errors"
	"slices"
	"sync"

	"lanjobs/task"
)

// launch gives queued attempts their slots and starts them beside each other, since a start waits for the disk: up to
// maxStarters at once, each a share of what has come. What has to wait for the leader, the spec or a confirmation, does so by
// itself.
func (w *Worker) launch(ctx context.Context) {
	var starts sync.WaitGroup
	defer starts.Wait()
	for _, a := range w.book.guessed() {
		starts.Go(func() { w.adopt(ctx, a) })
	}
	for {
		for share := range slices.Chunk(w.shares(w.book.takeQueued())) {
			starts.Go(func() {
				for _, a := range share {
					w.bringUp(ctx, a, &starts)
				}
			})
		}
		select {
		case <-w.launchKick:
		case <-ctx.Done():
			return
		}
	}
}

// shares says how what has come is divided among the starters.
func (w *Worker) shares(all []*attempt) ([]*attempt, int) {
	return all, max((len(all)+maxStarters-1)/maxStarters, 1)
}

// bringUp takes an attempt with a slot as far as the runner, or drops it, or leaves it to a goroutine that waits for the leader.
func (w *Worker) bringUp(ctx context.Context, a *attempt, waits *sync.WaitGroup) {
	spec := w.specs.known(&a.Assignment)
	if spec == nil {
		waits.Go(func() { w.fetchAndBegin(ctx, a) })
		return
	}
	if acked := w.prepareOrStart(a, spec); acked != nil {
		waits.Go(func() { w.confirmAndBegin(ctx, a, spec, acked) })
	}
}

// prepareOrStart starts an attempt whose first lease allows it. A channel: its first renewal has to be acknowledged before.
func (w *Worker) prepareOrStart(a *attempt, spec *task.Spec) (acked <-chan struct{}) {
	w.book.setOnSleep(a, spec.Stages[a.Stage].OnSleep)
	d, acked, ok := w.book.prepare(a, spec.Stages[a.Stage].Lease, w.clock.Boot())
	if ok {
		w.tellAwake()
		w.wakeKeeper() // should the start take long, its lease is renewed meanwhile
		w.start(a, spec, d)
	}
	return acked
}

// fetchAndBegin is bringUp for an attempt whose spec is not here yet.
func (w *Worker) fetchAndBegin(ctx context.Context, a *attempt) {
	spec, err := w.spec(ctx, a)
	switch {
	case ctx.Err() != nil:
		return // the lease of what never started runs out by itself
	case err != nil:
		w.startFailed(a, err)
		return
	case spec == nil:
		return // dropped meanwhile
	}
	w.confirmAndBegin(ctx, a, spec, w.prepareOrStart(a, spec))
}

// confirmAndBegin waits until a first renewal was acknowledged, and starts the attempt if it is still to be.
func (w *Worker) confirmAndBegin(ctx context.Context, a *attempt, spec *task.Spec, acked <-chan struct{}) {
	for acked != nil {
		kick(w.keeperKick)
		select {
		case <-acked:
		case <-ctx.Done():
			return
		}
		var d task.Deadlines
		var ok bool
		if d, acked, ok = w.book.begin(a, w.clock.Boot()); ok {
			w.tellAwake()
			w.wakeKeeper()
			w.start(a, spec, d)
			return
		}
	}
}

// start hands an attempt over. What happened to it meanwhile (renewed, stopped) is made good afterwards, since the runner
// knows an attempt only once Start has returned.
func (w *Worker) start(a *attempt, spec *task.Spec, d task.Deadlines) {
	if err := w.cfg.Runner.Start(&a.Assignment, spec, d); err != nil {
		w.startFailed(a, err)
		return
	}
	if w.debugs() {
		w.log.Debug("attempt started", "job", a.Job, "shard", a.Shard, "attempt", a.Attempt, "token", a.Token)
	}
	later, stop := w.book.started(a, w.clock.Boot())
	if later != d && later != (task.Deadlines{}) {
		w.cfg.Runner.Extend(a.Execution(), later)
	}
	w.carryOut(stop)
	w.wakeKeeper()
}

// startFailed reports an attempt that never ran, unless it was dropped before.
func (w *Worker) startFailed(a *attempt, err error) {
	if w.book.isGone(a) {
		return
	}
	w.log.Warn("attempt not started", "job", a.Job, "shard", a.Shard, "attempt", a.Attempt, "token", a.Token, "err", err)
	w.outbox.add(endReport(&a.Assignment, task.Outcome{End: task.EndStartFailed, Message: err.Error()}), false)
	w.book.end(a.Token)
	w.tellAwake()
	kick(w.outboxKick)
	kick(w.launchKick)
	w.bell.Ring()
}

// spec fetches the spec of an attempt, repeating while no leader answers. nil without an error: the attempt is gone.
func (w *Worker) spec(ctx context.Context, a *attempt) (*task.Spec, error) {
	wait := specBackoff()
	for {
		spec, err := w.specs.get(ctx, &a.Assignment, w.fetchSpec)
		switch {
		case err == nil && (a.Stage < 0 || a.Stage >= len(spec.Stages)):
			return nil, errors.New("the job's spec has no such stage")
		case err == nil:
			return spec, nil
		case !retryable(err) && !errors.Is(err, task.ErrNotFound):
			return nil, err // a leader of the past may not know the job yet; if it is gone indeed, so is the lease
		}
		if !w.pause(ctx, wait.next()) || w.book.isGone(a) {
			return nil, nil
		}
	}
}

// adopt learns the real terms of a reattached attempt, whose guessed ones are safe but lack its heartbeat and strict rule.
func (w *Worker) adopt(ctx context.Context, a *attempt) {
	if spec, err := w.spec(ctx, a); err == nil && spec != nil {
		w.book.setOnSleep(a, spec.Stages[a.Stage].OnSleep)
		w.book.setTerms(a, spec.Stages[a.Stage].Lease)
		w.tellAwake()
		kick(w.keeperKick)
	}
}
