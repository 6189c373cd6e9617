package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// The granter's side of each call of Control.

func (g *granter) register(id task.NodeID, r *transport.RegisterRequest) (*transport.RegisterReply, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.regs++
	g.slept = max(g.slept, r.Slept)
	if g.down {
		return nil, task.ErrNoLeader
	}
	if n := g.nodes[id]; n != nil && r.Incarnation < n.incarnation {
		return nil, task.ErrConflict
	}
	again := false
	if n := g.nodes[id]; n != nil {
		again = n.incarnation == r.Incarnation
		g.wakePark(n)
	}
	g.nodes[id] = &gnode{incarnation: r.Incarnation, slots: r.Info.Slots}
	reply := &transport.RegisterReply{}
	for _, s := range g.held(id) {
		switch {
		case slices.Contains(r.Held, s.token):
			reply.Keep = append(reply.Keep, s.token)
		case again: // a repeat may be older than what was granted since
		default:
			g.freed = append(g.freed, s.token)
			g.end(s, task.EndNodeRestarted, task.ShardPending)
		}
	}
	g.serve()
	return reply, nil
}

func (g *granter) poll(ctx context.Context, id task.NodeID, r *transport.PollRequest) (*transport.PollReply, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.polls++
	n := g.nodes[id]
	switch {
	case g.down:
		return nil, task.ErrNoLeader
	case n == nil || n.incarnation != r.Incarnation:
		return &transport.PollReply{Unregistered: true}, nil
	}
	g.wakePark(n)
	arrived := time.Now()
	p := &park{want: r.Want, from: arrived, reply: make(chan struct{})}
	n.park = p
	if reply := g.news(id, r, arrived); len(reply.Assignments) > 0 {
		n.park = nil
		return reply, nil
	}
	g.serve()
	hold := time.NewTimer(r.Hold.Duration())
	defer hold.Stop()
	g.mu.Unlock()
	select {
	case <-p.reply:
	case <-hold.C:
	case <-ctx.Done():
	}
	g.mu.Lock()
	if n.park == p {
		n.park = nil
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case g.down:
		return nil, task.ErrNoLeader
	}
	return g.news(id, r, arrived), nil
}

// news is what the node does not know or has to do. A grant older than the poll's arrival must be renewed first.
func (g *granter) news(id task.NodeID, r *transport.PollRequest, arrived time.Time) *transport.PollReply {
	reply := &transport.PollReply{}
	for _, s := range g.held(id) {
		reply.Orders = append(reply.Orders, g.orders[s.token]...)
		delete(g.orders, s.token)
		if s.state != task.ShardAssigned || slices.Contains(r.Holding, s.token) {
			continue
		}
		reply.Assignments = append(reply.Assignments, task.Assignment{Job: s.ref.Job, Stage: s.ref.Stage, Shard: s.ref.Shard, Attempt: s.tries,
			Token: s.token, FirstTTL: g.specs[s.ref.Job].Stages[0].Lease.FirstTTL(), MustRenew: s.granted.Before(arrived), Checkpoint: s.last})
	}
	return reply
}

func (g *granter) renew(id task.NodeID, r *transport.RenewRequest) (*transport.RenewReply, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.renews++
	n := g.nodes[id]
	switch {
	case g.down:
		return nil, task.ErrNoLeader
	case n == nil || n.incarnation != r.Incarnation:
		return &transport.RenewReply{Unregistered: true}, nil
	}
	reply := &transport.RenewReply{}
	for _, t := range r.Tokens {
		s := g.find(t)
		if s == nil || s.node != id {
			reply.Lost = append(reply.Lost, t)
			continue
		}
		ttl := g.specs[s.ref.Job].Stages[0].Lease.TTL
		s.due, s.state = g.clock().Add(task.Millis(float64(ttl)*g.cut)), task.ShardRunning
		reply.Renewed = append(reply.Renewed, transport.Renewal{Token: t, TTL: ttl})
		reply.Orders = append(reply.Orders, g.orders[t]...)
		delete(g.orders, t)
	}
	return reply, nil
}

