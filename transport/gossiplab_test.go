package transport_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
	"lanjobs/transport/memnet"
)

// memBook is a BookStore in memory that counts what it is asked to save.
type memBook struct {
	mu    sync.Mutex
	peers map[task.NodeID]transport.Peer
	saves int
	err   error
}

func (m *memBook) Load() (map[task.NodeID]transport.Peer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.peers), m.err
}

func (m *memBook) Save(id task.NodeID, p transport.Peer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.peers == nil {
		m.peers = map[task.NodeID]transport.Peer{}
	}
	m.peers[id] = p
	m.saves++
	return m.err
}

func (m *memBook) Delete(id task.NodeID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.peers, id)
	return m.err
}

// hostStreams is the TCP side of gossip on a memnet host.
type hostStreams struct {
	net.Listener
	host *memnet.Host
}

func (s hostStreams) DialAddr(ctx context.Context, addr string) (net.Conn, error) {
	return s.host.DialAddr(ctx, addr, "gossip")
}

var discard = slog.New(slog.DiscardHandler)

// gossiper is one machine of a gossip test.
type gossiper struct {
	*transport.Gossip
	id      task.NodeID
	host    *memnet.Host
	book    *transport.Book
	clock   *memnet.Clock
	table   atomic.Pointer[[]transport.Interface] // what the machine's interfaces are now
	started atomic.Uint64                         // sessions so far
	sticky  bool                                  // control: the name carries no session
	stop    func()
}

// setAddr plugs the machine in elsewhere.
func (g *gossiper) setAddr(ip string) {
	var table []transport.Interface
	addr := ""
	if ip != "" {
		table = []transport.Interface{{Name: "eth0", Up: true, Addrs: []netip.Prefix{netip.MustParsePrefix(ip + "/24")}}}
		addr = ip + ":7420"
	}
	g.table.Store(&table)
	g.host.Move(addr)
}

// withoutBroadcast makes the machine's network one of a single address, in which beacons go nowhere.
func (g *gossiper) withoutBroadcast() {
	table := *g.table.Load()
	ip := table[0].Addrs[0].Addr()
	g.table.Store(&[]transport.Interface{{Name: "eth0", Up: true, Addrs: []netip.Prefix{netip.PrefixFrom(ip, ip.BitLen())}}})
}

var gossipKey = []byte("0123456789abcdef0123456789abcdef")

// newGossiper makes a machine at 10.0.0.<k>; start sets it going.
func newGossiper(t *testing.T, n *memnet.Network, k int, cluster string, seeds ...string) *gossiper {
	t.Helper()
	id := task.NodeID(fmt.Sprintf("node-%d", k))
	clock := memnet.NewClock()
	book, err := transport.OpenBook(&memBook{}, clock, discard)
	if err != nil {
		t.Fatal(err)
	}
	g := &gossiper{id: id, host: n.Host(id), book: book, clock: clock}
	g.setAddr(fmt.Sprintf("10.0.0.%d", k))
	g.Gossip = transport.NewGossip(transport.GossipConfig{
		Self: id, Cluster: cluster, Key: gossipKey,
		NextSession: func() (transport.Session, error) {
			if g.sticky {
				return transport.Session{Counter: 1}, nil
			}
			return transport.Session{Counter: g.started.Add(1), Random: uint32(k)}, nil
		},
		About:      func() transport.About { return transport.About{Name: string(id), Version: "v1", Level: 3, Voter: true} },
		Listen:     netip.MustParseAddrPort("0.0.0.0:7420"),
		UDP:        g.host.ListenPacket(),
		Streams:    hostStreams{g.host.Listen("gossip"), g.host},
		Book:       book,
		Seeds:      func() []string { return seeds },
		Interfaces: func() ([]transport.Interface, error) { return *g.table.Load(), nil },
		Clock:      clock, Log: discard,
	})
	return g
}

func (g *gossiper) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Run(ctx)
	}()
	g.stop = func() {
		cancel()
		<-done
	}
}

// gossipers starts machines 1 … k, which find each other through the first one's address.
func gossipers(t *testing.T, n *memnet.Network, k int, prepare func(*gossiper)) []*gossiper {
	t.Helper()
	var all []*gossiper
	for i := 1; i <= k; i++ {
		g := newGossiper(t, n, i, "cluster-x", "10.0.0.1:7420")
		if prepare != nil {
			prepare(g)
		}
		g.start()
		all = append(all, g)
	}
	return all
}

func stopAll(all []*gossiper) {
	var wg sync.WaitGroup
	for _, g := range all {
		wg.Go(g.stop)
	}
	wg.Wait()
	time.Sleep(30 * time.Second) // memberlist's probes under way end by their own timers
}

// timeUntil lets virtual time run until ok, and gives how long that took; limit if it never was.
func timeUntil(limit time.Duration, ok func() bool) time.Duration {
	start := time.Now()
	for time.Since(start) < limit && !ok() {
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(start)
}

// complete tells whether everybody sees everybody.
func complete(all []*gossiper) func() bool {
	return func() bool {
		for _, a := range all {
			for _, b := range all {
				if a != b && !a.Alive(b.id) {
					return false
				}
			}
		}
		return true
	}
}
