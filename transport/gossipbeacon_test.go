package transport_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/task"
	"lanjobs/transport/memnet"
)

// eavesdropper keeps the beacons that a machine sends.
type eavesdropper struct {
	net.PacketConn
	mu   sync.Mutex
	sent [][]byte
}

func (e *eavesdropper) WriteTo(b []byte, to net.Addr) (int, error) {
	if strings.Contains(to.String(), ".255:") {
		e.mu.Lock()
		e.sent = append(e.sent, append([]byte(nil), b...))
		e.mu.Unlock()
	}
	return e.PacketConn.WriteTo(b, to)
}

func (e *eavesdropper) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sent)
}

// listenIn lets a machine's beacons be counted.
func listenIn(g *gossiper) *eavesdropper {
	e := &eavesdropper{PacketConn: g.UDP}
	g.UDP = e
	g.Replace()
	return e
}

// Machines that all get new addresses at once know only places where nobody is. The control run has networks of one address,
// in which there is no broadcast.
func TestGossipFindsMachinesThatAllMoved(t *testing.T) {
	move := func(t *testing.T, broadcast bool) time.Duration {
		var took time.Duration
		synctest.Test(t, func(t *testing.T) {
			n := memnet.New()
			defer n.Close()
			all := gossipers(t, n, 4, nil)
			defer stopAll(all)
			timeUntil(time.Minute, complete(all))
			for k, g := range all {
				g.setAddr(fmt.Sprintf("10.0.9.%d", k+21))
				if !broadcast {
					g.withoutBroadcast()
				}
			}
			time.Sleep(30 * time.Second) // those of before are dead by then
			took = timeUntil(2*time.Minute, complete(all))
		})
		return took
	}
	if d := move(t, true); d > time.Second {
		t.Errorf("found each other 30 s and %s after the move", d)
	}
	if d := move(t, false); d < 2*time.Minute {
		t.Errorf("control: found each other %s after the move without beacons", d)
	}
}

func TestACompleteClusterSendsNoBeacons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		var taps []*eavesdropper
		all := gossipers(t, n, 3, func(g *gossiper) { taps = append(taps, listenIn(g)) })
		defer stopAll(all)
		timeUntil(time.Minute, complete(all))
		sum := func() (sum int) {
			for _, e := range taps {
				sum += e.count()
			}
			return sum
		}
		before := sum()
		time.Sleep(30 * time.Minute)
		if got := sum() - before; got != 0 {
			t.Errorf("%d beacons of a complete cluster", got)
		}
		// One is away for a night: the others announce themselves rarely.
		n.BlackHole("node-3")
		before = taps[0].count()
		time.Sleep(time.Hour)
		if got := taps[0].count() - before; got < 10 || got > 25 {
			t.Errorf("%d beacons in an hour with one machine away", got)
		}
		// Who is alone asks more often, but no more than twice a minute.
		before = taps[2].count()
		time.Sleep(time.Hour)
		if got := taps[2].count() - before; got < 90 || got > 160 {
			t.Errorf("%d beacons in an hour alone", got)
		}
		n.Restore("node-3")
	})
}

// countingStreams counts the calls of gossip.
type countingStreams struct {
	hostStreams
	dials *atomic.Int64
}

func (s countingStreams) DialAddr(ctx context.Context, addr string) (net.Conn, error) {
	s.dials.Add(1)
	return s.hostStreams.DialAddr(ctx, addr)
}

// A recorded beacon makes nobody do anything while its sender is there, and at most a call now and then when it is not.
func TestABeaconSentAgainIsHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		var e *eavesdropper
		var dials atomic.Int64
		var gone atomic.Bool
		all := gossipers(t, n, 2, func(g *gossiper) {
			if g.id == "node-2" {
				e = listenIn(g)
				return
			}
			g.Gone = func(id task.NodeID) bool { return id == "node-2" && gone.Load() }
			g.SetRejoin(24 * time.Hour)
			g.ReplaceStreams(countingStreams{g.Streams.(hostStreams), &dials})
		})
		defer stopAll(all)
		timeUntil(time.Minute, complete(all))
		n.Cut("node-1", "node-2")
		timeUntil(2*time.Minute, func() bool { return !all[0].Alive("node-2") && e.count() > 0 })
		n.Heal()
		timeUntil(time.Minute, complete(all))

		thief := n.Host("thief")
		thief.Move("10.0.0.66:7420")
		conn := thief.ListenPacket()
		replay := func(times int) int64 {
			before := dials.Load()
			for range times {
				_, _ = conn.WriteTo(e.sent[0], &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 7420})
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(3 * time.Second)
			return dials.Load() - before
		}
		time.Sleep(15 * time.Second)
		if d := replay(500); d > 1 { // one exchange of state with the other node may fall into this time
			t.Errorf("%d calls for the beacon of a node that is there", d)
		}
		all[1].stop()
		all[1].stop = func() {}
		timeUntil(2*time.Minute, func() bool { return !all[0].Alive("node-2") })
		time.Sleep(5 * time.Second)
		if d := replay(500); d < 1 || d > 4 {
			t.Errorf("%d calls for the same beacon in 8 s", d)
		}
		gone.Store(true)
		if d := replay(500); d != 0 {
			t.Errorf("%d calls for the beacon of a node that was removed", d)
		}
		_ = conn.Close()
	})
}

// A node that was removed from the cluster is forgotten, and does not come back by gossip, whose key it still has.
func TestGossipForgetsWhoWasRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		var gone atomic.Pointer[task.NodeID]
		all := gossipers(t, n, 3, func(g *gossiper) {
			g.Gone = func(id task.NodeID) bool { p := gone.Load(); return p != nil && *p == id }
		})
		defer stopAll(all)
		timeUntil(time.Minute, complete(all))
		id := task.NodeID("node-3")
		gone.Store(&id)
		time.Sleep(6 * time.Second)
		for _, g := range all[:2] {
			defer g.book.Watch(func(which task.NodeID) {
				if p, ok := g.book.Peer(which); ok && which == id {
					t.Errorf("%s took %+v into its book again", g.id, p)
				}
			})()
		}
		all[2].setAddr("10.0.0.33") // it has something to say
		time.Sleep(30 * time.Second)
		for _, g := range all[:2] {
			if p, ok := g.book.Peer(id); ok {
				t.Errorf("%s has %+v in its book", g.id, p)
			}
		}
	})
}
