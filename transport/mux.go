package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"lanjobs/task"
)

// MuxLimits bound what strangers and members can occupy (C47). A connection over a limit displaces the oldest of its kind.
type MuxLimits struct {
	Handshakes, HandshakesPerAddr int // connections that have proven nothing yet
	Guests, GuestsPerAddr         int // of the web, without a certificate
	Members, PerMember            int
}

// DefaultMuxLimits stay far below the number of files that a process may have open.
func DefaultMuxLimits() MuxLimits {
	return MuxLimits{Handshakes: 256, HandshakesPerAddr: 64, Guests: 128, GuestsPerAddr: 32, Members: 1024, PerMember: 128}
}

// MuxConfig is what a Mux is told.
type MuxConfig struct {
	Listener net.Listener // TCP; closed by Run
	Trust    *Trust
	Limits   MuxLimits
	Clock    task.Clock
	Log      *slog.Logger
}

// Mux is the node's one TCP port: TLS 1.3, and ALPN decides which part of the node gets the connection. What does not finish
// its handshake in HandshakeTimeout, speaks no TLS or proves nothing is closed without a word.
type Mux struct {
	MuxConfig
	tls                        *tls.Config
	strangers, guests, members *crowd

	mu    sync.Mutex
	doors map[string]*door
}

// NewMux makes a mux that accepts nothing before Run.
func NewMux(cfg MuxConfig) *Mux {
	l := cfg.Limits
	return &Mux{
		MuxConfig: cfg, tls: cfg.Trust.serverConfig(), doors: map[string]*door{},
		strangers: newCrowd(l.Handshakes, l.HandshakesPerAddr),
		guests:    newCrowd(l.Guests, l.GuestsPerAddr),
		members:   newCrowd(l.Members, l.PerMember),
	}
}

// Open serves a protocol of nodes (ALPN…) from now on: its connections come out of Accept and are Identified. Until then,
// and after Close, dialling nodes hear ErrNotRunning.
func (m *Mux) Open(alpn string) net.Listener { return m.open(alpn) }

// openWeb serves HTTP: its connections are *tls.Conn, PeerID tells who has proven to be a node.
func (m *Mux) openWeb() net.Listener { return m.open(alpnHTTP2) }

func (m *Mux) open(alpn string) *door {
	d := &door{mux: m, alpn: alpn, queue: make(chan net.Conn), done: make(chan struct{})}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doors[alpn] = d
	return d
}

// door finds who serves a protocol; nil = nobody. web tells that its clients may be people.
func (m *Mux) door(alpn string) (d *door, web bool) {
	web = alpn == alpnHTTP1 || alpn == ""
	if web {
		alpn = alpnHTTP2
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.doors[alpn], web || alpn == alpnHTTP2
}

// acceptPause keeps a failing Accept (no file descriptors left) from spinning.
const acceptPause = 50 * time.Millisecond

// Run accepts until ctx ends, then closes the port, everything that came in through it, and all doors.
func (m *Mux) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = m.Listener.Close() })
	var handshakes sync.WaitGroup
	defer func() {
		cancel()
		stop()
		_ = m.Listener.Close()
		handshakes.Wait()
		for _, c := range []*crowd{m.strangers, m.guests, m.members} {
			c.closeAll()
		}
		m.closeDoors()
	}()
	for {
		conn, err := m.Listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("cluster port: %w", err)
		case err != nil:
			m.Log.Warn("connection not accepted", "error", err)
			select {
			case <-m.Clock.After(acceptPause):
			case <-ctx.Done():
			}
			continue
		}
		l := m.Trust.newLink(conn)
		l.ended = func() {
			m.strangers.leave(l)
			m.guests.leave(l)
			m.members.leave(l)
		}
		source := hostOf(conn.RemoteAddr())
		m.strangers.enter(l, source)
		handshakes.Go(func() { m.receive(ctx, l, source) })
	}
}

func (m *Mux) closeDoors() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for alpn, d := range m.doors {
		delete(m.doors, alpn)
		d.shut()
	}
}

// receive takes one connection from its first byte to its door.
func (m *Mux) receive(ctx context.Context, l *link, source string) {
	ctx, cancel := WithTimeout(ctx, m.Clock, HandshakeTimeout)
	defer cancel()
	free := context.AfterFunc(ctx, func() { _ = l.Close() })
	d, conn, err := m.greet(tls.Server(l, m.tls), l, source)
	if err != nil {
		_ = l.Close()
		m.Log.Debug("connection refused", "remote", source, "error", err)
		return
	}
	if !free() || !d.offer(ctx, conn) {
		_ = l.Close()
	}
}

// greet finishes the handshake and lets the other side in, or says why not: to nodes only, the web gets no answer.
func (m *Mux) greet(conn *tls.Conn, l *link, source string) (*door, net.Conn, error) {
	if err := conn.Handshake(); err != nil {
		return nil, nil, err
	}
	state := conn.ConnectionState()
	d, web := m.door(state.NegotiatedProtocol)
	id, err := m.vet(l, state.PeerCertificates, web, source)
	if err == nil && d == nil {
		err = ErrNotRunning
	}
	if web {
		return d, conn, err
	}
	// Nobody sends before the verdict, so that closing afterwards loses nothing of it.
	if failed := writeVerdict(conn, err); err == nil {
		err = failed
	}
	return d, nodeConn{conn, id}, err
}

// vet decides about the other side: a node of the cluster, or where people are let in ("") a client or a guest.
func (m *Mux) vet(l *link, chain []*x509.Certificate, guests bool, source string) (task.NodeID, error) {
	if guests && len(chain) == 0 {
		m.move(l, m.guests, source)
		return "", nil
	}
	if guests && isClient(chain) {
		proof, err := m.Trust.now.Load().verifyClient(chain)
		if err != nil {
			return "", err
		}
		if err := m.Trust.admitClient(l, proof); err != nil {
			return "", err
		}
		m.move(l, m.members, clientPath+proof.ID)
		return "", nil
	}
	id, err := m.Trust.now.Load().verify(chain)
	if err != nil {
		return "", err
	}
	if err := m.Trust.admit(l, id); err != nil {
		return "", err
	}
	m.move(l, m.members, string(id))
	return id, nil
}

// move counts a connection elsewhere, unless it ended meanwhile.
func (m *Mux) move(l *link, to *crowd, source string) {
	m.strangers.leave(l)
	to.enter(l, source)
	if l.isClosed() {
		to.leave(l)
	}
}

// hostOf is an address without its port.
func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}
