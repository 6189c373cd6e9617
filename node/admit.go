package node

import (
	"context"
	"fmt"

	"lanjobs/fsm"
	"lanjobs/node/leader"
	"lanjobs/task"
	"lanjobs/transport"
)

// admit answers a machine that wants to join at this member: the leader decides.
func (m *machine) admit(ctx context.Context, q transport.JoinRequest, _ string) (transport.JoinReply, error) {
	reply, err := do[transport.JoinReply](m.core.control, ctx, transport.MethodJoin, &q)
	if err != nil {
		return transport.JoinReply{}, err
	}
	return *reply, nil
}

// admitHere lets a machine in, on the leader: the token is spent and the member committed before a certificate is issued.
func (m *machine) admitHere(ctx context.Context, q transport.JoinRequest) (*transport.JoinReply, error) {
	if q.Info.ID == "" || CleanName(q.Info.Name) != q.Info.Name {
		return nil, task.NewProblem(task.ErrInvalid, fmt.Sprintf("node name %q: use a-z, 0-9 and -", q.Info.Name), "")
	}
	if err := m.nameFree(q.Info); err != nil {
		return nil, err
	}
	if err := m.levelFits(&q.Info); err != nil {
		return nil, err
	}
	key, err := transport.CSRKeyHash(q.CSR)
	if err != nil {
		return nil, err
	}
	r, err := m.core.Propose(ctx, &fsm.AdmitNode{TokenHash: transport.HashSecret(q.TokenSecret), Node: q.Info.ID, Name: q.Info.Name, Worker: !q.Info.Voter, Key: key})
	if err == nil && r.Err != nil {
		err = r.Err
	}
	if err != nil {
		return nil, err
	}
	return m.welcome(q.CSR, q.Info, q.Addrs)
}

// welcome issues the certificate of a member that was committed, and tells it where the others are.
func (m *machine) welcome(csr string, info task.NodeInfo, addrs []string) (*transport.JoinReply, error) {
	var key []byte
	m.core.Read(func(s *fsm.State) { key = s.Cluster.CAKey })
	ca, err := transport.ParseCA(key)
	if err != nil {
		return nil, err
	}
	reply := &transport.JoinReply{Cluster: m.identity.Cluster}
	if reply.Cert, err = ca.Issue(csr, info.ID); err != nil {
		return nil, err
	}
	m.wire.book.Update(info.ID, transport.Peer{Addrs: addrs, Name: info.Name, Version: info.Version, Voter: info.Voter, Seen: m.clock.Wall()})
	for _, p := range (peers{m}).Members() {
		if p.ID != info.ID && len(p.Addresses) > 0 {
			reply.Members = append(reply.Members, transport.Member{ID: p.ID, Name: m.nameOf(p.ID), Addrs: p.Addresses})
		}
	}
	return reply, nil
}

// levelFits refuses a machine whose version is no neighbour of the cluster's, or older than that of every member: what these have
// agreed on, it might not be able to read (R47).
func (m *machine) levelFits(info *task.NodeInfo) (err error) {
	m.core.Read(func(s *fsm.State) {
		level := s.Members()
		if l := max(info.Level, 1); l < level || l > level+1 {
			err = leader.LevelProblem(s, info, level)
		}
	})
	return err
}

// nameFree refuses a second machine of the same name: people tell machines apart by it.
func (m *machine) nameFree(info task.NodeInfo) (err error) {
	m.core.Read(func(s *fsm.State) {
		for _, n := range s.Nodes() {
			if n.Gone == "" && n.Info.Name == info.Name && n.Info.ID != info.ID {
				err = task.NewProblem(task.ErrConflict, fmt.Sprintf("%q already has a machine called %q", s.Cluster.Name, info.Name),
					"Give this one another name: --node-name NAME. If it is the same machine, remove its old entry first: lanjobs node rm "+info.Name)
			}
		}
	})
	return err
}
