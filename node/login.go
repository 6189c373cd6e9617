package node

import (
	"bytes"
	"context"
	"fmt"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// login answers somebody who wants access at this member: the leader decides.
func (m *machine) login(ctx context.Context, q transport.LoginRequest) (transport.LoginReply, error) {
	reply, err := do[transport.LoginReply](m.core.control, ctx, transport.MethodLogin, &q)
	if err != nil {
		return transport.LoginReply{}, err
	}
	return *reply, nil
}

// loginHere lets a client in, on the leader: the token is spent and the client committed before a certificate is issued (R46).
func (m *machine) loginHere(ctx context.Context, _ task.NodeID, q *transport.LoginRequest) (*transport.LoginReply, error) {
	role, known := m.tokenRole(q.TokenSecret)
	if known && role == "" {
		return nil, task.NewProblem(task.ErrNotAllowed, "this token lets machines in, not people.", "For a login, on a member: lanjobs token create --role operator")
	}
	if role != "" && q.Role != "" && fsm.Role(q.Role) != role {
		return nil, task.NewProblem(task.ErrNotAllowed, fmt.Sprintf("this token gives the role %s, not %s. It was not used up.", role, q.Role),
			fmt.Sprintf("On a member: lanjobs token create --role %s", q.Role))
	}
	key, err := transport.CSRKeyHash(q.CSR)
	if err != nil {
		return nil, err
	}
	if err := m.madeFor(q.TokenSecret, q.Name, "", key); err != nil {
		return nil, err
	}
	id := transport.ClientIDOf(key)
	err = m.core.commit(ctx, &fsm.AdmitClient{TokenHash: transport.HashSecret(q.TokenSecret), ID: id, Name: q.Name, Key: key})
	if err != nil {
		return nil, err
	}
	return m.welcomeClient(q.CSR, id)
}

// welcomeClient issues the certificate of a client that was committed, and tells it where the machines are. It gets nothing that
// would make it one of them.
func (m *machine) welcomeClient(csr, id string) (*transport.LoginReply, error) {
	var caKey []byte
	var client *fsm.Client
	m.core.Read(func(s *fsm.State) { caKey, client = s.Cluster.CAKey, s.Client(id) })
	if client == nil {
		return nil, task.NewProblem(task.ErrNotAllowed, "this access was removed again just now", "")
	}
	ca, err := transport.ParseCA(caKey)
	if err != nil {
		return nil, err
	}
	c := m.identity.Cluster
	reply := &transport.LoginReply{ID: id, Role: string(client.Role), ClusterID: c.ID, ClusterName: c.Name, CACert: c.CACert, Members: m.whereabouts("")}
	reply.Cert, err = ca.IssueClient(csr, id)
	return reply, err
}

// tokenRole is what a token gives: "" = it is one for machines, or not known here.
func (m *machine) tokenRole(secret string) (role fsm.Role, known bool) {
	hash := transport.HashSecret(secret)
	m.core.Read(func(s *fsm.State) {
		for _, t := range s.JoinTokens() {
			if bytes.Equal(t.Hash, hash) {
				role, known = t.Role, true
			}
		}
	})
	return role, known
}
