package transport

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// clientPeer is the connection to one node, and the pool of net/http around it, which dials again when it has broken. Each has
// its own, so that nothing new is sent on a connection that was given up: in a shared pool it would lie there for a moment yet.
type clientPeer struct {
	web *http.Transport

	mu      sync.Mutex
	conns   map[*pooledConn]struct{}
	dropped bool
}

func newClientPeer(dial func(context.Context) (net.Conn, error)) *clientPeer {
	p := &clientPeer{conns: map[*pooledConn]struct{}{}}
	p.web = &http.Transport{
		// The context is that of the pool's own dial, which outlives the call that asked for it.
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dial(ctx)
			if err != nil {
				return nil, err
			}
			return p.keep(conn)
		},
		Protocols:          &http.Protocols{},
		HTTP2:              http2Config(),
		MaxConnsPerHost:    1, // calls that start together share one dial
		IdleConnTimeout:    idleClient,
		DisableCompression: true,
	}
	p.web.Protocols.SetUnencryptedHTTP2(true) // the connection is encrypted and authenticated already
	return p
}

func (p *clientPeer) keep(conn net.Conn) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dropped {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	pooled := &pooledConn{conn, p}
	p.conns[pooled] = struct{}{}
	return pooled, nil
}

// drop closes the connection and keeps a dial that is under way from making another one.
func (p *clientPeer) drop() {
	p.mu.Lock()
	p.dropped = true
	conns := p.conns
	p.conns = nil
	p.mu.Unlock()
	for conn := range conns {
		_ = conn.Conn.Close()
	}
	p.web.CloseIdleConnections()
}

// pooledConn is an open connection of a clientPeer.
type pooledConn struct {
	net.Conn
	of *clientPeer
}

// Close also strikes it off the list.
func (c *pooledConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
