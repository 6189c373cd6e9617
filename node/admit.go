package node

import (
	"context"
	"fmt"

	"lanjobs/fsm"
	"lanjobs/node/api"
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

// pair passes the question of a machine that wants to be let in by its code on to the leader.
func (m *machine) pair(ctx context.Context, q transport.PairRequest, remote string) (transport.PairReply, error) {
	reply, err := do[transport.PairReply](m.core.control, ctx, transport.MethodPair, &transport.PairRelay{Request: q, Remote: remote})
	if err != nil {
		return transport.PairReply{}, err
	}
	return *reply, nil
}

// pairing is the desk as the API asks it; none where there is no cluster to come into.
func (m *machine) pairing() api.Pairing {
	if m.wire == nil {
		return nil
	}
	return m.pairs
}

// admitHere lets a machine in, on the leader: the token is spent and the member committed before a certificate is issued.
func (m *machine) admitHere(ctx context.Context, _ task.NodeID, q *transport.JoinRequest) (*transport.JoinReply, error) {
	if q.Info.ID == "" || CleanName(q.Info.Name) != q.Info.Name {
		return nil, task.NewProblem(task.ErrInvalid, fmt.Sprintf("node name %q: use a-z, 0-9 and -", q.Info.Name), "")
	}
	if err := m.nameFree(q.Info); err != nil {
		return nil, err
	}
	if role, _ := m.tokenRole(q.TokenSecret); role != "" {
		return nil, task.NewProblem(task.ErrNotAllowed, "this token lets people in, not machines.", "For a machine, on a member: lanjobs token create")
	}
	if err := m.levelFits(&q.Info); err != nil {
		return nil, err
	}
	key, err := transport.CSRKeyHash(q.CSR)
	if err != nil {
		return nil, err
	}
	if err := m.madeFor(q.TokenSecret, q.Info.Name, q.Info.ID, key); err != nil {
		return nil, err
	}
	err = m.core.commit(ctx, &fsm.AdmitNode{TokenHash: transport.HashSecret(q.TokenSecret), Node: q.Info.ID, Name: q.Info.Name, Worker: !q.Info.Voter, Key: key})
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
	reply.Members = m.whereabouts(info.ID)
	return reply, nil
}

// whereabouts is where the machines of the cluster are, but one.
func (m *machine) whereabouts(but task.NodeID) (out []transport.Member) {
	for _, p := range (peers{m}).Members() {
		if p.ID != but && len(p.Addresses) > 0 {
			out = append(out, transport.Member{ID: p.ID, Name: m.nameOf(p.ID), Addrs: p.Addresses})
		}
	}
	return out
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
