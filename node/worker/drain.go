package worker

import (
	"context"
	"errors"
	"fmt"

	"lanjobs/task"
)

// ownGrace is the stop grace that the attempt's stage asks for.
func ownGrace(a *attempt) task.Millis { return a.terms.StopGrace }

// Drain takes no more work; what waits is given back at once, what runs may finish until wait is over and is then stopped
// with its own grace (R36, C09). It returns when nothing runs and every end is acknowledged, or when ctx ends: the node then
// stays draining until Resume. A Resume while it waits ends it with an error and stops nothing.
func (w *Worker) Drain(ctx context.Context, wait task.Millis) error {
	w.setMode(modeDraining)
	stops, ends := w.book.halt(func(a *attempt) bool { return !a.live() }, task.StopDrain, ownGrace, w.clock.Boot())
	w.carryOut(stops)
	w.resign(ends)
	resumed := func() bool { return w.book.isOpen() }
	_ = w.within(ctx, max(wait.Duration(), 0), func(ctx context.Context) error { // at its end the rest is stopped
		w.await(ctx, func() bool { return w.book.empty() || resumed() })
		return nil
	})
	if ctx.Err() == nil && !resumed() {
		w.stopAll(task.StopDrain, ownGrace)
		w.await(ctx, func() bool { return w.idle() || resumed() })
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case resumed():
		return errResumed
	}
	return nil
}

// errResumed ends a Drain that a Resume made pointless.
var errResumed = errors.New("resumed before the drain was over")

// Resume takes work again after a drain.
func (w *Worker) Resume() { w.setMode(modeOpen) }

// Shutdown stops everything, and waits until each process is gone and its end acknowledged, so that the leases are
// released at once and the work goes on elsewhere (R7). It waits for grace and a few seconds at most: what is not
// acknowledged by then stays on disk for the next start. The worker takes nothing afterwards; end Run's context next.
func (w *Worker) Shutdown(ctx context.Context, grace task.Millis) error {
	w.setMode(modeClosing)
	grace = max(grace, 0)
	w.stopAll(task.StopShutdown, func(*attempt) task.Millis { return grace })
	err := w.within(ctx, grace.Duration()+reportPatience, func(ctx context.Context) error {
		if !w.await(ctx, w.idle) {
			return context.Cause(ctx)
		}
		return nil
	})
	if err != nil {
		s := w.Status()
		return fmt.Errorf("%d attempts still running, %d ends not acknowledged: %w", len(s.Attempts), s.Outbox, err)
	}
	return nil
}

// idle tells whether nothing is left of this node's work that the cluster does not know.
func (w *Worker) idle() bool { return w.book.empty() && w.outbox.len() == 0 }

// setMode changes whether work is taken; the parked poll is asked anew, or the leader would fill slots that are closed.
func (w *Worker) setMode(m mode) {
	w.book.mu.Lock()
	if w.book.mode != modeClosing {
		w.book.mode = m
	}
	w.book.mu.Unlock()
	w.bell.Ring()
	w.book.repoll()
}

func (b *book) isOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mode == modeOpen
}
