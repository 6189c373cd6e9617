package worker

import (
	"lanjobs/task"
)

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

// takeQueued gives free slots to the attempts that wait longest.
func (b *book) takeQueued() (out []*attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return nil
	}
	for room := b.room(); len(b.queue) > 0 && room > 0; room-- {
		a := b.queue[0]
		b.queue = b.queue[1:]
		b.setPhase(a, phasePreparing)
		out = append(out, a)
	}
	return out
}
