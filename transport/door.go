package transport

import (
	"context"
	"net"
	"sync"
)

// door hands the connections of one protocol out as a net.Listener.
type door struct {
	mux   *Mux
	alpn  string
	queue chan net.Conn // unbuffered: what nobody takes within the handshake's time is closed
	once  sync.Once
	done  chan struct{}
}

// offer gives a connection to whoever accepts; false if nobody did.
func (d *door) offer(ctx context.Context, c net.Conn) bool {
	select {
	case d.queue <- c:
		return true
	case <-d.done:
	case <-ctx.Done():
	}
	return false
}

// Accept is net.Listener; net.ErrClosed after Close and when the mux has ended.
func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.queue:
		return c, nil
	case <-d.done:
		return nil, net.ErrClosed
	}
}

// Close stops serving the protocol. Accepted connections stay open.
func (d *door) Close() error {
	d.mux.mu.Lock()
	if d.mux.doors[d.alpn] == d {
		delete(d.mux.doors, d.alpn)
	}
	d.mux.mu.Unlock()
	d.shut()
	return nil
}

func (d *door) shut() { d.once.Do(func() { close(d.done) }) }

// Addr is that of the port.
func (d *door) Addr() net.Addr { return d.mux.Listener.Addr() }
