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
	"strings"
	"sync"

	"lanjobs/task"
)

// ClientConfig is what a Client is told.
type ClientConfig struct {
	Self  task.NodeID
	Local Handler // answers calls of this node to itself
	// Dial opens a connection to a node that has proven who it is, for calls: Dialer.To(ALPNRPC).
	Dial func(ctx context.Context, id task.NodeID) (net.Conn, error)
	// Name gives a node's name for messages, "" if it is not known. May be nil.
	Name func(id task.NodeID) string
}

// Client sends calls to nodes, over one HTTP/2 connection to each. A call takes as long as its context allows, since a worker's
// question for work is parked at the leader; that the peer is still there is found out by pings of the connection.
type Client struct {
	ClientConfig
	web *http.Transport

	mu     sync.Mutex
	conns  map[task.NodeID]map[*pooledConn]struct{}
	closed bool
}

var _ Caller = (*Client)(nil)

// NewClient makes a client without connections.
func NewClient(cfg ClientConfig) *Client {
	c := &Client{ClientConfig: cfg, conns: map[task.NodeID]map[*pooledConn]struct{}{}}
	c.web = &http.Transport{
		DialContext:        c.dial,
		Protocols:          &http.Protocols{},
		HTTP2:              http2Config(),
		MaxConnsPerHost:    1, // calls that start together share one dial
		IdleConnTimeout:    idleConn,
		DisableCompression: true,
	}
	c.web.Protocols.SetUnencryptedHTTP2(true) // the connection is encrypted and authenticated already
	return c
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
	if len(body) > 0 {
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Body, _ = req.GetBody()
	}
	resp, err := c.web.RoundTrip(req)
	if err != nil {
		return nil, c.unreachable(ctx, to, err)
	}
	defer resp.Body.Close()
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
// only wait for its pings to fail.
func (c *Client) DropPeer(id task.NodeID) {
	c.mu.Lock()
	drop := make([]*pooledConn, 0, len(c.conns[id]))
	for conn := range c.conns[id] {
		drop = append(drop, conn)
	}
	c.mu.Unlock()
	for _, conn := range drop {
		_ = conn.Close()
	}
}

// Close closes all connections; calls under way and later ones fail.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	var ids []task.NodeID
	for id := range c.conns {
		ids = append(ids, id)
	}
	c.mu.Unlock()
	for _, id := range ids {
		c.DropPeer(id)
	}
	c.web.CloseIdleConnections()
}

// dial is http.Transport's. The context is that of the transport's own dial, which outlives the call that asked for it.
func (c *Client) dial(ctx context.Context, _, hostPort string) (net.Conn, error) {
	host, _, _ := strings.Cut(hostPort, ":")
	id := task.NodeID(host)
	conn, err := c.Dial(ctx, id)
	if err != nil {
		return nil, err
	}
	p := &pooledConn{Conn: conn, client: c, peer: id}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	if c.conns[id] == nil {
		c.conns[id] = map[*pooledConn]struct{}{}
	}
	c.conns[id][p] = struct{}{}
	return p, nil
}

// pooledConn is a connection in the transport's pool that can be found by its node.
type pooledConn struct {
	net.Conn
	client *Client
	peer   task.NodeID
}

func (p *pooledConn) Close() error {
	p.client.mu.Lock()
	delete(p.client.conns[p.peer], p)
	if len(p.client.conns[p.peer]) == 0 {
		delete(p.client.conns, p.peer)
	}
	p.client.mu.Unlock()
	return p.Conn.Close()
}
