package memnet

import (
	"context"
	"errors"
	"fmt"

	"lanjobs/task"
	"lanjobs/transport"
)

// Serve answers calls to a host with h, until Kill; nil refuses them.
func (n *Network) Serve(id task.NodeID, h transport.Handler) {
	host := n.Host(id)
	n.change(func() { host.handler = h })
}

// Caller sends calls from a host. A call to the host itself goes the same way, without a network.
func (n *Network) Caller(id task.NodeID) transport.Caller { return &caller{net: n, from: n.Host(id)} }

type caller struct {
	net  *Network
	from *Host
}

// answer is what a handler gave, encoded as on the wire.
type answer struct {
	body    []byte
	problem *task.Problem
}

// Call encodes the request, carries it there, and the answer back. When ctx ends it returns, whatever happens to either: a
// request held by a frozen host is served after the thaw all the same.
func (c *caller) Call(ctx context.Context, to task.NodeID, method transport.Method, request, reply any) error {
	body, err := transport.Encode(request)
	if err != nil {
		return fmt.Errorf("call %s: %w", method, err)
	}
	answered := make(chan answer, 1)
	c.net.mu.Lock()
	if c.net.closed {
		c.net.mu.Unlock()
		return fmt.Errorf("call %s: %w", method, errors.Join(task.ErrNoLeader, errClosed))
	}
	c.net.wg.Add(1)
	c.net.mu.Unlock()
	go func() {
		defer c.net.wg.Done()
		if a, ok := c.carry(ctx, to, method, body); ok {
			answered <- a
		}
	}()
	select {
	case a := <-answered:
		if a.problem != nil {
			return a.problem
		}
		return transport.Decode(a.body, reply)
	case <-ctx.Done():
		return fmt.Errorf("call %s of %s: %w", method, to, errors.Join(task.ErrNoLeader, context.Cause(ctx)))
	case <-c.net.ctx.Done():
		return fmt.Errorf("call %s of %s: %w", method, to, errors.Join(task.ErrNoLeader, errClosed))
	}
}

// carry takes a request to its handler and the answer back; false if either got lost.
func (c *caller) carry(ctx context.Context, to task.NodeID, method transport.Method, body []byte) (answer, bool) {
	n, from := c.net, c.from.id
	sent := func() bool { return n.open(from, to) && !n.frozen[from] }
	if n.await(ctx, sent) != nil || n.pause(n.ctx, link{from, to}) != nil {
		return answer{}, false
	}
	// From here on the request is with the other machine's kernel: it is served even if nobody waits for it any more.
	if n.await(n.ctx, func() bool { return !n.frozen[to] }) != nil {
		return answer{}, false
	}
	n.mu.Lock()
	var handler transport.Handler
	if host := n.hosts[to]; host != nil {
		handler = host.handler
	}
	n.mu.Unlock()
	if handler == nil {
		return answer{problem: task.NewProblem(task.ErrNoLeader, fmt.Sprintf("%s does not answer", to), "")}, true
	}
	a := c.serve(ctx, handler, from, to, method, body)
	returned := func() bool { return n.open(to, from) && !n.frozen[to] && !n.frozen[from] }
	if n.await(ctx, returned) != nil || n.pause(ctx, link{to, from}) != nil {
		return answer{}, false
	}
	return a, true
}

// serve runs the handler. It hears that the caller gave up only while the way to it is open.
func (c *caller) serve(ctx context.Context, h transport.Handler, from, to task.NodeID, method transport.Method, body []byte) answer {
	served, cancel := context.WithCancelCause(c.net.ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		c.net.mu.Lock()
		heard := c.net.flows(from, to)
		c.net.mu.Unlock()
		if heard {
			cancel(context.Cause(ctx))
		}
	})
	defer stop()
	reply, err := h.ServeCall(served, from, method, body)
	if err != nil {
		return answer{problem: task.Explain(err)}
	}
	encoded, err := transport.Encode(reply)
	if err != nil {
		return answer{problem: task.Explain(fmt.Errorf("encode the answer to %s: %w", method, err))}
	}
	return answer{body: encoded}
}
