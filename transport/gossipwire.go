package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"lanjobs/task"
)

// StreamSource is the TCP side of gossip: authenticated streams over the cluster port. If it has a Close, Accept must return
// after it.
type StreamSource interface {
	Accept() (net.Conn, error)
	DialAddr(ctx context.Context, addr string) (net.Conn, error)
}

// gossipDialTimeout bounds a dial by gossip: memberlist would wait 10 s for each address of each sleeping machine.
const gossipDialTimeout = 2 * time.Second

// gossipSockets own the datagram socket and the stream source for the life of the node, and hand what arrives to the
// memberlist that runs at the moment: it is replaced with every change of address, the port stays open.
type gossipSockets struct {
	udp     net.PacketConn
	streams StreamSource
	clock   task.Clock
	wg      sync.WaitGroup
	done    chan struct{}
	beacon  func(packet []byte)                // takes beacons; it keeps nothing of packet
	asked   func(packet []byte, from net.Addr) // takes the questions of machines that look for a cluster; likewise

	mu  sync.Mutex
	now *gossipWire // nil = what arrives is dropped
}

func (s *gossipSockets) start(beacon func([]byte), asked func([]byte, net.Addr)) {
	s.done, s.beacon, s.asked = make(chan struct{}), beacon, asked
	s.wg.Go(s.readPackets)
	s.wg.Go(s.acceptStreams)
}

// stop closes both and waits for their readers.
func (s *gossipSockets) stop() {
	close(s.done)
	_ = s.udp.Close()
	if c, ok := s.streams.(io.Closer); ok {
		_ = c.Close()
	}
	s.wg.Wait()
}

func (s *gossipSockets) use(w *gossipWire) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = w
}

func (s *gossipSockets) current() *gossipWire {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// pause keeps a failing socket from spinning; false when it is closed for good.
func (s *gossipSockets) pause(err error) bool {
	if errors.Is(err, net.ErrClosed) {
		return false
	}
	select {
	case <-s.clock.After(50 * time.Millisecond):
		return true
	case <-s.done:
		return false
	}
}

func (s *gossipSockets) readPackets() {
	buf := make([]byte, 65536)
	for {
		n, from, err := s.udp.ReadFrom(buf)
		if err != nil {
			// Windows reports the ICMP answer to an earlier packet as an error of the next read.
			if !s.pause(err) {
				return
			}
			continue
		}
		if isBeacon(buf[:n]) {
			s.beacon(buf[:n])
			continue
		}
		if isQuestion(buf[:n]) {
			s.asked(buf[:n], from)
			continue
		}
		if w := s.current(); w != nil && n > 0 {
			// memberlist measures round trips with Go's clock, hence not the injected one.
			w.packet(&memberlist.Packet{Buf: append([]byte(nil), buf[:n]...), From: from, Timestamp: time.Now()})
		}
	}
}

func (s *gossipSockets) acceptStreams() {
	for {
		conn, err := s.streams.Accept()
		if err != nil {
			if !s.pause(err) {
				return
			}
			continue
		}
		if w := s.current(); w == nil || !w.stream(conn) {
			_ = conn.Close()
		}
	}
}

// gossipWire is the memberlist.Transport of one session.
type gossipWire struct {
	sockets   *gossipSockets
	advertise netip.AddrPort
	packets   chan *memberlist.Packet
	conns     chan net.Conn
	ctx       context.Context // ends with Shutdown
	end       context.CancelFunc

	mu   sync.Mutex
	open map[*gossipConn]struct{}
}

var _ memberlist.NodeAwareTransport = (*gossipWire)(nil)

func newGossipWire(s *gossipSockets, advertise netip.AddrPort) *gossipWire {
	ctx, end := context.WithCancel(context.Background())
	return &gossipWire{
		sockets: s, advertise: advertise, ctx: ctx, end: end, open: map[*gossipConn]struct{}{},
		packets: make(chan *memberlist.Packet, 64), conns: make(chan net.Conn),
	}
}

// packet hands a datagram over; a full queue drops it, as a full socket does.
func (w *gossipWire) packet(p *memberlist.Packet) {
	select {
	case w.packets <- p:
	default:
	}
}

// stream hands an accepted stream over; false after Shutdown.
func (w *gossipWire) stream(conn net.Conn) bool {
	c := w.track(conn)
	if c == nil {
		return false
	}
	select {
	case w.conns <- c:
		return true
	case <-w.ctx.Done():
		return false
	}
}

// FinalAdvertiseAddr gives the address that Gossip chose; memberlist's own search runs `ip route` and fails without a network.
func (w *gossipWire) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return w.advertise.Addr().AsSlice(), int(w.advertise.Port()), nil
}

// WriteTo sends a datagram.
func (w *gossipWire) WriteTo(b []byte, addr string) (time.Time, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return time.Time{}, fmt.Errorf("gossip to %q: %w", addr, err)
	}
	_, err = w.sockets.udp.WriteTo(b, net.UDPAddrFromAddrPort(to))
	return time.Now(), err
}

// WriteToAddress is WriteTo.
func (w *gossipWire) WriteToAddress(b []byte, addr memberlist.Address) (time.Time, error) {
	return w.WriteTo(b, addr.Addr)
}

// PacketCh gives the datagrams.
func (w *gossipWire) PacketCh() <-chan *memberlist.Packet { return w.packets }

// StreamCh gives the accepted streams.
func (w *gossipWire) StreamCh() <-chan net.Conn { return w.conns }

// DialTimeout opens a stream.
func (w *gossipWire) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := WithTimeout(w.ctx, w.sockets.clock, min(timeout, gossipDialTimeout))
	defer cancel()
	conn, err := w.sockets.streams.DialAddr(ctx, addr)
	if err != nil {
		return nil, err
	}
	if c := w.track(conn); c != nil {
		return c, nil
	}
	_ = conn.Close()
	return nil, net.ErrClosed
}

// DialAddressTimeout is DialTimeout.
func (w *gossipWire) DialAddressTimeout(addr memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return w.DialTimeout(addr.Addr, timeout)
}

// Shutdown ends the session's part of the sockets, which stay open, and all its streams.
func (w *gossipWire) Shutdown() error {
	w.end()
	w.mu.Lock()
	open := w.open
	w.open = nil
	w.mu.Unlock()
	for c := range open {
		_ = c.Conn.Close()
	}
	return nil
}

func (w *gossipWire) track(conn net.Conn) *gossipConn {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil {
		return nil
	}
	c := &gossipConn{Conn: conn, wire: w}
	w.open[c] = struct{}{}
	return c
}

// gossipConn is a stream that Shutdown closes, since memberlist leaves its streams to their time-outs.
type gossipConn struct {
	net.Conn
	wire *gossipWire
}

func (c *gossipConn) Close() error {
	c.wire.mu.Lock()
	delete(c.wire.open, c)
	c.wire.mu.Unlock()
	return c.Conn.Close()
}
