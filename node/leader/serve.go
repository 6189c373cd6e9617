package leader

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
	"lanjobs/transport"
)

// ServeCall answers the calls of workers. from is proven by the transport; nothing in a body can speak for another node.
func (l *Leader) ServeCall(ctx context.Context, from task.NodeID, method transport.Method, body []byte) (any, error) {
	t, err := l.soon(ctx)
	if err != nil {
		return nil, err
	}
	switch method {
	case transport.MethodRegister:
		return transport.Answer(ctx, t, from, body, (*term).register)
	case transport.MethodPoll:
		return transport.Answer(ctx, t, from, body, (*term).poll)
	case transport.MethodRenew:
		return transport.Answer(ctx, t, from, body, (*term).renew)
	case transport.MethodReport:
		return transport.Answer(ctx, t, from, body, (*term).report)
	case transport.MethodCheckpoint:
		return transport.Answer(ctx, t, from, body, (*term).checkpoint)
	case transport.MethodOutput:
		return transport.Answer(ctx, t, from, body, (*term).output)
	case transport.MethodInputs:
		return transport.Answer(ctx, t, from, body, (*term).inputs)
	case transport.MethodStateGet:
		return transport.Answer(ctx, t, from, body, (*term).stateGet)
	case transport.MethodStatePut:
		return transport.Answer(ctx, t, from, body, (*term).statePut)
	case transport.MethodProgress:
		return transport.Answer(ctx, t, from, body, (*term).setProgress)
	case transport.MethodRange:
		return transport.Answer(ctx, t, from, body, (*term).cursor)
	case transport.MethodSpec:
		return transport.Answer(ctx, t, from, body, (*term).spec)
	case transport.MethodLeave:
		return transport.Answer(ctx, t, from, body, (*term).leave)
	case transport.MethodSleep:
		return transport.Answer(ctx, t, from, body, (*term).sleep)
	}
	return nil, task.NewProblem(task.ErrInvalid, "unknown call "+string(method), "")
}

// commit proposes a command and gives its refusal as the error.
func (t *term) commit(ctx context.Context, c fsm.Command) (fsm.Result, error) {
	r, err := t.propose(ctx, c)
	if err == nil && r.Err != nil {
		err = r.Err
	}
	return r, err
}

func (t *term) register(ctx context.Context, from task.NodeID, q *transport.RegisterRequest) (*transport.RegisterReply, error) {
	if q.Info.ID != from {
		return nil, task.NewProblem(task.ErrNotAllowed, fmt.Sprintf("node %s registers as %s", from, q.Info.ID), "")
	}
	if err := t.tooOld(&q.Info); err != nil {
		return nil, err
	}
	t.sessions.touch(from, q.Load) // before it is recorded as being here: it would be found silent at once
	whole := t.fitInfo(&q.Info)
	keep, back, err := t.comeBack(ctx, from, q)
	if err == nil && !back {
		c := &fsm.RegisterNode{Info: q.Info, Incarnation: q.Incarnation, Held: q.Held, Load: q.Load, Crashes: q.Crashes}
		t.cfg.Log.Read(func(s *fsm.State) { c.Caring = min(s.Members(), q.Info.Level) >= fsm.LevelCare })
		var r fsm.Result
		r, err = t.commit(ctx, c)
		keep = r.Tokens
	}
	if err != nil {
		return nil, err
	}
	t.sessions.restarted(from, whole)
	return &transport.RegisterReply{Keep: keep}, nil
}

// registered tells whether the cluster knows this start of the node.
func (t *term) registered(from task.NodeID, incarnation uint64) (ok bool) {
	t.cfg.Log.Read(func(s *fsm.State) {
		n := s.Node(from)
		ok = n != nil && n.Incarnation == incarnation && n.Gone == ""
	})
	return ok
}

// poll parks until there is work or an order, or the hold is over.
func (t *term) poll(ctx context.Context, from task.NodeID, q *transport.PollRequest) (*transport.PollReply, error) {
	if !t.registered(from, q.Incarnation) || !t.online(from) || t.owesInfo(from) {
		return &transport.PollReply{Unregistered: true}, nil // who was away registers, and says then how long it slept
	}
	t.sessions.touch(from, q.Load)
	if again := t.unknownTo(from, q.Holding); len(again) > 0 {
		return &transport.PollReply{Assignments: again}, nil
	}
	if orders := t.sessions.ordersFor(from, false); len(orders) > 0 {
		return &transport.PollReply{Orders: orders}, nil
	}
	p := t.sessions.park(from, q.Want)
	if p == nil {
		return nil, errTermOver()
	}
	hold := t.cfg.Clock.NewTimer(q.Hold.Duration())
	defer hold.Stop()
	select {
	case r, open := <-p.reply:
		return answered(r, open)
	case <-hold.C():
	case <-ctx.Done():
	}
	if t.sessions.unpark(p, false) {
		return &transport.PollReply{}, nil
	}
	// It was answered just now, or grants for it are in flight: they decide.
	select {
	case r, open := <-p.reply:
		return answered(r, open)
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-t.cfg.Clock.After(lateGrant):
		if t.sessions.unpark(p, true) {
			return &transport.PollReply{}, nil
		}
		r, open := <-p.reply
		return answered(r, open)
	}
}