func (g *granter) report(id task.NodeID, r *transport.ReportRequest) (*transport.ReportReply, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reportN++
	if g.down {
		return nil, task.ErrNoLeader
	}
	if n := g.nodes[id]; n != nil && r.Incarnation > n.incarnation {
		g.early++
	}
	reply := &transport.ReportReply{}
	for _, rep := range r.Reports {
		reply.Codes = append(reply.Codes, g.takeReport(id, rep))
	}
	g.serve()
	return reply, nil
}

func (g *granter) takeReport(id task.NodeID, rep task.Report) string {
	if g.answer != nil {
		if code, own := g.answer(rep); own {
			return code
		}
	}
	switch rep.Outcome.End {
	case task.EndLeaseExpired, task.EndNotConfirmed, task.EndNodeRestarted:
		return "invalid" // only the cluster ends an attempt so
	}
	s := g.find(rep.Token)
	if s == nil || s.node != id {
		if g.reports[rep.Token] > 0 {
			g.reports[rep.Token]++
			return ""
		}
		g.stale++
		return "stale_token"
	}
	g.reports[rep.Token]++
	switch task.DefaultRetry().Judge(rep.Outcome) {
	case task.VerdictSucceeded:
		g.end(s, rep.Outcome.End, task.ShardSucceeded)
	case task.VerdictCancelled:
		g.end(s, rep.Outcome.End, task.ShardCancelled)
	case task.VerdictDefer:
		g.end(s, rep.Outcome.End, task.ShardPending)
		s.ready = g.clock().Add(rep.Outcome.Wait)
	default:
		g.end(s, rep.Outcome.End, task.ShardPending)
	}
	return ""
}

// do answers the other calls.
func (g *granter) do(id task.NodeID, method transport.Method, request, reply any) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		return task.ErrNoLeader
	}
	switch r := request.(type) {
	case *transport.SpecRequest:
		spec := g.specs[r.Job]
		if spec == nil {
			return task.ErrNotFound
		}
		reply.(*transport.SpecReply).JSON, _ = json.Marshal(spec)
	case *transport.CheckpointRequest:
		s := g.find(r.Token)
		if s == nil || s.node != id {
			return task.ErrStaleToken
		}
		if s.last != nil && (r.Seq < s.last.Seq || r.Seq == s.last.Seq && !bytes.Equal(r.Data, s.last.Data)) {
			return task.ErrConflict
		}
		s.last = &task.Checkpoint{Seq: r.Seq, Data: bytes.Clone(r.Data)}
		g.wrote(r.Token, "checkpoint")
	case *transport.OutputRequest:
		if s := g.find(r.Token); s == nil || s.node != id {
			return task.ErrStaleToken
		}
		g.wrote(r.Token, "output "+string(r.RequestID))
	case *transport.ProgressRequest:
		g.wrote(r.Token, "progress")
	case *transport.SleepRequest:
		g.asleep = append(g.asleep, r)
	case *transport.StatePutRequest:
		g.wrote(r.Token, "state "+string(r.RequestID))
	case *transport.RangeRequest:
		if s := g.find(r.Token); s == nil || s.node != id {
			return task.ErrStaleToken
		}
		g.onRange(*r)
		reply.(*transport.RangeReply).Range = task.ShardRange{Start: 1, End: 9}
	case *transport.InputsRequest:
		reply.(*transport.InputsReply).Inputs = []transport.Input{{Shard: 0, Name: r.Name, Value: "v"}}
	case *transport.StateGetRequest:
		*reply.(*transport.StateValue) = transport.StateValue{Version: 3, Value: []byte(r.Key)}
	}
	return nil
}

func (g *granter) wrote(t task.Token, what string) {
	if g.onWrite != nil {
		g.onWrite(t, what)
	}
}
