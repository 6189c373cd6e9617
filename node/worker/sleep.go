package worker

import (
	"context"
	"fmt"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// Awake is told whether anything runs here, so that the machine is kept awake meanwhile (R15, I14); finish: some of it is to be
// finished before the machine sleeps (task.OnSleepFinish). Want never waits.
type Awake interface{ Want(runs, finish bool) }

// tellAwake passes on how it stands now. It is called after each change of what is live; the lock keeps an older look from being
// told after a newer one.
func (w *Worker) tellAwake() {
	if w.cfg.Awake == nil {
		return
	}
	w.awakeMu.Lock()
	defer w.awakeMu.Unlock()
	w.cfg.Awake.Want(w.book.running())
}

// running tells whether a process may live here, and whether any is to be finished before a sleep.
func (b *book) running() (runs, finish bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.live > 0, b.finishing > 0
}

// sleepMargin is what is kept of a sleep's budget for ends to be acknowledged and the leader to be told, after the last process is
// killed: a quarter, at most this.
const sleepMargin = 1500 * time.Millisecond

// Sleep prepares for a sleep that begins within about budget (R16): nothing more is asked for; what does not run yet is given back;
// what runs is stopped with its own grace, as far as the time allows, and reported, so that it goes on elsewhere at once. What
// has on_sleep keep or finish is left alone: its lease lasts as long as it does. Sleep returns once all ends are acknowledged
// and the leader knows, or when the time is over. It holds until Woke.
func (w *Worker) Sleep(ctx context.Context, budget time.Duration) error {
	w.setAsleep(true)
	margin := min(budget/4, sleepMargin)
	now := w.clock.Boot()
	stops, ends := w.book.halt(func(a *attempt) bool { return !a.live() || a.releases() }, task.StopSleep,
		func(a *attempt) task.Millis { return min(ownGrace(a), task.MillisOf(budget-margin)) }, now)
	for i := range ends {
		ends[i].Outcome.Message = task.WentToSleep
	}
	w.carryOut(stops)
	w.resign(ends)
	w.log.Info("going to sleep", "stopped", len(stops), "given_back", len(ends))
	return w.within(ctx, budget, func(ctx context.Context) error {
		stopping := w.clock.Boot().Add(budget - margin/2)
		told := w.within(ctx, stopping.Sub(w.clock.Boot()), func(ctx context.Context) error {
			if !w.await(ctx, w.atRest) {
				return context.Cause(ctx)
			}
			return nil
		})
		if told != nil {
			w.log.Warn("not all work was given back before the sleep", "err", told)
		}
		return w.saySleeps(ctx)
	})
}

// saySleeps tells the leader until it has heard. A leader that does not answer in time notices the silence.
func (w *Worker) saySleeps(ctx context.Context) error {
	wait := backoff{first: 20 * time.Millisecond, limit: 200 * time.Millisecond}
	for {
		found := w.found.Changed()
		req := &transport.SleepRequest{Incarnation: w.cfg.Incarnation, Holding: w.known()}
		err := w.cfg.Control.Do(ctx, transport.MethodSleep, req, &transport.Ack{})
		if err == nil || !retryable(err) {
			return err
		}
		if !w.pauseOr(ctx, wait.next(), found) {
			return fmt.Errorf("tell of the sleep: %w", err)
		}
	}
}

// releases tells whether an attempt makes room for a sleep. Of one that a former agent began and whose spec is not here yet it is not
// known: it is left alone, since a lease that runs on costs less than a stop that nobody wanted.
func (a *attempt) releases() bool {
	return !a.adopt && a.onSleep != task.OnSleepKeep && a.onSleep != task.OnSleepFinish
}

// atRest tells whether nothing is left here that Sleep has stopped and the cluster does not know.
func (w *Worker) atRest() bool {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	for _, a := range w.book.attempts {
		if !a.live() || a.releases() || a.fenced {
			return false
		}
	}
	return w.outbox.len() == 0 && w.book.parked
}

// Woke ends what Sleep began, also where the machine did not sleep in the end. Deadlines come first, then renewals; then the node
// registers again with all that it still has, and says how long it slept (R16).
func (w *Worker) Woke() {
	stops, _, ends := w.book.enforce(w.clock.Boot())
	w.carryOut(stops)
	w.resign(ends)
	w.book.renewAll(w.clock.Boot())
	w.book.setAnnounce()
	w.setAsleep(false)
	kick(w.keeperKick)
	w.LeaderFound() // whoever leads now is asked at once
}

func (w *Worker) setAsleep(on bool) {
	w.book.mu.Lock()
	w.book.asleep = on
	w.book.mu.Unlock()
	w.found.Ring() // the session does not finish its wait first
	w.bell.Ring()
	w.book.repoll()
}

// park tells whether the session has to rest, and notes that it does.
func (b *book) park() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parked = b.asleep
	return b.asleep
}

// sleepCount is how much this machine has slept since it was started: what one clock counts and the other does not.
func sleepCount(c task.Clock) time.Duration { return time.Duration(c.Boot()) - c.Awake() }

// slept is for how long the machine has slept since the leader last answered its session; gaps that no wake was made of are left out.
func (b *book) slept(count time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := count - b.sleepCount; d >= announceAfter {
		return d
	}
	return 0
}

// awakeAt keeps the count of an answer. One of a poll says nothing of a sleep that the leader was not told of yet.
func (b *book) awakeAt(count time.Duration, registered bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if registered || count-b.sleepCount < announceAfter {
		b.sleepCount = count
	}
}
