package memnet

import (
	"net"
	"os"
	"sync"
	"time"
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
	target, known := n.addrs[to.String()]
	if !known || n.frozen[p.host.id] || !n.open(p.host.id, target) {
		return len(b), nil // lost, and UDP does not say so
	}
	from, err := net.ResolveUDPAddr("udp", p.host.addr)
	if err != nil {
		return 0, err
	}
	pk := packet{data: append([]byte(nil), b...), from: from}
	peer := n.hosts[target]
	if d := n.delay[link{p.host.id, target}]; d > 0 {
		time.AfterFunc(d, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			peer.deliver(pk)
		})
	} else {
		peer.deliver(pk)
	}
	return len(b), nil
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
