package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"lanjobs/node/worker"
	"lanjobs/task"
	"lanjobs/transport"
)

// control is the leader as this node's worker, API and join door reach it: it finds the leader by itself and forgets it
// when it turns out not to lead.
type control struct {
	self    task.NodeID
	caller  transport.Caller
	clock   task.Clock
	known   func() task.NodeID   // the leader by this node's own Raft, "" if it knows none
	members func() []task.NodeID // whom to ask otherwise
	out     func() error         // why this node takes no part in the cluster; nil = it does
	crashes Crashes              // nil = not counted

	mu     sync.Mutex
	leader task.NodeID // learned by asking; "" = ask again
}

var _ worker.Control = (*control)(nil)

// whoTimeout bounds one question for the leader.
const whoTimeout = time.Second

// find gives the leader's id, "" if nobody knows one, and then why if it is that this node was removed from the cluster.
func (c *control) find(ctx context.Context) (leader task.NodeID, removed error) {
	if id := c.known(); id != "" {
		return id, nil
	}
	c.mu.Lock()
	id := c.leader
	c.mu.Unlock()
	if id != "" {
		return id, nil
	}
	id, removed = c.ask(ctx)
	if id != "" {
		c.mu.Lock()
		c.leader = id
		c.mu.Unlock()
	}
	return id, removed
}

// ask asks all members at once: most of them may be asleep, and one after the other would take longer than a call may, or a lease lasts.
func (c *control) ask(ctx context.Context) (leader task.NodeID, removed error) {
	ctx, cancel := transport.WithTimeout(ctx, c.clock, whoTimeout)
	defer cancel()
	type answer struct {
		leader task.NodeID
		err    error
	}
	members := slices.DeleteFunc(slices.Clone(c.members()), func(id task.NodeID) bool { return id == c.self })
	answers := make(chan answer, len(members))
	for _, member := range members {
		go func() {
			var reply transport.WhoReply
			err := c.caller.Call(ctx, member, transport.MethodWho, &transport.WhoRequest{}, &reply)
			answers <- answer{reply.Leader, err}
		}()
	}
	for range members {
		a := <-answers
		if a.err == nil && a.leader != "" {
			return a.leader, nil
		}
		if c.putOut(a.err) {
			removed = a.err
		}
	}
	return "", removed
}

// putOut tells whether another member refused this node because it was removed. That this node refuses to call a removed one
// is the same reason in the other direction.
func (c *control) putOut(err error) bool {
	refusal, ok := errors.AsType[*transport.Refusal](err)
	return ok && refusal.To == c.self && errors.Is(refusal, transport.ErrRemoved)
}

// learned is the leader that was found by asking and has answered since; "" = none.
func (c *control) learned() task.NodeID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leader
}

// forget drops a learned leader that did not answer as one.
func (c *control) forget(id task.NodeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leader == id {
		c.leader = ""
	}
}

// Do calls the leader once. task.ErrNoLeader means that there is none now or that it did not answer.
func (c *control) Do(ctx context.Context, method transport.Method, request, reply any) error {
	if c.out != nil {
		if err := c.out(); err != nil {
			return err
		}
	}
	id, removed := c.find(ctx)
	if removed != nil {
		return removed
	}
	if id == "" {
		return task.NewProblem(task.ErrNoLeader, "no leader is known now", "")
	}
	err := c.caller.Call(ctx, id, method, request, reply)
	if errors.Is(err, task.ErrNoLeader) {
		c.forget(id)
	}
	return err
}

func do[R any](c *control, ctx context.Context, method transport.Method, request any) (*R, error) {
	reply := new(R)
	if err := c.Do(ctx, method, request, reply); err != nil {
		return nil, err
	}
	return reply, nil
}

// Poll is worker.Control.
func (c *control) Poll(ctx context.Context, r *transport.PollRequest) (*transport.PollReply, error) {
	return do[transport.PollReply](c, ctx, transport.MethodPoll, r)
}

// Renew is worker.Control.
func (c *control) Renew(ctx context.Context, r *transport.RenewRequest) (*transport.RenewReply, error) {
	return do[transport.RenewReply](c, ctx, transport.MethodRenew, r)
}

// Report is worker.Control.
func (c *control) Report(ctx context.Context, r *transport.ReportRequest) (*transport.ReportReply, error) {
	return do[transport.ReportReply](c, ctx, transport.MethodReport, r)
}
