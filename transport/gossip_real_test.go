package transport_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"

	"lanjobs/task"
	"lanjobs/transport"
	"lanjobs/transport/memnet"
)

// tcpStreams is the TCP side of gossip without TLS.
type tcpStreams struct{ net.Listener }

func (tcpStreams) DialAddr(ctx context.Context, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// The same over real sockets, once: both find each other, and a good-bye is heard.
func TestGossipOverRealSockets(t *testing.T) {
	type machine struct {
		id    task.NodeID
		addr  netip.AddrPort
		news  chan bool
		stop  func()
		books *transport.Book
	}
	start := func(id task.NodeID, seed string) *machine {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		udp, err := net.ListenPacket("udp", tcp.Addr().String())
		if err != nil {
			t.Skipf("the UDP port beside a free TCP port is taken: %v", err)
		}
		m := &machine{id: id, addr: netip.MustParseAddrPort(tcp.Addr().String()), news: make(chan bool, 10)}
		m.books = openBook(t, &memBook{})
		g := transport.NewGossip(transport.GossipConfig{
			Self: id, Cluster: "c", Key: gossipKey, Listen: m.addr, UDP: udp, Streams: tcpStreams{tcp}, Book: m.books,
			NextSession: func() (transport.Session, error) { return session(1), nil },
			About:       func() transport.About { return transport.About{Name: string(id)} },
			Seeds:       func() []string { return []string{seed} },
			Interfaces:  func() ([]transport.Interface, error) { return nil, nil }, // slow machines come to announce themselves
			Changed:     func(_ task.NodeID, alive bool) { m.news <- alive },
			Clock:       memnet.NewClock(), Log: discard,
		})
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := g.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		m.stop = func() { cancel(); wg.Wait() }
		return m
	}
	a := start("a", "")
	defer a.stop()
	b := start("b", a.addr.String())
	defer b.stop()
	if !<-a.news || !<-b.news {
		t.Fatal("the first news was a loss")
	}
	if got := a.books.Lookup("b"); len(got) != 1 || got[0] != b.addr.String() {
		t.Errorf("a finds b at %v, not %s", got, b.addr)
	}
}
