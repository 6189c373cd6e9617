package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"lanjobs/task"
)

const (
	// DialTimeout bounds one attempt at one address, handshake and all.
	DialTimeout = 2 * time.Second
	// dialStagger is the lead that an address has over the next one.
	dialStagger = 250 * time.Millisecond
)

// Resolver tells where a node may be now, best address first. A wrong answer is harmless: whoever answers there must prove to
// be the node that was called.
type Resolver interface {
	Lookup(id task.NodeID) []string
}

var _ Resolver = (*Book)(nil)

// NetDial opens a TCP connection to ip:port or host:port.
type NetDial func(ctx context.Context, addr string) (net.Conn, error)

// DialTCP is NetDial of the system.
func DialTCP(ctx context.Context, addr string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
}

// DialerConfig is what a Dialer is told.
type DialerConfig struct {
	Trust *Trust
	Book  Resolver
	Net   NetDial
	// Refused hears of refusals, by this side (another node answers there) or by the other (this node was removed). May be
	// nil; must return soon.
	Refused func(*Refusal)
	Clock   task.Clock
}

// Dialer opens connections to nodes, wherever they are at the moment (R2).
type Dialer struct{ DialerConfig }

// NewDialer makes a dialer.
func NewDialer(cfg DialerConfig) *Dialer { return &Dialer{cfg} }

// To is Dial for one protocol (ALPN…), as RaftLayer and Client want it.
func (d *Dialer) To(alpn string) func(ctx context.Context, id task.NodeID) (net.Conn, error) {
	return func(ctx context.Context, id task.NodeID) (net.Conn, error) { return d.Dial(ctx, id, alpn) }
}

// Dial opens a connection to a node. All addresses of the book are tried, each a little after the one before; the first at
// which that very node lets this one in wins. The error is a *DialError; errors.Is finds ErrWrongNode, ErrWrongCluster,
// ErrRemoved, ErrNotRunning and what the network said.
func (d *Dialer) Dial(ctx context.Context, id task.NodeID, alpn string) (net.Conn, error) {
	if d.Trust.removed(id) {
		return nil, &DialError{Node: id, Tried: []AddrError{{Err: d.refused(id, ErrRemoved)}}}
	}
	conn, _, tried, err := race(ctx, d.Clock, d.Book.Lookup(id), func(ctx context.Context, addr string) (net.Conn, error) {
		return d.dialOne(ctx, addr, id, alpn)
	})
	if err == nil && conn == nil {
		err = &DialError{Node: id, Tried: tried}
	}
	return conn, err
}

// DialAddr opens a connection to whichever node of this cluster answers at an address: gossip finds nodes that way.
func (d *Dialer) DialAddr(ctx context.Context, addr, alpn string) (net.Conn, error) {
	return d.dialOne(ctx, addr, "", alpn)
}

// dialOne tries one address; want "" takes any node.
func (d *Dialer) dialOne(ctx context.Context, addr string, want task.NodeID, alpn string) (net.Conn, error) {
	ctx, cancel := WithTimeout(ctx, d.Clock, DialTimeout)
	defer cancel()
	conn, err := d.Net(ctx, addr)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	l := d.Trust.newLink(conn)
	free := context.AfterFunc(ctx, func() { _ = l.Close() })
	out, err := d.introduce(l, want, alpn)
	switch {
	case !free():
		err = context.Cause(ctx)
	case err == nil:
		return out, nil
	}
	_ = l.Close()
	if r, ok := errors.AsType[*Refusal](err); ok && d.Refused != nil {
		d.Refused(r)
	}
	return nil, err
}

// introduce proves who this node is, has the other side do the same, and hears its verdict.
func (d *Dialer) introduce(l *link, want task.NodeID, alpn string) (net.Conn, error) {
	var found task.NodeID
	conn := tls.Client(l, d.Trust.clientConfig(alpn, want, &found))
	if err := conn.Handshake(); err != nil {
		for _, known := range refusals {
			if errors.Is(err, known.err) {
				return nil, &Refusal{By: d.Trust.Self(), To: found, Reason: known.err, Detail: err.Error()}
			}
		}
		return nil, err
	}
	if err := d.Trust.admit(l, found); err != nil {
		return nil, d.refused(found, err)
	}
	if err := readVerdict(conn, found, d.Trust.Self()); err != nil {
		return nil, err
	}
	return nodeConn{conn, found}, nil
}

func (d *Dialer) refused(id task.NodeID, reason error) *Refusal {
	return &Refusal{By: d.Trust.Self(), To: id, Reason: reason}
}

// DialError tells why a node could not be reached, address by address.
type DialError struct {
	Node  task.NodeID
	Tried []AddrError // empty: no address is known
}

// AddrError is one failed attempt. Addr is "" if it was not the address that failed.
type AddrError struct {
	Addr string
	Err  error
}

func (e *DialError) Error() string {
	if len(e.Tried) == 0 {
		return "no address of it is known"
	}
	var parts []string
	for _, t := range e.Tried {
		text := plainReason(t.Err)
		if t.Addr != "" {
			text = t.Addr + ": " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// Unwrap gives all reasons.
func (e *DialError) Unwrap() []error {
	var errs []error
	for _, t := range e.Tried {
		errs = append(errs, t.Err)
	}
	return errs
}

// GossipStreams is the TCP side of gossip over the cluster port.
type GossipStreams struct {
	net.Listener
	dialer *Dialer
}

var _ StreamSource = GossipStreams{}

// NewGossipStreams opens gossip's door. Close shuts it.
func NewGossipStreams(m *Mux, d *Dialer) GossipStreams { return GossipStreams{m.Open(ALPNGossip), d} }

// DialAddr opens a stream to whichever member answers there.
func (s GossipStreams) DialAddr(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := s.dialer.DialAddr(ctx, addr, ALPNGossip)
	if err != nil {
		return nil, fmt.Errorf("gossip with %s: %w", addr, err)
	}
	return conn, nil
}
