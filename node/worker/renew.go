package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// flight is one renewal request on its way.
type flight struct {
	id       uint64
	tokens   []task.Token
	due      []task.Token // of tokens: those whose time it was; only they count a failure
	cancel   context.CancelFunc
	timeout  time.Duration
	sent     task.Boot // read before the request was written (R9)
	released bool      // its leases are free for the next request; guarded by book.mu
}

// renew sends one request and takes its answer. Out of time it counts as failed and its leases may be named by the next
// one; a late acknowledgement still counts, from its own request, so that a slow leader does not end short leases.
func (w *Worker) renew(ctx context.Context, f *flight) {
	defer w.bell.Ring()
	req := &transport.RenewRequest{Incarnation: w.cfg.Incarnation, Tokens: f.tokens, Load: w.cfg.Load()}
	late := w.clock.NewTimer(f.timeout)
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-late.C():
			w.book.overdue(f, w.clock.Boot())
			kick(w.keeperKick)
			w.bell.Ring()
		case <-done:
		}
	})
	var reply *transport.RenewReply
	err := w.within(ctx, lateFactor*f.timeout, func(ctx context.Context) (err error) {
		f.sent = w.clock.Boot()
		reply, err = w.cfg.Control.Renew(ctx, req)
		return err
	})
	close(done)
	late.Stop()
	watch.Wait()
	if ctx.Err() == nil {
		w.heard(err) // a request given up for a newer one says nothing of the leader
	}
	if err != nil {
		w.book.failed(f, w.clock.Boot())
		if errors.Is(err, task.ErrStaleToken) {
			w.book.unregister() // the leader knows another incarnation of this node
		}
		return
	}
	moved, stops := w.book.settle(f, reply, w.clock.Boot())
	for _, m := range moved {
		w.cfg.Runner.Extend(m.execution, m.deadlines)
	}
	w.carryOut(stops)
	if len(reply.Lost) > 0 {
		w.log.Info("leases lost", "tokens", reply.Lost)
		kick(w.launchKick)
	}
	w.obey(reply.Orders)
}

// takeDue makes the next renewal request, nil if none is due. When a lease that was renewed before is due, all go with it: one
// request, one log entry for the whole node. New ones go without the old, or every start would renew everything.
func (b *book) takeDue(now task.Boot, cancel context.CancelFunc) *flight {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.registered {
		return nil
	}
	if !b.anyDue(now) {
		return nil
	}
	var due, along []*attempt
	heartbeat := false
	for _, a := range b.sorted() {
		switch {
		case !a.renewable() || a.flight != 0:
		case a.due <= now:
			due = append(due, a)
			heartbeat = heartbeat || a.acked
		case a.acked:
			along = append(along, a)
		}
	}
	if len(due) == 0 {
		return nil
	}
	f := &flight{cancel: cancel, due: tokensOf(due)}
	if heartbeat {
		due = append(due, along...)
	}
	f.tokens, f.timeout = tokensOf(due), due[0].renewTimeout()
	b.enter(f)
	for _, a := range due {
		a.flight = f.id
		f.timeout = min(f.timeout, a.renewTimeout())
	}
	return f
}

// anyDue tells whether takeDue has anything to do. Callers hold mu.
func (b *book) anyDue(now task.Boot) bool {
	for _, a := range b.attempts {
		if a.renewable() && a.flight == 0 && a.due <= now {
			return true
		}
	}
	return false
}

// enter counts a request; beyond maxFlights the oldest is given up, as its answer would be worth least. Callers hold mu.
func (b *book) enter(f *flight) {
	b.lastID++
	f.id = b.lastID
	if len(b.flights) >= maxFlights {
		oldest := f
		for _, g := range b.flights {
			if g.id < oldest.id {
				oldest = g
			}
		}
		b.giveUpOn(oldest)
	}
	b.flights[f.id] = f
}

// giveUpOn ends a request without counting a failure. Callers hold mu.
func (b *book) giveUpOn(f *flight) {
	b.release(f)
	delete(b.flights, f.id)
	f.cancel()
}

// release lets a request's leases go into the next one; its failure is counted or forgiven. Callers hold mu.
func (b *book) release(f *flight) {
	f.released = true
	for _, t := range f.tokens {
		if a := b.attempts[t]; a != nil && a.flight == f.id {
			a.flight = 0
		}
	}
}

// overdue counts a request as failed, once, for the leases that were due. It may still be answered.
func (b *book) overdue(f *flight, now task.Boot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.countMiss(f, now, nil)
}

// countMiss counts a failure for each lease that was due and is not among the renewed ones. Callers hold mu.
func (b *book) countMiss(f *flight, now task.Boot, renewed []transport.Renewal) {
	if f.released {
		return
	}
	for _, t := range f.due {
		done := slices.ContainsFunc(renewed, func(n transport.Renewal) bool { return n.Token == t })
		if a := b.attempts[t]; a != nil && !done && a.flight == f.id {
			a.miss(now)
		}
	}
	b.release(f)
}

// failed takes the end of a request that was not answered.
func (b *book) failed(f *flight, now task.Boot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.countMiss(f, now, nil)
	delete(b.flights, f.id)
}

// miss counts a failure and sets when to try again: after TTL/60, /30, then /15 (R10).
func (a *attempt) miss(now task.Boot) {
	a.failures++
	a.misses++
	a.due = now.Add(jitter(task.RenewRetry(a.ttl, a.failures).Duration()))
}

// extension is a belief that moved.
type extension struct {
	execution task.ExecutionID
	deadlines task.Deadlines
}

// settle takes an answer. Every belief in it is counted from f.sent, never from now.
func (b *book) settle(f *flight, r *transport.RenewReply, now task.Boot) (moved []extension, stops []order) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer delete(b.flights, f.id)
	for _, t := range r.Lost {
		if a := b.attempts[t]; a != nil {
			stops = append(stops, b.fence(a, now)...)
		}
	}
	if r.Unregistered {
		b.registered = false
		b.askAnew()
		b.release(f)
		return nil, stops
	}
	for _, n := range r.Renewed {
		a := b.attempts[n.Token]
		if a == nil || a.fenced || n.TTL <= 0 || !slices.Contains(f.tokens, n.Token) {
			continue
		}
		a.extend(f.sent, n.TTL)
		a.due = max(f.sent.Add(a.heartbeat()), now)
		if a.wanted > f.sent {
			a.due = now
		}
		b.lastAck = max(b.lastAck, f.sent)
		switch a.phase {
		case phaseRunning: // one in phaseStarting gets it from started
			moved = append(moved, extension{a.Execution(), a.deadlines})
		case phaseConfirming:
			a.clear()
		}
	}
	b.countMiss(f, now, r.Renewed) // neither renewed nor lost is no answer
	return moved, stops
}

// renewAll makes everything due now and gives up what is on its way.
func (b *book) renewAll(now task.Boot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.flights {
		b.giveUpOn(f)
	}
	for _, a := range b.attempts {
		a.due = min(a.due, now)
	}
}

func tokensOf(as []*attempt) []task.Token {
	out := make([]task.Token, len(as))
	for i, a := range as {
		out[i] = a.Token
	}
	return out
}
