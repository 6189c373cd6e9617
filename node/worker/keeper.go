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
		stops, dropped, ends := w.book.enforce(now)
		w.carryOut(stops)
		w.resign(ends)
		if dropped+len(ends) > 0 {
			w.log.Warn("assignments not started in time", "dropped", dropped, "given_back", len(ends))
			kick(w.launchKick)
		}
		if away := gap.look(w.clock); away > 0 {
			w.wake(away, gap.slept)
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
func (w *Worker) wake(away, slept time.Duration) {
	w.log.Info("woke", "away", away.Round(time.Millisecond), "slept", slept.Round(time.Millisecond))
	w.book.renewAll(w.clock.Boot())
	told := slept >= announceAfter && w.book.slept(sleepCount(w.clock)) == 0 // the session was faster
	if away >= announceAfter && !told {
		w.book.setAnnounce()
		w.book.repoll()
	}
}

// enforce stops what reached its local deadline and parts with what did not start in time. What was never renewed is only
// forgotten: its first lease is over for the leader too. What waits for a confirmation is given back by a report: its renewals
// may arrive although their answers come too late to be believed in, and would keep the lease for ever on a node that
// cannot start on it.
func (b *book) enforce(now task.Boot) (stops []order, dropped int, ends []task.Report) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.anyLapse(now) {
		return nil, 0, nil
	}
	for _, a := range b.sorted() {
		if !a.live() {
			switch {
			case a.phase == phaseEnded || now < a.giveUp:
			case a.phase == phaseConfirming:
				b.resign(a)
				ends = append(ends, endReport(&a.Assignment, task.Outcome{End: task.EndLeaseLost, Message: "never confirmed in time"}))
			default:
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
	return stops, dropped, ends
}

// anyLapse tells whether enforce has anything to do. Callers hold mu.
func (b *book) anyLapse(now task.Boot) bool {
	for _, a := range b.attempts {
		if !a.live() {
			if a.phase != phaseEnded && now >= a.giveUp {
				return true
			}
		} else if !a.fenced && !a.killed && (now >= a.nextLapse() || a.terms.MaxRenewFailures > 0 && a.failures >= a.terms.MaxRenewFailures) {
			return true
		}
	}
	return false
}

// wakeKeeper lets the keeper look again if something is due before it would by itself.
func (w *Worker) wakeKeeper() {
	if w.book.takeHurry() {
		kick(w.keeperKick)
	}
}

// sooner notes that a live attempt has something due before the keeper looks again: its renewal, its deadline, or the look that
// finds out about a sleep, which is known only after a tick, as the keeper's timer does not count it. Callers hold mu.
func (b *book) sooner(a *attempt) {
	if b.wakeIn > tick || b.wakeAt > min(a.due, a.nextLapse()) {
		b.hurry = true
	}
}

func (b *book) takeHurry() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.hurry
	b.hurry = false
	return was
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
	b.wakeIn, b.wakeAt, b.hurry = wait, now.Add(wait), false
	return wait
}

func (b *book) setAnnounce() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.announce = true
}
