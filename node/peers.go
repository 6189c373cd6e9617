package node

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/hashicorp/raft"

	"lanjobs/fsm"
	"lanjobs/node/api"
	"lanjobs/task"
	"lanjobs/transport"
)

// peers is api.Peers, and the rest that the API asks of this machine.
type peers struct{ m *machine }

var (
	_ api.Peers   = peers{}
	_ api.Ledger  = peers{}
	_ api.Machine = peers{}
)

// newAPI makes the API of this machine.
func (m *machine) newAPI() (*api.API, error) {
	return api.New(api.Config{Self: m.identity.NodeID, Name: m.identity.Name, Cluster: m.identity.Cluster.Name, Version: m.cfg.Version, Clock: m.clock, Log: m.log,
		Ledger: peers{m}, Leader: m.core.leader, Peers: peers{m}, Machine: peers{m}, Process: m.process(), Doctor: peers{m}, Pairing: m.pairing(), Audit: m.audit, Notices: m.notices,
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

// Read gives the applied state.
func (p peers) Read(f func(*fsm.State)) { p.m.core.Read(f) }

// Standing is what this member knows of the leadership.
func (p peers) Standing() api.Standing {
	c := p.m.core
	return api.Standing{Leads: c.leader.Leading(), Leader: c.LeaderID(), Silence: c.Silence(), Fresh: c.Fresh(), Copy: c.HasCopy(), Out: p.m.trouble.problem() != nil}
}
