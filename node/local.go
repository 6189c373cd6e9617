package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/raft"

	"lanjobs/fsm"
	"lanjobs/node/api"
	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

// local answers the calls that are about this machine: requests passed on to the leader, logs, joining.
type local struct{ m *machine }

// ServeCall answers one.
func (l *local) ServeCall(ctx context.Context, from task.NodeID, method transport.Method, body []byte) (any, error) {
	switch method {
	case transport.MethodAPI:
		var q transport.APIRequest
		if err := transport.Decode(body, &q); err != nil {
			return nil, err
		}
		return l.m.api.ServeForwarded(ctx, &q)
	case transport.MethodReadLog:
		var q transport.LogRequest
		if err := transport.Decode(body, &q); err != nil {
			return nil, err
		}
		p, err := l.m.runner.ReadLog(ctx, runner.LogQuery{Execution: q.Execution, Stream: q.Stream, From: q.From, Limit: q.Limit, Tail: q.Tail, Hold: q.Hold})
		return &transport.LogReply{Data: p.Data, Next: p.Next, Done: p.Done}, err
	case transport.MethodTwin:
		var q transport.TwinRequest
		if err := transport.Decode(body, &q); err != nil {
			return nil, err
		}
		return l.m.serveTwin(from, q), nil
	case transport.MethodProbe:
		return l.m.serveProbe(ctx, from), nil
	case transport.MethodDoctor:
		return &transport.DoctorReply{View: *peers{l.m}.Doctor(ctx)}, nil
	case transport.MethodWake:
		var q transport.WakeRequest
		if err := transport.Decode(body, &q); err != nil {
			return nil, err
		}
		return l.m.wakeHere(&q)
	case transport.MethodHistory:
		return l.m.historyHere(from)
	case transport.MethodRejoin:
		var q transport.RejoinRequest
		if err := transport.Decode(body, &q); err != nil {
			return nil, err
		}
		return l.m.rejoinHere(ctx, from, q)
	case transport.MethodPair:
		var q transport.PairRelay
		if err := transport.Decode(body, &q); err != nil {
			return nil, err
		}
		reply, err := l.m.pairs.Ask(ctx, q.Request, q.Remote)
		return &reply, err
	case transport.MethodLogin:
		var q transport.LoginRequest
		if err := transport.Decode(body, &q); err != nil {
			return nil, err
		}
		return l.m.loginHere(ctx, q)
	}
	var q transport.JoinRequest
	if err := transport.Decode(body, &q); err != nil {
		return nil, err
	}
	return l.m.admitHere(ctx, q)
}

// peers is api.Peers, and the rest that the API asks of this machine.
type peers struct{ m *machine }

var (
	_ api.Peers   = peers{}
	_ api.Ledger  = (*standing)(nil)
	_ api.Machine = peers{}
)

// newAPI makes the API of this machine.
func (m *machine) newAPI() (*api.API, error) {
	m.standing = &standing{clock: m.clock, started: m.clock.Awake(), read: m.core.Read, now: func() api.Standing {
		return api.Standing{Leads: m.core.leader.Leading(), Leader: m.core.LeaderID(), Copy: m.core.HasCopy(), Out: m.trouble.problem() != nil}
	}}
	return api.New(api.Config{Self: m.identity.NodeID, Name: m.identity.Name, Cluster: m.identity.Cluster.Name, Version: m.cfg.Version, Clock: m.clock, Log: m.log,
		Ledger: m.standing, Leader: m.core.leader, Peers: peers{m}, Machine: peers{m}, Process: m.process(), Doctor: peers{m}, Pairing: m.pairing(), Audit: m.audit, Notices: m.notices,
		NewID: func() task.RequestID { return task.RequestID(uuid.NewString()) }})
}

// Forward has the leader answer a client's request.
func (p peers) Forward(ctx context.Context, r *transport.APIRequest) (*transport.APIReply, error) {
	return do[transport.APIReply](p.m.core.control, ctx, transport.MethodAPI, r)
}

// Call calls a node.
func (p peers) Call(ctx context.Context, to task.NodeID, method transport.Method, request, reply any) error {
	return p.m.caller.Call(ctx, to, method, request, reply)
}

