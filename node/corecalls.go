package node

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/hashicorp/raft"

	"lanjobs/fsm"
	"lanjobs/node/worker"
	"lanjobs/task"
	"lanjobs/transport"
)

// Generation is transport.GenerationKeeper.
func (c *Core) Generation() uint64 { return c.parts.Generation }

// OtherGeneration is transport.GenerationKeeper.
func (c *Core) OtherGeneration(from task.NodeID, generation uint64) {
	if c.parts.OtherGeneration != nil {
		c.parts.OtherGeneration(from, generation)
	}
}

// Newest is the newest entry of this node's log or snapshot, committed or not; 0, 0 without any.
func (c *Core) Newest() (term, index uint64) {
	if c.raft == nil {
		return 0, 0
	}
	s := c.raft.Stats()
	number := func(key string) uint64 { n, _ := strconv.ParseUint(s[key], 10, 64); return n }
	if t, i := number("last_log_term"), number("last_log_index"); i > number("last_snapshot_index") {
		return t, i
	}
	return number("last_snapshot_term"), number("last_snapshot_index")
}

// lastIndexOf asks a voter how far its log is.
func (c *Core) lastIndexOf(ctx context.Context, voter task.NodeID) (uint64, error) {
	var r transport.PingReply
	err := c.parts.Caller.Call(ctx, voter, transport.MethodPing, &transport.PingRequest{}, &r)
	return r.LastIndex, err
}

// LeaderID is the leader that this node's Raft knows, "" if none or if it keeps no log.
func (c *Core) LeaderID() task.NodeID {
	if c.raft == nil {
		return ""
	}
	_, id := c.raft.LeaderWithID()
	return task.NodeID(id)
}

// Leads tells whether this node believes to lead. Only for display and routing: nothing may be granted on it.
func (c *Core) Leads() bool { return c.raft != nil && c.raft.State() == raft.Leader }

// ServeCall answers a call from a node of the cluster, or from this node itself.
func (c *Core) ServeCall(ctx context.Context, from task.NodeID, method transport.Method, body []byte) (any, error) {
	switch method {
	case transport.MethodWho:
		return &transport.WhoReply{Leader: c.LeaderID()}, nil
	case transport.MethodPing:
		return c.ping(), nil
	case transport.MethodAPI, transport.MethodReadLog, transport.MethodJoin, transport.MethodPair, transport.MethodLogin, transport.MethodTwin, transport.MethodRejoin,
		transport.MethodProbe, transport.MethodDoctor, transport.MethodWake, transport.MethodHistory:
		if err := c.knows(from, method); err != nil {
			return nil, err
		}
		return c.parts.Local.ServeCall(ctx, from, method, body)
	case transport.MethodDigest:
		return transport.Answer(ctx, c, from, body, (*Core).serveDigest)
	case transport.MethodRegister:
		defer c.lookAtSeats()
	}
	return c.leader.ServeCall(ctx, from, method, body)
}

// knows refuses, on the leader, what only members may ask for, to a machine that the ledger does not know: it has a certificate of
// this cluster, and came in after the backup from which the cluster was restored. Only a leader can tell such a one from a
// machine that has just been let in.
func (c *Core) knows(from task.NodeID, method transport.Method) error {
	if from == c.parts.Self || method == transport.MethodTwin || method == transport.MethodHistory || method == transport.MethodProbe || !c.leader.Leading() {
		return nil
	}
	stranger, name := false, ""
	c.ledger.Read(func(s *fsm.State) {
		n := s.Node(from)
		stranger, name = s.Cluster.ID != "" && (n == nil || n.Gone != ""), s.Cluster.Name
	})
	if !stranger {
		return nil
	}
	return task.NewProblem(task.ErrNotAllowed, fmt.Sprintf("node %s is not a member of %q", from, name), "Join as a new one: lanjobs join MACHINE --replace")
}

// ping says how far this node's log is.
func (c *Core) ping() *transport.PingReply {
	r := &transport.PingReply{Level: c.parts.Info().Level, Wall: c.parts.Clock.Wall().UnixMilli()}
	if c.raft != nil {
		r.LastIndex, r.Applied, r.Term = c.raft.LastIndex(), c.raft.AppliedIndex(), c.raft.CurrentTerm()
	}
	return r
}

func (c *Core) lookAtSeats() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// Gone tells whether a node was removed from the cluster, by this member's applied state.
func (c *Core) Gone(id task.NodeID) (gone bool) {
	c.ledger.Read(func(s *fsm.State) {
		n := s.Node(id)
		gone = n != nil && n.Gone != ""
	})
	return gone
}

// Servers is Raft's configuration: who has a log, and who votes.
func (c *Core) Servers() []raft.Server {
	if c.raft == nil {
		return nil
	}
	f := c.raft.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return slices.Clone(f.Configuration().Servers)
}

// Read gives this member's applied state for reading.
func (c *Core) Read(f func(*fsm.State)) { c.ledger.Read(f) }

// Changed is closed at the next applied entry.
func (c *Core) Changed() <-chan struct{} { return c.ledger.Changed() }

// Propose commits a command if this node leads; see leader.Leader.
func (c *Core) Propose(ctx context.Context, cmd fsm.Command) (fsm.Result, error) {
	return c.leader.Propose(ctx, cmd)
}

// commit is Propose for whom a refusal is an error.
func (c *Core) commit(ctx context.Context, cmd fsm.Command) error {
	r, err := c.leader.Propose(ctx, cmd)
	if err == nil && r.Err != nil {
		err = r.Err
	}
	return err
}

// Worker is this node's worker.
func (c *Core) Worker() *worker.Worker { return c.worker }

// HasCopy tells whether this node applies the cluster's log: it is in Raft's configuration.
func (c *Core) HasCopy() bool {
	return slices.ContainsFunc(c.Servers(), func(s raft.Server) bool { return task.NodeID(s.ID) == c.parts.Self })
}