func answered(r *transport.PollReply, open bool) (*transport.PollReply, error) {
	if !open {
		return nil, errTermOver()
	}
	return r, nil
}

// unknownTo gives the leases that a node holds by the ledger and does not know: the answer that brought them was lost. Their
// clock runs since the grant, so the node must renew before it starts them.
func (t *term) unknownTo(from task.NodeID, holding []task.Token) []task.Assignment {
	if !slices.IsSorted(holding) { // a worker sorts them
		holding = slices.Sorted(slices.Values(holding))
	}
	var out []task.Assignment
	t.cfg.Log.Read(func(s *fsm.State) {
		s.LeasesOf(from, func(l *fsm.Lease) {
			if _, known := slices.BinarySearch(holding, l.Token); known {
				return
			}
			if a, ok := assignment(s, l.Ref.Job, l.Ref.Stage, l.Ref.Shard, l.Token); ok {
				a.MustRenew = true
				out = append(out, a)
			}
		})
	})
	return fitting(out)
}

// fitting gives the oldest grants that fit into one answer, at least one; the node's next poll asks for the others.
func fitting(as []task.Assignment) []task.Assignment {
	slices.SortFunc(as, func(a, b task.Assignment) int { return cmp.Compare(a.Token, b.Token) })
	bytes := 0
	for i, a := range as {
		if bytes >= plan.MaxPollBytes {
			return as[:i]
		}
		if a.Checkpoint != nil {
			bytes += len(a.Checkpoint.Data)
		}
	}
	return as
}

func (t *term) renew(ctx context.Context, from task.NodeID, q *transport.RenewRequest) (*transport.RenewReply, error) {
	if !t.registered(from, q.Incarnation) {
		return &transport.RenewReply{Unregistered: true}, nil
	}
	if t.online(from) { // else it has not registered yet since it was away
		t.sessions.touch(from, q.Load)
	}
	reply := &transport.RenewReply{}
	if len(q.Tokens) > 0 {
		r, err := t.commit(ctx, &fsm.Renew{Node: from, Incarnation: q.Incarnation, Tokens: q.Tokens, Load: q.Load})
		if err != nil {
			return nil, err
		}
		for i, ttl := range r.TTLs {
			if ttl == 0 {
				reply.Lost = append(reply.Lost, q.Tokens[i])
			} else {
				reply.Renewed = append(reply.Renewed, transport.Renewal{Token: q.Tokens[i], TTL: ttl})
			}
		}
	}
	reply.Orders = t.sessions.ordersFor(from, true)
	return reply, nil
}

func (t *term) report(ctx context.Context, from task.NodeID, q *transport.ReportRequest) (*transport.ReportReply, error) {
	if len(q.Reports) == 0 {
		return &transport.ReportReply{}, nil
	}
	r, err := t.commit(ctx, &fsm.Report{Node: from, Reports: q.Reports})
	if err != nil {
		return nil, err
	}
	return &transport.ReportReply{Codes: r.Codes}, nil
}

func (t *term) spec(_ context.Context, _ task.NodeID, q *transport.SpecRequest) (*transport.SpecReply, error) {
	reply := &transport.SpecReply{}
	t.cfg.Log.Read(func(s *fsm.State) {
		if j := s.Job(q.Job); j != nil {
			reply.Name, reply.JSON = j.Spec.Name, []byte(j.Spec.JSON)
		}
	})
	if reply.JSON == nil {
		return nil, task.NewProblem(task.ErrNotFound, "no job "+string(q.Job), "")
	}
	return reply, nil
}

func (t *term) leave(ctx context.Context, from task.NodeID, q *transport.LeaveRequest) (*transport.Ack, error) {
	_, err := t.commit(ctx, &fsm.SetNode{Node: from, Action: fsm.NodeLeave, By: q.By})
	return &transport.Ack{}, err
}
