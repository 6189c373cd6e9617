package transport

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"lanjobs/task"
)

// JoinConfig is what Join is told.
type JoinConfig struct {
	Peer     string // a member, as typed: HOST or HOST:PORT
	Token    string
	Identity *Identity // of this machine; not changed, see Identity.Adopt
	Info     task.NodeInfo
	Addrs    []string // see JoinRequest
	Net      NetDial
	// HasRoute tells whether this machine has a way to an address, by its own routing table; see LocalToward. May be nil.
	HasRoute func(netip.AddrPort) bool
	Clock    task.Clock
}

// Join asks a member to let this machine in. The secret of the token is sent only to a node whose certificate was signed by
// the authority that the token names. The error is a *task.Problem for a person: not_allowed if that is another cluster or the
// token is not valid, no_leader if nobody answers or nobody leads for a while, invalid if the token or PEER is mistyped or no lanjobs runs there.
func Join(ctx context.Context, cfg JoinConfig) (*JoinReply, error) {
	token, err := ParseJoinToken(cfg.Token)
	if err != nil {
		return nil, err
	}
	v, err := cfg.visit()
	if err != nil {
		return nil, err
	}
	csr, err := cfg.Identity.CSR()
	if err != nil {
		return nil, err
	}
	reply := &JoinReply{}
	if err := v.askByToken(ctx, token, pathJoin, JoinRequest{TokenSecret: token.Secret, CSR: csr, Info: cfg.Info, Addrs: cfg.Addrs}, reply); err != nil {
		return nil, err
	}
	return reply, cfg.check(reply, token)
}

// check makes sure that what came back fits this machine and the token: the node that answered is a member, but may be broken.
func (cfg JoinConfig) check(reply *JoinReply, token JoinToken) error {
	f, err := reply.Cluster.Fingerprint()
	if err == nil && !token.Matches(f) {
		err = errors.New("another authority")
	}
	if err == nil && len(reply.Cluster.GossipKey) != gossipKeyBytes {
		err = errors.New("no key for gossip")
	}
	if err == nil {
		trial := *cfg.Identity
		err = trial.Adopt(reply.Cluster, reply.Cert)
	}
	if err != nil {
		return &task.Problem{Code: "internal", Detail: fmt.Sprintf("%s let this machine in, but its answer is not usable: %v.", cfg.Peer, err)}
	}
	return nil
}
