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

// guessed lists the reattached attempts whose terms are a guess.
func (b *book) guessed() (out []*attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.sorted() {
		if a.phase == phaseRunning && a.adopt {
			out = append(out, a)
		}
	}
	return out
}

func (b *book) setOnSleep(a *attempt, s task.OnSleep) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count(a, -1)
	a.onSleep = s
	b.count(a, 1)
}

func (b *book) setTerms(a *attempt, terms task.LeaseTerms) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.terms, a.adopt = terms, false
}

func (b *book) isGone(a *attempt) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return a.over()
}

// prepare applies the deadline rule once the terms are known, and begins at once if the first lease allows it. A channel: wait
// for it before begin, the first renewal has to be acknowledged. MustRenew means that the grant is older than the request,
// so nothing may be counted from it.
func (b *book) prepare(a *attempt, terms task.LeaseTerms, now task.Boot) (d task.Deadlines, acked <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.terms, a.adopt = terms, false
	if a.over() {
		return d, nil, false
	}
	if !a.MustRenew {
		a.deadlines = terms.HolderDeadlines(a.sent, a.FirstTTL)
		if a.fresh(now) {
			return b.enterStart(a, now), nil, true
		}
	}
	return d, b.confirm(a, now), false
}

func (b *book) confirm(a *attempt, now task.Boot) <-chan struct{} {
	a.phase, a.due, a.cleared = phaseConfirming, now, make(chan struct{})
	return a.cleared
}

// begin lets an attempt start if its belief lasts beyond its SIGTERM. If it does not any more, it renews again and again is
// what to wait for; nil: it is gone.
func (b *book) begin(a *attempt, now task.Boot) (d task.Deadlines, again <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case a.over():
		return d, nil, false
	case now >= a.deadlines.Term:
		return d, b.confirm(a, now), false
	}
	return b.enterStart(a, now), nil, true
}

// enterStart marks an attempt as handed to the runner. Callers hold mu.
func (b *book) enterStart(a *attempt, now task.Boot) task.Deadlines {
	b.setPhase(a, phaseStarting)
	if !a.acked {
		a.due = now.Add(min(slowStart, a.ttl.Duration()/10))
	}
	b.sooner(a)
	return a.deadlines
}

// started marks an attempt running and returns what it missed while it was handed over. Zero deadlines: it has ended
// already.
func (b *book) started(a *attempt, now task.Boot) (task.Deadlines, []order) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.gone {
		return task.Deadlines{}, nil
	}
	b.setPhase(a, phaseRunning)
	if !a.acked {
		a.due = min(a.due, now.Add(confirmDelay))
		b.sooner(a)
	}
	if !a.stop.told {
		return a.deadlines, nil
	}
	return a.deadlines, []order{{a.Execution(), a.Token, a.stop.reason, max(task.MillisOf(a.stop.kill.Sub(now)), 0)}}
}
