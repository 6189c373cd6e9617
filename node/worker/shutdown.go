package worker

import (
	"context"
	"fmt"

	"lanjobs/task"
)

// ownGrace is the stop grace that the attempt's stage asks for.
func ownGrace(a *attempt) task.Millis { return a.terms.StopGrace }

// Shutdown stops everything, and waits until each process is gone and its end acknowledged, so that the leases are
// released at once and the work goes on elsewhere (R7). It waits for grace and a few seconds at most: what is not
// acknowledged by then stays on disk for the next start. The worker takes nothing afterwards: end Run's context next, or Reopen it.
func (w *Worker) Shutdown(ctx context.Context, grace task.Millis) error {
	w.close()
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

// close ends the taking of work; the parked poll is asked anew, or the leader would fill slots that are closed.
func (w *Worker) close() {
	w.book.mu.Lock()
	w.book.closing = true
	w.book.mu.Unlock()
	w.bell.Ring()
	w.book.repoll()
}

// Reopen takes work again after a Shutdown that nothing came of: the node was to leave its cluster and could not.
func (w *Worker) Reopen() {
	w.book.mu.Lock()
	was := w.book.closing
	w.book.closing = false
	w.book.mu.Unlock()
	if was {
		w.bell.Ring()
		w.book.repoll()
	}
}
