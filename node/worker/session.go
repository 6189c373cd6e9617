package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lanjobs/task"
	"lanjobs/transport"
)

// errRepoll ends a parked poll whose question is out of date.
var errRepoll = errors.New("the poll is asked anew")

// converse is the node's standing conversation with the leader: registered first, then one long poll after the other, also
// when no slot is free (orders), so that there is always one that work and orders can answer.
func (w *Worker) converse(ctx context.Context) {
	wait, pace := sessionBackoff(), paceBackoff()
	for ctx.Err() == nil {
		if w.book.park() {
			w.bell.Ring()
			w.await(ctx, func() bool { return !w.book.park() })
			continue
		}
		found := w.found.Changed() // before asking: a leader found meanwhile is asked at once
		if w.book.mustRegister() || w.book.slept(sleepCount(w.clock)) > 0 {
			if err := w.register(ctx); err != nil {
				w.pauseOr(ctx, wait.next(), found)
				continue
			}
			wait.reset()
		}
		news, err := w.poll(ctx)
		switch {
		case errors.Is(err, errRepoll):
		case err != nil:
			w.pauseOr(ctx, wait.next(), found)
		case !news:
			// An answer that brings nothing new before its time (repeated orders, work that nobody can take) must not
			// make the two talk as fast as the network can.
			wait.reset()
			w.pauseOr(ctx, pace.next(), found)
		default:
			wait.reset()
			pace.reset()
		}
	}
}

// register announces the node with all that it holds, and stops at once what the leader does not let it keep (I13).
func (w *Worker) register(ctx context.Context) error {
	info := w.cfg.NodeInfo()
	w.book.setSlots(info.Slots)
	held := w.known()
	count := sleepCount(w.clock)
	req := &transport.RegisterRequest{Info: info, Incarnation: w.cfg.Incarnation, Held: held, Load: w.cfg.Load(), Slept: task.MillisOf(w.book.slept(count))}
	var reply *transport.RegisterReply
	err := w.within(ctx, registerTime, func(ctx context.Context) (err error) {
		reply, err = w.cfg.Control.Register(ctx, req)
		return err
	})
	w.heard(err)
	if err != nil {
		return fmt.Errorf("register: %w", err)
	}
	stops := w.book.setRegistered(held, reply.Keep, w.clock.Boot())
	w.book.awakeAt(count, true)
	w.log.Info("registered", "incarnation", w.cfg.Incarnation, "held", len(held), "kept", len(reply.Keep), "slept", req.Slept.Duration())
	w.carryOut(stops)
	kick(w.keeperKick)
	kick(w.launchKick)
	kick(w.outboxKick)
	w.bell.Ring()
	return nil
}

// known is every token that the node runs or has a report of.
func (w *Worker) known() []task.Token {
	// The book first: an attempt that ends in between is in the outbox before it leaves the book, so it is in one of
	// the two looks at least.
	all := append(w.book.tokens(), w.outbox.tokens()...)
	slices.Sort(all)
	return slices.Compact(all)
}

// poll asks once. news tells whether the answer changed anything or the poll was parked for its time.
func (w *Worker) poll(ctx context.Context) (news bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	holding, load := w.known(), w.cfg.Load()
	want, hold := w.book.beginPoll(cancel, w.clock.Boot())
	req := &transport.PollRequest{Incarnation: w.cfg.Incarnation, Want: want, Hold: hold, Holding: holding, Load: load}
	var reply *transport.PollReply
	// First leases are counted from here (R9): read before the request is written, whatever Control does to deliver it.
	sent, count := w.clock.Boot(), sleepCount(w.clock)
	err = w.within(ctx, hold.Duration()+pollMargin, func(ctx context.Context) (err error) {
		reply, err = w.cfg.Control.Poll(ctx, req)
		return err
	})
	w.book.endPoll()
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errRepoll):
		return false, errRepoll
	case err != nil && ctx.Err() != nil:
		return false, err // the worker ends
	case err != nil:
		w.heard(err)
		return false, err
	}
	w.heard(nil)
	w.book.awakeAt(count, false)
	now := w.clock.Boot()
	if reply.Unregistered {
		w.book.unregister()
		return false, nil // a pause before the next try: a leader that never knows us must not be told at full speed
	}
	for _, s := range reply.Specs {
		w.specs.put(s.Digest, s.JSON)
	}
	taken, left, declined := w.book.admit(reply.Assignments, sent, now, w.outbox.has)
	obeyed := w.obey(reply.Orders) // after admit and before the launcher hears of it: an order may be for what just came
	for _, r := range declined {
		w.outbox.add(r, false)
	}
	if left > 0 {
		w.log.Warn("more work than slots", "left", left)
	}
	kick(w.launchKick)
	kick(w.outboxKick)
	waited := now.Sub(sent) >= hold.Duration()/2
	return obeyed || waited || taken+len(declined) > 0, nil
}

// heard keeps what the last call showed of the leader, and says so when it changes.
func (w *Worker) heard(err error) {
	switch changed := w.book.heard(err, w.clock.Boot()); {
	case changed && err != nil && !retryable(err):
		w.log.Error("leader refuses this node", "err", err)
	case changed && err != nil:
		w.log.Warn("leader not reached", "err", err)
	case changed:
		w.log.Info("leader reached")
	}
}

// repoll makes a parked poll end, to be asked anew.
func (b *book) repoll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.askAnew()
}

// askAnew is repoll for callers that hold mu.
func (b *book) askAnew() {
	if b.pollCancel != nil {
		b.pollCancel(errRepoll)
	}
}

// beginPoll fixes what the poll asks for and lets repoll end it, in one step: no change falls between the two.
func (b *book) beginPoll(cancel context.CancelCauseFunc, now task.Boot) (want int, hold task.Millis) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pollCancel = cancel
	return b.want(), b.short.hold(now)
}

func (b *book) endPoll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pollCancel = nil
}

func (b *book) mustRegister() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.registered || b.announce
}

func (b *book) isRegistered() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.registered
}

// unregister makes the session register at its next turn, which is now: nothing is renewed before.
func (b *book) unregister() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.registered = false
	b.askAnew()
}

// setRegistered fences what was named and not kept. Nothing else can have come in between: only the session admits.
func (b *book) setRegistered(held, keep []task.Token, now task.Boot) (stops []order) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.registered, b.announce = true, false
	for _, t := range held {
		if a := b.attempts[t]; a != nil && !slices.Contains(keep, t) {
			stops = append(stops, b.fence(a, now)...)
		}
	}
	return stops
}

// heard tells whether the leader's being reachable has changed.
func (b *book) heard(err error, now task.Boot) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.failures++
		b.lastErr = err.Error()
		return b.failures == 1
	}
	changed = b.failures > 0
	b.failures, b.lastErr, b.lastHeard = 0, "", now
	return changed
}

// shortLease remembers the shortest first lease of late (doc.go, "Hold").
type shortLease struct {
	ttl  task.Millis
	seen task.Boot
}

func (s *shortLease) note(ttl task.Millis, now task.Boot) {
	if s.ttl == 0 || ttl <= s.ttl || now.Sub(s.seen) > forgetShort {
		s.ttl, s.seen = ttl, now
	}
}

func (s *shortLease) hold(now task.Boot) task.Millis {
	if s.ttl == 0 || now.Sub(s.seen) > forgetShort {
		return firstHold
	}
	return max(min(maxHold, s.ttl/4), minHold)
}
