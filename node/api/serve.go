package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// handler answers one request from the applied state, or by a commit. It sends nothing itself.
type handler func(ctx context.Context, q *request) (*reply, error)

// gate bounds how many do something at once.
type gate chan struct{}

func (g gate) enter() bool {
	select {
	case g <- struct{}{}:
		return true
	default:
		return false
	}
}

func (g gate) leave() { <-g }

// serve makes a route's http.Handler.
func (a *API) serve(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		g := a.requests
		if rt.long || rt.stream != nil && r.URL.Query().Has("follow") {
			g = a.streams
		}
		if !g.enter() {
			problemReply(&statusError{http.StatusTooManyRequests, task.NewProblem(task.ErrNoLeader, "this machine answers as many requests as it can: come again", "")}).send(w)
			return
		}
		defer g.leave()
		caller, err := a.authorize(r, rt) // before anything that was sent is read
		var rep *reply
		if err == nil {
			rep, err = a.respond(w, r.WithContext(withCaller(r.Context(), caller)), rt)
		}
		if c, forwarded := w.(*capture); forwarded {
			if again, passing := errors.AsType[*againError](err); passing {
				c.again = again
				return
			}
		}
		if err != nil {
			rep = problemReply(err)
		}
		if rep != nil {
			rep.send(w)
		}
	}
}

// receive reads and checks a request. Job files may be large, so only some are read and parsed at a time; a commit waits for
// nobody here.
func (a *API) receive(w http.ResponseWriter, r *http.Request, rt route) (*request, error) {
	if rt.body == maxJobBody && !isBulk(r) {
		select {
		case a.submits <- struct{}{}:
			defer a.submits.leave()
		case <-r.Context().Done():
			return nil, context.Cause(r.Context())
		}
	}
	return a.accept(w, r, rt)
}

// bodyLimit is how large the body of a request may be.
func (rt route) bodyLimit(r *http.Request) int64 {
	if rt.body == maxJobBody && isBulk(r) {
		return transport.MaxSubmitBytes
	}
	return rt.body
}

// respond gives the answer of a route; nil without an error means that it was streamed.
func (a *API) respond(w http.ResponseWriter, r *http.Request, rt route) (*reply, error) {
	if rt.body == maxJobBody && isBulk(r) { // many jobs stay in memory until all are committed
		select {
		case a.bulks <- struct{}{}:
			defer a.bulks.leave()
		case <-r.Context().Done():
			return nil, context.Cause(r.Context())
		}
	}
	q, err := a.receive(w, r, rt)
	if err != nil {
		return nil, err
	}
	if q.forwarded && rt.where == here {
		return nil, invalid("this concerns one machine and is not passed on", "")
	}
	if rt.stream != nil {
		follow, err := q.flag("follow")
		if err != nil {
			return nil, err
		}
		if follow {
			return nil, rt.stream(w, q)
		}
	}
	switch rt.where {
	case fresh:
		return a.noticed(q)(a.read(r.Context(), q, rt.handle))
	case commit:
		return a.write(r.Context(), q, rt.handle)
	}
	return rt.handle(r.Context(), q)
}

// againError tells the member that passed a request on to repeat it: there is another leader, or the outcome is unknown.
type againError struct{ error }

func (e *againError) Unwrap() error { return e.error }

func notLeading() error {
	return &againError{task.NewProblem(task.ErrNoLeader, "this machine does not lead now", "")}
}

// read answers from the leader's state, without a leader from this member's copy.
func (a *API) read(ctx context.Context, q *request, h handler) (*reply, error) {
	st := a.cfg.Ledger.Standing()
	switch {
	case st.Leads:
		return a.local(ctx, q, h)
	case q.forwarded:
		return nil, notLeading()
	case (q.stale || st.Out) && st.Copy:
		q.orphan = st.Leader == ""
		return a.old(ctx, q, h, st)
	}
	rep, err := a.forward(ctx, q, forwardWait+q.hold)
	if !errors.Is(err, task.ErrNoLeader) {
		return rep, err
	}
	if !st.Copy {
		return nil, a.noLeader()
	}
	q.orphan = true
	rep, err = a.old(ctx, q, h, a.cfg.Ledger.Standing())
	if errors.Is(err, task.ErrNotFound) {
		return nil, a.noLeader() // what is not in an old copy may exist all the same
	}
	return rep, err
}

// old answers from a copy that may be behind, and says so.
func (a *API) old(ctx context.Context, q *request, h handler, st Standing) (*reply, error) {
	q.silence = max(st.Silence, time.Millisecond)
	if st.Fresh {
		a.cfg.Ledger.Read(func(s *fsm.State) { q.silence = max(q.silence, a.clock.Wall().Sub(time.UnixMilli(s.Wall))) })
	}
	rep, err := a.local(ctx, q, h)
	if err == nil {
		rep.set(transport.HeaderStale, strconv.FormatFloat(q.silence.Seconds(), 'f', 3, 64))
	}
	return rep, err
}

// write has the leader commit, this member or another, and repeats it as long as its fate is unknown and the caller waits:
// the request id makes a repeat harmless (R20).
func (a *API) write(ctx context.Context, q *request, h handler) (*reply, error) {
	if q.forwarded {
		if !a.cfg.Ledger.Standing().Leads {
			return nil, notLeading()
		}
		rep, err := a.local(ctx, q, h)
		if errors.Is(err, task.ErrNoLeader) {
			err = &againError{err}
		}
		return rep, err
	}
	bound, cancel := transport.WithTimeout(ctx, a.clock, q.wait)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		rep, err := a.try(bound, q, h)
		if !errors.Is(err, task.ErrNoLeader) {
			return rep, err
		}
		if a.pause(bound, pause) {
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, a.noLeader()
	}
}

// try writes once, here or at the leader.
func (a *API) try(ctx context.Context, q *request, h handler) (*reply, error) {
	if a.cfg.Ledger.Standing().Leads {
		return a.local(ctx, q, h)
	}
	// A large job over a slow network takes its time.
	return a.forward(ctx, q, forwardWait+time.Duration(len(q.body)/(256<<10))*time.Second)
}

// local answers on this member.
func (a *API) local(ctx context.Context, q *request, h handler) (*reply, error) {
	st := a.cfg.Ledger.Standing()
	var index uint64
	a.cfg.Ledger.Read(func(s *fsm.State) { index = s.Index }) // before the answer: it is at least that new
	rep, err := h(ctx, q)
	if err != nil {
		return nil, err
	}
	rep.set(transport.HeaderIndex, strconv.FormatUint(index, 10))
	if id := st.leader(a.cfg.Self); id != "" {
		rep.set(transport.HeaderLeader, string(id))
	}
	return rep, nil
}

// leader is who leads, as far as this member knows.
func (st Standing) leader(self task.NodeID) task.NodeID {
	if st.Leads {
		return self
	}
	return st.Leader
}

// pause waits; false when ctx ended first.
func (a *API) pause(ctx context.Context, d time.Duration) bool {
	timer := a.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
