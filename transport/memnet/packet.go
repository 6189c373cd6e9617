package memnet

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"lanjobs/task"
)

// packetBuffer is how many datagrams a socket, or the kernel of a frozen process, keeps; the rest is dropped.
const packetBuffer = 1024

type packet struct {
	data []byte
	from net.Addr
}

// packetConn is a host's datagram socket. What is sent to its address while it is open arrives unless a fault says otherwise.
type packetConn struct {
	host  *Host
	queue chan packet
	once  sync.Once
	done  chan struct{}
}

// ListenPacket opens the host's one datagram socket.
func (h *Host) ListenPacket() net.PacketConn {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	if h.packets != nil {
		panic("memnet: second datagram socket of " + string(h.id))
	}
	h.packets = &packetConn{host: h, queue: make(chan packet, packetBuffer), done: make(chan struct{})}
	return h.packets
}

func (p *packetConn) ReadFrom(b []byte) (int, net.Addr, error) {
	select {
	case pk := <-p.queue:
		return copy(b, pk.data), pk.from, nil
	case <-p.done:
		return 0, nil, net.ErrClosed
	}
}

func (p *packetConn) WriteTo(b []byte, to net.Addr) (int, error) {
	select {
	case <-p.done:
		return 0, net.ErrClosed
	default:
	}
	n := p.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.host.addr == "" || n.frozen[p.host.id] {
		return len(b), nil // lost, and UDP does not say so
	}
	from, err := net.ResolveUDPAddr("udp", p.host.addr)
	if err != nil {
		return 0, err
	}
	pk := packet{data: append([]byte(nil), b...), from: from}
	for _, target := range n.receivers(to.String()) {
		if n.open(p.host.id, target) {
			n.send(pk, link{p.host.id, target})
		}
	}
	return len(b), nil
}

// receivers are the hosts that a datagram is for: of a broadcast address (x.x.x.255) all in its /24 with the same port, the
// sender included; called under the lock.
func (n *Network) receivers(to string) (ids []task.NodeID) {
	target, err := netip.ParseAddrPort(to)
	if err != nil || !target.Addr().Is4() || target.Addr().As4()[3] != 255 {
		if id, known := n.addrs[to]; known {
			ids = append(ids, id)
		}
		return ids
	}
	lan := netip.PrefixFrom(target.Addr(), 24).Masked()
	for text, id := range n.addrs {
		if a, err := netip.ParseAddrPort(text); err == nil && lan.Contains(a.Addr()) && a.Port() == target.Port() {
			ids = append(ids, id)
		}
	}
	return ids
}

// send delivers a datagram after the delay of its way; called under the lock.
func (n *Network) send(pk packet, way link) {
	peer, d := n.hosts[way.to], n.delay[way]
	if d == 0 {
		peer.deliver(pk)
		return
	}
	time.AfterFunc(d, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		peer.deliver(pk)
	})
}

// deliver hands a datagram to the socket, or keeps it while the process is frozen; called under the lock.
func (h *Host) deliver(pk packet) {
	if h.net.frozen[h.id] {
		if len(h.held) < packetBuffer {
			h.held = append(h.held, pk)
		}
		return
	}
	if h.packets == nil {
		return
	}
	select {
	case h.packets.queue <- pk:
	default:
	}
}

// releasePackets delivers what a frozen host kept; called under the lock at every change.
func (h *Host) releasePackets() {
	if h.net.frozen[h.id] {
		return
	}
	held := h.held
	h.held = nil
	for _, pk := range held {
		h.deliver(pk)
	}
}

func (p *packetConn) Close() error {
	p.host.net.mu.Lock()
	defer p.host.net.mu.Unlock()
	p.close()
	return nil
}

// close is called under the lock.
func (p *packetConn) close() {
	p.once.Do(func() { close(p.done) })
	if p.host.packets == p {
		p.host.packets = nil
	}
}

func (p *packetConn) LocalAddr() net.Addr { return addr(p.host.Addr()) }

func (p *packetConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (p *packetConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (p *packetConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
