package runner

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"lanjobs/task"
)

// reception is the one HTTP server behind the doors of all attempts. Which attempt a connection belongs to is settled when it is
// accepted, by the door it came through, and never changes.
type reception struct {
	server *http.Server
	conns  chan net.Conn // from all doors; unbuffered, the server takes each at once
	done   chan struct{}
	once   sync.Once
	clock  task.Clock
}

func newReception(r *Runner) *reception {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &reception{
		conns: make(chan net.Conn), done: make(chan struct{}), clock: r.clock,
		server: &http.Server{
			Handler: taskRoutes(), ReadHeaderTimeout: time.Minute, ErrorLog: r.httpLog, Protocols: &protocols,
			ConnContext: func(ctx context.Context, c net.Conn) context.Context {
				return context.WithValue(ctx, endpointKey{}, c.(*taskConn).endpoint)
			},
			ConnState: func(c net.Conn, s http.ConnState) { c.(*taskConn).rests(s == http.StateIdle) },
		},
	}
}

// endpointKey finds the endpoint in a request's context.
type endpointKey struct{}

// Accept, Close and Addr make it the server's listener.
func (c *reception) Accept() (net.Conn, error) {
	select {
	case conn := <-c.conns:
		return conn, nil
	case <-c.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (c *reception) Close() error {
	c.once.Do(func() { close(c.done) })
	return nil
}

// Addr is of no use: each attempt has its own.
func (c *reception) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

// admit hands a new connection to the server.
func (c *reception) admit(conn net.Conn, e *endpoint) {
	tc := &taskConn{Conn: conn, endpoint: e}
	if !e.enter(tc) {
		_ = conn.Close()
		return
	}
	select {
	case c.conns <- tc:
	case <-c.done:
		_ = tc.Close()
	}
}

// pause keeps a door that lacks files from spinning.
func (c *reception) pause() {
	select {
	case <-c.clock.After(acceptPause):
	case <-c.done:
	}
}

// taskConn is a connection that knows its attempt, which ends it.
type taskConn struct {
	net.Conn
	endpoint *endpoint

	// Guarded by the endpoint's mu.
	number uint64 // the how manyth of its attempt
	idle   bool   // between two requests
}

// rests notes whether the connection is between two requests.
func (c *taskConn) rests(idle bool) {
	c.endpoint.mu.Lock()
	defer c.endpoint.mu.Unlock()
	c.idle = idle
}

// Close also tells the endpoint that it need not.
func (c *taskConn) Close() error {
	c.endpoint.exit(c)
	return c.Conn.Close()
}
