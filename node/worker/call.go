package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"lanjobs/task"
)

// errTimeout ends a call that took longer than it may on this node's clock.
var errTimeout = errors.New("no answer in time")

// within gives fn a context that ends after d of the worker's clock. context.WithTimeout would count on Go's own.
func (w *Worker) within(ctx context.Context, d time.Duration, fn func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := w.clock.NewTimer(d)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-timer.C():
			cancel(errTimeout)
		case <-ctx.Done():
		}
	})
	err := fn(ctx)
	if err != nil && context.Cause(ctx) == errTimeout {
		err = errTimeout // says more than "context canceled"
	}
	cancel(nil)
	timer.Stop()
	watch.Wait()
	return err
}

// retryable tells whether the same call may succeed later.
func retryable(err error) bool {
	for _, final := range []error{task.ErrNotFound, task.ErrInvalid, task.ErrNotAllowed, task.ErrTooLarge, task.ErrStaleToken, task.ErrConflict, errBadSpec} {
		if errors.Is(err, final) {
			return false
		}
	}
	return true
}

// pause waits for d; false when ctx ended first.
func (w *Worker) pause(ctx context.Context, d time.Duration) bool { return w.pauseOr(ctx, d, nil) }

// pauseOr is pause, cut short by early.
func (w *Worker) pauseOr(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	timer := w.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-early:
		return true
	case <-ctx.Done():
		return false
	}
}

// await waits until ok holds; whatever may change it rings the bell. False when ctx ended first.
func (w *Worker) await(ctx context.Context, ok func() bool) bool {
	for {
		changed := w.bell.Changed() // before looking: a change after the look closes this channel
		if ok() {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// backoff is the wait before the next try of something that fails: doubling from first to limit, with jitter.
type backoff struct {
	first, limit, last time.Duration
}

func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, b.first), b.limit)
	return jitter(b.last)
}

func (b *backoff) reset() { b.last = 0 }

// jitter spreads a wait over ±20 %, so that nodes that failed together do not come back together.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// kick wakes a part without ever waiting for it.
func kick(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