// Members lists the machines by Raft's configuration, the ledger and the book.
func (p peers) Members() []api.Member {
	m := p.m
	leader := m.core.LeaderID()
	byID := map[task.NodeID]*api.Member{}
	var order []task.NodeID
	add := func(id task.NodeID, role api.Role) {
		if byID[id] == nil {
			byID[id] = &api.Member{ID: id, Role: role}
			order = append(order, id)
		}
	}
	for _, s := range m.core.Servers() {
		role := api.RoleStandby
		if s.Suffrage == raft.Voter {
			role = api.RoleVoter
		}
		if task.NodeID(s.ID) == leader {
			role = api.RoleLeader
		}
		add(task.NodeID(s.ID), role)
	}
	m.core.Read(func(s *fsm.State) {
		for _, n := range s.Nodes() {
			if n.Gone == "" {
				add(n.Info.ID, api.RoleWorker)
			}
		}
	})
	slices.Sort(order)
	out := make([]api.Member, 0, len(order))
	for _, id := range order {
		e := byID[id]
		if m.wire != nil {
			if id == m.identity.NodeID {
				e.Addresses = m.wire.gossip.Addrs()
			} else {
				e.Addresses = m.wire.book.Lookup(id)
				e.Away = m.wire.away(id, m.clock.Awake())
				e.Refusal = m.wire.refusalOf(id)
			}
		}
		out = append(out, *e)
	}
	return out
}

// Init makes this machine the first member of a cluster: its identity is written, then the node is built anew with its jobs.
func (p peers) Init(_ context.Context, b transport.InitBody, _ string) (*transport.InitView, error) {
	m := p.m
	cfg := m.cfg
	if b.Listen != "" {
		cfg.Listen = b.Listen
	}
	view, err := foundCluster(cfg, m.store, m.identity, b.Cluster)
	if err != nil {
		return nil, err
	}
	m.after(answerFirst, m.restart)
	return view, nil
}

// Leave takes this machine out of its cluster.
func (p peers) Leave(ctx context.Context, b transport.LeaveBody, by string) error {
	m := p.m
	if m.wire == nil { // this machine only: a join takes it over, unless that would lose work
		live := 0
		m.core.Read(func(s *fsm.State) { live = s.Live() })
		if live > 0 && !b.Force {
			return task.NewProblem(task.ErrConflict, fmt.Sprintf("this machine has %d unfinished jobs of its own", live), "Wait for them, cancel them, or put them aside: --force")
		}
		m.giveBack(ctx)
		m.left.Store(true)
		m.after(answerFirst, m.departed)
		return nil
	}
	if err := m.core.PrepareLeave(ctx); err != nil && !b.Force {
		return err
	}
	m.giveBack(ctx)
	if err := p.announceLeave(ctx, by); err != nil && !b.Force {
		return err
	}
	m.left.Store(true)
	m.after(answerFirst, m.departed)
	return nil
}

// announceLeave has the leader record it; handing over leadership came first, so that it is another node.
func (p peers) announceLeave(ctx context.Context, by string) error {
	m := p.m
	if m.trouble.problem() != nil {
		return nil // it takes no part already
	}
	others := 0
	for _, s := range m.core.Servers() {
		if s.ID != raft.ServerID(m.identity.NodeID) {
			others++
		}
	}
	if others == 0 && m.core.Leads() {
		return nil // the last one out
	}
	var last error
	for range leaveTries {
		_, last = do[transport.Ack](m.core.control, ctx, transport.MethodLeave, &transport.LeaveRequest{By: by})
		if m.core.control.putOut(last) {
			return nil // an earlier try was served; its answer went down with the connection
		}
		if !errors.Is(last, task.ErrNoLeader) {
			return last
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-m.clock.After(time.Second):
		}
	}
	return last
}

const (
	leaveTries = 15
	// answerFirst lets the answer to init or leave reach its client before the socket goes.
	answerFirst = 200 * time.Millisecond
)

// after closes a channel a little later.
func (m *machine) after(d time.Duration, c chan struct{}) {
	m.once.Do(func() {
		go func() {
			<-m.clock.After(d)
			close(c)
		}()
	})
}
