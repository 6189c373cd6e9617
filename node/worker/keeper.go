package worker

import (
	"context"
	"sync"
	"time"

	"lanjobs/task"
)

// keep obeys the local deadlines and renews what is held (R6, R9, R10). Its order is the rule of DESIGN 3: at each turn what
// has lapsed is stopped before anything is renewed, so that after a sleep the kill does not wait for the network.
func (w *Worker) keep(ctx context.Context) {
	var renewals sync.WaitGroup
	defer renewals.Wait()
	gap := newGapWatch(w.clock)
	for {
		now := w.clock.Boot()
		stops, dropped := w.book.enforce(now)
		w.carryOut(stops)
		if dropped > 0 {
			w.log.Info("assignments not started in time", "count", dropped)
			kick(w.launchKick)
		}
		if away := gap.look(w.clock); away > 0 {
			w.wake(away)
		}
		for {
			fctx, cancel := context.WithCancel(ctx)
			f := w.book.takeDue(now, cancel)
			if f == nil {
				cancel()
				break
			}
			renewals.Go(func() {
				defer cancel()
				w.renew(fctx, f)
				kick(w.keeperKick)
			})
		}
		wait := w.book.untilNext(w.clock.Boot())
		gap.expect(wait)
		timer := w.clock.NewTimer(wait)
		select {
		case <-timer.C():
		case <-w.keeperKick:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// wake is what follows a sleep or a freeze, after the deadlines were checked: renew everything at once, over new requests,
// since the old ones' connections are likely dead. After a long absence the node registers again as well (R16).
func (w *Worker) wake(away time.Duration) {
	w.log.Info("woke", "away", away.Round(time.Millisecond))
	w.book.renewAll(w.clock.Boot())
	if away >= announceAfter {
		w.book.setAnnounce()
		w.book.repoll()
	}
}

// enforce stops what reached its local deadline and forgets what did not start in time.
func (b *book) enforce(now task.Boot) (stops []order, dropped int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.sorted() {
		if !a.live() {
			if a.phase != phaseEnded && now >= a.giveUp {
				b.remove(a)
				dropped++
			}
			continue
		}
		was := a.stop.told
		reason, grace, act := a.lapse(now)
		if !act {
			continue
		}
		if grace == 0 && was {
			a.stop.told = false // at Kill the order is given again, whatever was ordered before
		}
		stops = append(stops, a.tell(reason, grace, now)...)
		// A holder that had to stop itself registers again (R10), once the leader can be reached.
		b.announce = true
	}
	return stops, dropped
}

// untilNext is how long the keeper may sleep.
func (b *book) untilNext(now task.Boot) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := idleTick
	upTo := func(t task.Boot) { wait = min(wait, max(t.Sub(now), 0)) }
	for _, a := range b.attempts {
		if a.live() {
			wait = min(wait, tick)
			if !a.fenced && !a.killed {
				upTo(a.nextLapse())
			}
		} else if a.phase != phaseEnded {
			upTo(a.giveUp)
		}
		if b.registered && a.renewable() && a.flight == 0 {
			upTo(a.due)
		}
	}
	return wait
}

func (b *book) setAnnounce() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.announce = true
}
