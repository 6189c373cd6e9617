package transport

import (
	"cmp"
	"context"
	"crypto/rand"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"lanjobs/task"
)

// How long Discover listens, and when it asks: packets get lost, more so on Wi-Fi.
const discoverFor = 1500 * time.Millisecond

func discoverAt() []time.Duration {
	return []time.Duration{0, 300 * time.Millisecond, 800 * time.Millisecond}
}

// DiscoverConfig is what Discover is told.
type DiscoverConfig struct {
	Interfaces func() ([]Interface, error) // SystemInterfaces
	Ports      []uint16                    // where members may listen
	// Listen opens a socket to ask from; nil = the system's.
	Listen func(ctx context.Context, from netip.Addr) (net.PacketConn, error)
	Clock  task.Clock
}

// Found is a member that answered. What it says of itself is not proven.
type Found struct {
	Announcement
	Addr string // ip:port
}

// Discover asks on the local networks which clusters there are: by broadcast and to the multicast groups of all machines, on
// every interface that is no tunnel, container bridge or loopback. The answers are sorted by cluster and node, one of each
// node. It takes a second and a half, and finds only members that listen on all addresses of their machine.
func Discover(ctx context.Context, cfg DiscoverConfig) ([]Found, error) {
	table, err := cfg.Interfaces()
	if err != nil {
		return nil, err
	}
	if cfg.Listen == nil {
		cfg.Listen = listenToAsk
	}
	whole := ctx
	ctx, cancel := WithTimeout(whole, cfg.Clock, discoverFor)
	defer cancel()
	l := &lookout{found: map[string]Found{}}
	_, _ = rand.Read(l.nonce[:]) // never fails
	var readers sync.WaitGroup
	for _, a := range askers(table) {
		conn, err := cfg.Listen(ctx, a.from)
		if err != nil {
			continue // an address that went away, or a system without IPv6
		}
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		l.sockets = append(l.sockets, socketTo{conn, a.to})
		readers.Go(func() { l.read(conn) })
	}
	l.ask(ctx, cfg)
	<-ctx.Done()
	for _, s := range l.sockets {
		_ = s.conn.Close()
	}
	readers.Wait()
	if whole.Err() != nil {
		return nil, context.Cause(whole)
	}
	return l.sorted(), nil
}

func listenToAsk(ctx context.Context, from netip.Addr) (net.PacketConn, error) {
	conf := net.ListenConfig{Control: allowBroadcast}
	network := "udp6"
	if from.Is4() {
		network = "udp4"
	}
	return conf.ListenPacket(ctx, network, netip.AddrPortFrom(from, 0).String())
}

// asker is one socket to ask from: bound to an address, so that the question goes out by that interface.
type asker struct {
	from netip.Addr
	to   []netip.Addr
}

// allHosts is the group of all machines of a network; each is in it by itself.
var allHosts = netip.AddrFrom4([4]byte{224, 0, 0, 1})

// askers gives where to ask from and to: the broadcast address of every IPv4 network and the group of all hosts there, and
// all nodes of the link (ff02::1) on every interface with IPv6. It is a pure function.
func askers(table []Interface) (out []asker) {
	six := asker{from: netip.IPv6Unspecified()}
	for _, i := range table {
		if !i.Up || i.Loopback || i.PointToPoint || named(i.Name, bridges) || named(i.Name, tunnels) {
			continue
		}
		linked := false
		for _, p := range i.Addrs {
			switch a := p.Addr(); {
			case len(out) >= maxBeaconTargets:
			case a.Is4() && p.Bits() < 31:
				out = append(out, asker{a, []netip.Addr{broadcastOf(p), allHosts}})
			case a.Is6() && !linked:
				linked = true
				six.to = append(six.to, netip.IPv6LinkLocalAllNodes().WithZone(i.Name))
			}
		}
	}
	if len(six.to) > 0 {
		out = append(out, six)
	}
	return out
}

// lookout is one search.
type lookout struct {
	nonce   [lookoutNonce]byte
	sockets []socketTo

	mu    sync.Mutex
	found map[string]Found // by authority and node
}

type socketTo struct {
	conn net.PacketConn
	to   []netip.Addr
}

// ask sends the question now and then.
func (l *lookout) ask(ctx context.Context, cfg DiscoverConfig) {
	packet := newQuestion(l.nonce)
	begun := cfg.Clock.Awake()
	for _, at := range discoverAt() {
		if wait := at - (cfg.Clock.Awake() - begun); wait > 0 {
			timer := cfg.Clock.NewTimer(wait)
			select {
			case <-timer.C():
			case <-ctx.Done():
			}
			timer.Stop()
		}
		for _, s := range l.sockets {
			for _, to := range s.to {
				for _, port := range cfg.Ports {
					_, _ = s.conn.WriteTo(packet, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, port))) // a network that is down has nobody in it
				}
			}
		}
	}
}

// read takes answers until the socket is closed.
func (l *lookout) read(conn net.PacketConn) {
	buf := make([]byte, 2048)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		at, err := netip.ParseAddrPort(from.String())
		if err != nil {
			continue
		}
		if a, err := readFound(buf[:n], l.nonce); err == nil {
			l.note(Found{a, netip.AddrPortFrom(at.Addr().Unmap(), a.Port).String()})
		}
	}
}

// maxFound bounds what a search keeps, whoever answers.
const maxFound = 256

func (l *lookout) note(f Found) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := f.CA + "\x00" + f.Node
	old, known := l.found[key]
	// An address without a zone is one that a person can type and another machine can use.
	if known && (!strings.Contains(old.Addr, "[") || strings.Contains(f.Addr, "[")) || !known && len(l.found) >= maxFound {
		return
	}
	l.found[key] = f
}

func (l *lookout) sorted() []Found {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Found
	for _, f := range l.found {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.CA, b.CA), cmp.Compare(a.Node, b.Node))
	})
	return out
}
