package worker

import (
	"slices"

	"lanjobs/task"
	"lanjobs/transport"
)

// carryOut passes stops on to the runner.
func (w *Worker) carryOut(stops []order) {
	for _, o := range stops {
		w.log.Info("attempt stopped", "token", o.token, "reason", o.reason, "grace", o.grace.Duration())
		w.cfg.Runner.Stop(o.execution, o.reason, o.grace)
	}
}

// obey follows the leader's stop orders and tells whether any was new.
func (w *Worker) obey(orders []transport.StopOrder) (news bool) {
	now := w.clock.Boot()
	for _, o := range orders {
		stops, ends := w.book.halt(func(a *attempt) bool { return a.Token == o.Token }, o.Reason, func(*attempt) task.Millis { return o.Grace }, now)
		w.carryOut(stops)
		w.resign(ends)
		news = news || len(stops)+len(ends) > 0
	}
	return news
}

// stopAll stops what matches, each with its own grace.
func (w *Worker) stopAll(reason task.StopReason, grace func(*attempt) task.Millis) {
	stops, ends := w.book.halt(func(*attempt) bool { return true }, reason, grace, w.clock.Boot())
	w.carryOut(stops)
	w.resign(ends)
}

// resign brings ends that no exit will tell of to the outbox, and then lets the book go of them.
func (w *Worker) resign(ends []task.Report) {
	if len(ends) == 0 {
		return
	}
	for _, r := range ends {
		w.outbox.add(r, false)
		w.book.end(r.Token)
	}
	kick(w.outboxKick)
	kick(w.launchKick)
	w.bell.Ring()
}

// halt stops attempts. Those with a process are stopped by the runner; those without one end here: ends.
func (b *book) halt(match func(*attempt) bool, reason task.StopReason, grace func(*attempt) task.Millis, now task.Boot) (stops []order, ends []task.Report) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.sorted() {
		switch {
		case !match(a) || a.phase == phaseEnded:
		case reason == task.StopFenced:
			stops = append(stops, b.fence(a, now)...)
		case !a.live():
			b.resign(a)
			ends = append(ends, endReport(&a.Assignment, task.Outcome{End: reason.End()}))
		default:
			stops = append(stops, a.tell(reason, grace(a), now)...)
		}
	}
	return stops, ends
}

// resign makes sure that an attempt without a process never gets one. It stays in the book until its report is in the
// outbox, so that the leader does not think it unknown and send it again. Callers hold mu.
func (b *book) resign(a *attempt) {
	if i := slices.Index(b.queue, a); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
	}
	b.setPhase(a, phaseEnded)
	a.clear()
}

// fence ends the belief in a lease for good: another execution may exist. What runs is killed without grace, what does not is
// dropped. Callers hold mu.
func (b *book) fence(a *attempt, now task.Boot) []order {
	if a.fenced {
		return nil
	}
	a.fenced = true
	if !a.live() {
		if a.phase != phaseEnded {
			b.remove(a)
		}
		return nil
	}
	return a.tell(task.StopFenced, 0, now)
}

// tell gives the order for a stop that is stricter than what the attempt was told before. One that is still being handed
// to the runner gets it right after (started). Callers hold book.mu.
func (a *attempt) tell(reason task.StopReason, grace task.Millis, now task.Boot) []order {
	if !a.note(reason, grace, now) || a.phase != phaseRunning {
		return nil
	}
	return []order{{a.Execution(), a.Token, reason, grace}}
}

// lose fences the attempt of an execution because the leader refused its token.
func (w *Worker) lose(x task.ExecutionID) {
	w.carryOut(w.book.lose(x, w.clock.Boot()))
	kick(w.launchKick)
	w.bell.Ring()
}

func (b *book) lose(x task.ExecutionID, now task.Boot) []order {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.byExec[x]; a != nil {
		return b.fence(a, now)
	}
	return nil
}
