package transport

import (
	"net"

	"lanjobs/task"
)

// link is the TCP connection below a TLS one. Here connections are counted and cut: closing TLS would first say good-bye, and
// wait for a peer that is away.
type link struct {
	net.Conn
	trust *Trust
	ended func() // may be nil; set before it is used by two goroutines

	// Guarded by Trust.mu.
	peer   task.NodeID // "" = no node
	client ClientProof // the zero value = no client
	closed bool
}

func (t *Trust) newLink(conn net.Conn) *link { return &link{Conn: conn, trust: t} }

// Close also strikes it off the list of its node. It may be called often and from anywhere.
func (l *link) Close() error {
	l.trust.mu.Lock()
	first := !l.closed
	l.closed = true
	if of := l.trust.links[l.peer]; of != nil {
		delete(of, l)
		if len(of) == 0 {
			delete(l.trust.links, l.peer)
		}
	}
	delete(l.trust.clients, l)
	l.trust.mu.Unlock()
	if !first {
		return nil
	}
	if l.ended != nil {
		l.ended()
	}
	return l.Conn.Close()
}

func (l *link) isClosed() bool {
	l.trust.mu.Lock()
	defer l.trust.mu.Unlock()
	return l.closed
}

// nodeConn is an open connection whose other end proved to be a node of this cluster. The TLS connection stands behind an
// interface on purpose: net/http would take a *tls.Conn for HTTPS, but the protocols of nodes are chosen already.
type nodeConn struct {
	net.Conn
	peer task.NodeID
}

var _ Identified = nodeConn{}

// PeerID is the node at the other end.
func (c nodeConn) PeerID() task.NodeID { return c.peer }

// PeerID tells which node is at the other end of a connection; "" if nobody proved anything.
func PeerID(c net.Conn) task.NodeID {
	switch c := c.(type) {
	case Identified:
		return c.PeerID()
	case interface{ NetConn() net.Conn }: // a *tls.Conn of the web
		if l, ok := c.NetConn().(*link); ok {
			l.trust.mu.Lock()
			defer l.trust.mu.Unlock()
			return l.peer
		}
	}
	return ""
}
