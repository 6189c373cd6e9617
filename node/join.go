package node

import (
	"context"
	"net/netip"
	"runtime"
	"time"

	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

// JoinCluster makes the node of a data folder a member of the cluster that peer belongs to, while it does not run. What it was
// before is put aside: an id is never used again with an empty log.
func JoinCluster(ctx context.Context, cfg Config, peer, token string, worker bool) (cluster string, err error) {
	j, err := newJoiner(ctx, cfg, peer, worker)
	if err != nil {
		return "", err
	}
	return j.join(ctx, token)
}

// PairTalk is how a machine that wants to be let in by its code speaks to the person in front of it.
type PairTalk struct {
	// Show gives the code to type on a member, and for how long it is good; again if it had to be changed.
	Show func(code string, left time.Duration)
	// Say tells what happens meanwhile.
	Say func(text string)
}

// Admission is a machine that was let in by its code. Nothing has been changed here yet.
type Admission struct {
	By     string // who approved
	joiner *joiner
	token  string
}

// PairWithCluster waits with a code until a person on a member lets this machine in (R46).
func PairWithCluster(ctx context.Context, cfg Config, peer string, worker bool, talk PairTalk) (*Admission, error) {
	j, err := newJoiner(ctx, cfg, peer, worker)
	if err != nil {
		return nil, err
	}
	grant, err := transport.Pair(ctx, transport.PairConfig{JoinConfig: j.conf, Say: talk.Say,
		Show: func(code transport.PairCode, left time.Duration) { talk.Show(code.String(), left) }})
	if err != nil {
		return nil, err
	}
	return &Admission{By: grant.By, joiner: j, token: grant.Token}, nil
}

// Join is JoinCluster with what the machine was given.
func (a *Admission) Join(ctx context.Context) (cluster string, err error) {
	return a.joiner.join(ctx, a.token)
}

// joiner is a machine on its way into a cluster, under the identity that it will have there.
type joiner struct {
	cfg      Config
	worker   bool
	identity *transport.Identity
	conf     transport.JoinConfig
}

func newJoiner(ctx context.Context, cfg Config, peer string, worker bool) (*joiner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, task.NewProblem(task.ErrInvalid, err.Error(), "")
	}
	addr, err := listenAddr(cfg, Settings{})
	if err != nil {
		return nil, err
	}
	if cfg.Clock == nil {
		cfg.Clock = runner.SystemClock()
	}
	identity, err := transport.NewIdentity(cfg.Name)
	if err != nil {
		return nil, err
	}
	return &joiner{cfg: cfg, worker: worker, identity: identity, conf: transport.JoinConfig{
		Peer: findPeer(ctx, cfg, peer), Identity: identity, Net: transport.DialTCP, Addrs: announced(addr), Clock: cfg.Clock,
		Info: task.NodeInfo{ID: identity.NodeID, Name: cfg.Name, OS: runtime.GOOS, Arch: runtime.GOARCH, Version: cfg.Version, Level: Level,
			Voter: !worker, Slots: cfg.Slots},
		HasRoute: func(a netip.AddrPort) bool { _, ok := transport.LocalToward(a); return ok }}}, nil
}

// join uses a token, then puts aside what this machine was and writes what it is now.
func (j *joiner) join(ctx context.Context, token string) (cluster string, err error) {
	j.conf.Token = token
	reply, err := transport.Join(ctx, j.conf)
	if err != nil {
		return "", err
	}
	if err := j.identity.Adopt(reply.Cluster, reply.Cert); err != nil {
		return "", err
	}
	kept, err := keptRules(j.cfg.DataDir) // what the owner lets the cluster do is a matter of the machine, whichever cluster that is
	if err != nil {
		return "", err
	}
	j.cfg.Rules = j.cfg.Rules.over(kept)
	if err := setAside(j.cfg.DataDir); err != nil {
		return "", err
	}
	return reply.Cluster.Name, settleIn(j.cfg, j.identity, reply, j.worker)
}
