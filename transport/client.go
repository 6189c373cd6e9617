package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"

	"lanjobs/task"
)

// ClientConfig is what a Client is told.
type ClientConfig struct {
	Self  task.NodeID
	Local Handler // answers calls of this node to itself
	// Dial opens a connection to a node that has proven who it is, for calls: Dialer.To(ALPNRPC).
	Dial func(ctx context.Context, id task.NodeID) (net.Conn, error)
	// Generation is that of this node's cluster; answers of members of another one are refused (see GenerationKeeper). 0 = not told.
	Generation uint64
	// OtherGeneration hears of such a member; it must return soon. May be nil.
	OtherGeneration func(to task.NodeID, generation uint64)
	// Name gives a node's name for messages, "" if it is not known. May be nil.
	Name func(id task.NodeID) string
}

// Client sends calls to nodes, over one HTTP/2 connection to each. A call takes as long as its context allows, since a worker's
// question for work is parked at the leader; that the peer is still there is found out by pings of the connection.
type Client struct {
	ClientConfig

	mu     sync.Mutex
	peers  map[task.NodeID]*clientPeer
	closed bool
}

var _ Caller = (*Client)(nil)

// NewClient makes a client without connections.
func NewClient(cfg ClientConfig) *Client {
	return &Client{ClientConfig: cfg, peers: map[task.NodeID]*clientPeer{}}
}

// Call is Caller. Errors of the far side are *task.Problem. If the node cannot be reached, the connection breaks or ctx ends
// before the answer, it is an *Unreachable, which is task.ErrNoLeader and also what was behind it (the cause of ctx, ErrRemoved,
// syscall.ECONNREFUSED, …): whether the call was served is then not known. reply may be nil.
func (c *Client) Call(ctx context.Context, to task.NodeID, method Method, request, reply any) error {
	body, err := Encode(request)
	if err != nil {
		return fmt.Errorf("call %s: %w", method, err)
	}
	var answer []byte
	if to == c.Self {
		answer, err = answerCall(ctx, c.Local, c.Self, method, body)
		switch {
		case err != nil && ctx.Err() != nil:
			return c.unreachable(ctx, to, err) // as over the network
		case err != nil:
			return task.Explain(err)
		}
	} else if answer, err = c.send(ctx, to, method, body); err != nil {
		return err
	}
	if reply == nil {
		return nil
	}
	if err := Decode(answer, reply); err != nil {
		return fmt.Errorf("answer to %s: %w", method, err)
	}
	return nil
}

func (c *Client) send(ctx context.Context, to task.NodeID, method Method, body []byte) ([]byte, error) {
	req := (&http.Request{
		Method: http.MethodPost, URL: &url.URL{Scheme: "http", Host: string(to), Path: pathCalls + string(method)},
		Header:        http.Header{"Content-Type": {contentTypeMessage}, "User-Agent": {""}},
		ContentLength: int64(len(body)),
	}).WithContext(ctx)
	sayGeneration(req.Header, c.Generation)
	if len(body) > 0 {
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Body, _ = req.GetBody()
	}
	peer, err := c.peer(to)
	if err != nil {
		return nil, c.unreachable(ctx, to, err)
	}
	resp, err := peer.web.RoundTrip(req)
	if err != nil {
		return nil, c.unreachable(ctx, to, err)
	}
	defer resp.Body.Close()
	if err := c.checkAnswer(to, method, resp.Header); err != nil {
		return nil, c.unreachable(ctx, to, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, ReadProblem(resp)
	}
	answer, err := readMessage(resp.Body, resp.ContentLength)
	if errors.Is(err, task.ErrTooLarge) {
		return nil, err
	}
	if err != nil {
		return nil, c.unreachable(ctx, to, err)
	}
	return answer, nil
}

func (c *Client) unreachable(ctx context.Context, to task.NodeID, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	u := &Unreachable{Node: to, Err: err}
	if c.Name != nil {
		u.Name = c.Name(to)
	}
	return u
}

// Unreachable is a call that got no answer.
type Unreachable struct {
	Node task.NodeID
	Name string // "" = not known
	Err  error
}

func (u *Unreachable) Error() string {
	name := u.Name
	if name == "" {
		name = string(u.Node)
	}
	return fmt.Sprintf("cannot reach %s (%s)", name, plainReason(u.Err))
}

// Unwrap makes it a task.ErrNoLeader: the call may be repeated.
func (u *Unreachable) Unwrap() []error { return []error{task.ErrNoLeader, u.Err} }

// DropPeer closes the connection to a node: it has another address or session now, and what is under way on the old one would
// only wait for its pings to fail. A call made afterwards goes to where the node is then.
func (c *Client) DropPeer(id task.NodeID) {
	c.mu.Lock()
	p := c.peers[id]
	delete(c.peers, id)
	c.mu.Unlock()
	if p != nil {
		p.drop()
	}
}

// Close closes all connections; calls under way and later ones fail.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	peers := c.peers
	c.peers = nil
	c.mu.Unlock()
	for _, p := range peers {
		p.drop()
	}
}

func (c *Client) peer(id task.NodeID) (*clientPeer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, net.ErrClosed
	}
	p := c.peers[id]
	if p == nil {
		p = newClientPeer(func(ctx context.Context) (net.Conn, error) { return c.Dial(ctx, id) })
		c.peers[id] = p
	}
	return p, nil
}
