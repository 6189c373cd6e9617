package memnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"lanjobs/task"
	"lanjobs/transport"
)

var errClosed = errors.New("memnet: network closed")

// backlog is how many connections wait for Accept before a dial has to.
const backlog = 128

// Host is one machine of a Network.
type Host struct {
	net *Network
	id  task.NodeID

	// Guarded by the network's lock.
	addr      string // "" = none
	listeners map[string]*listener
	packets   *packetConn
	held      []packet // for a frozen host
	handler   transport.Handler
}

// Host gives the host of that name, made at its first mention.
func (n *Network) Host(id task.NodeID) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[id]
	if h == nil {
		h = &Host{net: n, id: id, listeners: map[string]*listener{}}
		n.hosts[id] = h
	}
	return h
}

// ID is the host's name.
func (h *Host) ID() task.NodeID { return h.id }

// Move gives the host another address ("ip:port"). Streams that were open die without a word, since packets to the old
// address no longer find it; whoever dials that waits for ever, or reaches the host that has it now.
func (h *Host) Move(addr string) {
	h.net.change(func() {
		if h.addr != "" {
			h.net.lose(h.id, true)
			if h.net.addrs[h.addr] == h.id {
				delete(h.net.addrs, h.addr)
			}
		}
		h.addr = addr
		if addr != "" {
			h.net.addrs[addr] = h.id
		}
	})
}

// Addr is the address now.
func (h *Host) Addr() string {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	return h.addr
}

// Listen accepts streams of one protocol (any word).
func (h *Host) Listen(proto string) net.Listener {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	if h.listeners[proto] != nil {
		panic(fmt.Sprintf("memnet: %s listens for %s twice", h.id, proto))
	}
	l := &listener{host: h, proto: proto, queue: make(chan *conn, backlog), done: make(chan struct{})}
	h.listeners[proto] = l
	return l
}

// Dial opens a stream to a host by name.
func (h *Host) Dial(ctx context.Context, to task.NodeID, proto string) (net.Conn, error) {
	return h.dial(ctx, proto, string(to), func() (task.NodeID, bool) { return to, h.net.hosts[to] != nil })
}

// DialAddr opens a stream to whatever host has the address.
func (h *Host) DialAddr(ctx context.Context, addr, proto string) (net.Conn, error) {
	return h.dial(ctx, proto, addr, func() (task.NodeID, bool) {
		to, ok := h.net.addrs[addr]
		return to, ok
	})
}

// dial waits for the way there and back, as a SYN that is sent again and again; find is called under the lock.
func (h *Host) dial(ctx context.Context, proto, target string, find func() (task.NodeID, bool)) (net.Conn, error) {
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "memnet", Addr: addr(target), Err: err}
	}
	for {
		var to task.NodeID
		reachable := func() bool {
			var ok bool
			to, ok = find()
			return ok && h.net.open(h.id, to) && h.net.open(to, h.id) && !h.net.frozen[h.id]
		}
		if err := h.net.await(ctx, reachable); err != nil {
			return fail(err)
		}
		if err := h.net.pause(ctx, link{h.id, to}, link{to, h.id}); err != nil {
			return fail(err)
		}
		c, again, err := h.connect(to, proto, reachable)
		if err != nil {
			return fail(err)
		}
		if !again {
			return c, nil
		}
	}
}

// connect makes the two ends if the way is still open after the round trip.
func (h *Host) connect(to task.NodeID, proto string, reachable func() bool) (_ net.Conn, again bool, _ error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	if h.net.closed {
		return nil, false, errClosed
	}
	if !reachable() {
		return nil, true, nil
	}
	peer := h.net.hosts[to]
	l := peer.listeners[proto]
	if l == nil {
		return nil, false, syscall.ECONNREFUSED
	}
	near, far := h.net.pair(h, peer)
	select {
	case l.queue <- far:
		return near, false, nil
	default:
		near.abort()
		far.abort()
		return nil, false, syscall.ECONNREFUSED
	}
}

// closeListeners is called under the lock.
func (h *Host) closeListeners() {
	for _, l := range h.listeners {
		l.close()
	}
	if h.packets != nil {
		h.packets.close()
	}
}

type listener struct {
	host  *Host
	proto string
	queue chan *conn
	done  chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.host.net.mu.Lock()
	defer l.host.net.mu.Unlock()
	l.close()
	return nil
}

// close is called under the lock. Connections that nobody accepted are reset.
func (l *listener) close() {
	if l.host.listeners[l.proto] != l {
		return
	}
	delete(l.host.listeners, l.proto)
	close(l.done)
	for {
		select {
		case c := <-l.queue:
			c.reset()
		default:
			return
		}
	}
}

func (l *listener) Addr() net.Addr { return addr(l.host.id) }

// addr is a net.Addr of a name.
type addr string

func (addr) Network() string  { return "memnet" }
func (a addr) String() string { return string(a) }
