package transport_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
	"lanjobs/transport/memnet"
)

func TestGossipFillsTheBooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		all := gossipers(t, n, 4, nil)
		defer stopAll(all)
		if d := timeUntil(time.Minute, complete(all)); d > 15*time.Second {
			t.Fatalf("everybody knew everybody after %s", d)
		}
		p, ok := all[3].book.Peer("node-2")
		want := transport.Peer{Session: transport.Session{Counter: 1, Random: 2}, Addrs: []string{"10.0.0.2:7420"}, Name: "node-2", Version: "v1", Level: 3, Voter: true, Seen: p.Seen}
		if !ok || fmt.Sprint(p) != fmt.Sprint(want) {
			t.Errorf("book says %+v, not %+v", p, want)
		}

		time.Sleep(10 * time.Second) // so long after its start nobody reports anybody gone
		all[1].stop()
		all[1].stop = func() {}
		if d := timeUntil(time.Minute, func() bool { return !all[0].Alive("node-2") && !all[3].Alive("node-2") }); d > 3*time.Second {
			t.Errorf("a good-bye was heard after %s", d)
		}
		if got := all[0].book.Lookup("node-2"); len(got) != 1 {
			t.Errorf("the last known address of who left is gone: %v", got)
		}
	})
}

func TestGossipSeesADeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		all := gossipers(t, n, 3, nil)
		defer stopAll(all)
		timeUntil(time.Minute, complete(all))
		n.BlackHole("node-3")
		d := timeUntil(2*time.Minute, func() bool { return !all[0].Alive("node-3") && !all[1].Alive("node-3") })
		if d > 30*time.Second {
			t.Errorf("a machine without power was missed after %s", d)
		}
		n.Restore("node-3")
	})
}

// A known name at a new address is refused by memberlist for 40 s and more (memberlist#157, cortex#2130). The control run has
// the same name at the new address.
func TestGossipFollowsAMove(t *testing.T) {
	move := func(t *testing.T, sticky bool) time.Duration {
		var took time.Duration
		synctest.Test(t, func(t *testing.T) {
			n := memnet.New()
			defer n.Close()
			all := gossipers(t, n, 3, func(g *gossiper) { g.sticky = sticky })
			defer stopAll(all)
			timeUntil(time.Minute, complete(all))

			// The machine dies without a word and starts again at another address at once.
			n.BlackHole("node-3")
			all[2].stop()
			n.Restore("node-3")
			again := newGossiper(t, n, 3, "cluster-x", "10.0.0.1:7420")
			again.started.Store(all[2].started.Load())
			again.sticky = sticky
			again.setAddr("10.0.9.3")
			again.start()
			all[2] = again
			know := func() bool {
				return slices.Equal(all[0].book.Lookup("node-3"), []string{"10.0.9.3:7420"}) &&
					slices.Equal(all[1].book.Lookup("node-3"), []string{"10.0.9.3:7420"})
			}
			took = timeUntil(3*time.Minute, know)
		})
		return took
	}
	if d := move(t, false); d > 3*time.Second {
		t.Errorf("the new address was known everywhere after %s", d)
	}
	if d := move(t, true); d < 5*time.Second {
		t.Errorf("control: with the same name the new address was known after %s", d)
	}
}

func TestGossipNoticesAMoveByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		all := gossipers(t, n, 3, nil)
		defer stopAll(all)
		timeUntil(time.Minute, complete(all))
		all[1].setAddr("10.0.9.2")
		d := timeUntil(time.Minute, func() bool {
			return slices.Equal(all[0].book.Lookup("node-2"), []string{"10.0.9.2:7420"}) && complete(all)()
		})
		if d > 8*time.Second {
			t.Errorf("known after %s", d)
		}
	})
}

// memberlist never reconnects to a peer that it has declared dead (memberlist#222, metallb#589). The control run has no
// rejoin loop.
func TestGossipHealsAfterALongPartition(t *testing.T) {
	heal := func(t *testing.T, rejoin time.Duration) time.Duration {
		var took time.Duration
		synctest.Test(t, func(t *testing.T) {
			n := memnet.New()
			defer n.Close()
			all := gossipers(t, n, 4, func(g *gossiper) { g.SetRejoin(rejoin); g.withoutBroadcast() })
			defer stopAll(all)
			timeUntil(time.Minute, complete(all))
			for _, a := range []task.NodeID{"node-1", "node-2"} {
				n.Cut(a, "node-3")
				n.Cut(a, "node-4")
			}
			if d := timeUntil(2*time.Minute, func() bool { return !all[0].Alive("node-3") && !all[3].Alive("node-2") }); d > time.Minute {
				t.Fatalf("the partition was noticed after %s", d)
			}
			time.Sleep(2 * time.Minute)
			n.Heal()
			took = timeUntil(2*time.Minute, complete(all))
		})
		return took
	}
	if d := heal(t, 10*time.Second); d > 20*time.Second {
		t.Errorf("merged after %s", d)
	}
	if d := heal(t, 24*time.Hour); d < time.Minute {
		t.Errorf("control: merged without rejoining after %s", d)
	}
}

func TestGossipWaitsForANetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		all := gossipers(t, n, 2, func(g *gossiper) {
			if g.id == "node-2" {
				g.setAddr("")
			}
		})
		defer stopAll(all)
		time.Sleep(20 * time.Second)
		if !all[1].Session().IsZero() {
			t.Error("a session without an address")
		}
		all[1].setAddr("10.0.0.2")
		if d := timeUntil(time.Minute, complete(all)); d > 8*time.Second {
			t.Errorf("joined %s after the network came", d)
		}
	})
}

func TestGossipOfTwoClustersDoesNotMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		a := newGossiper(t, n, 1, "cluster-x")
		b := newGossiper(t, n, 2, "cluster-y", "10.0.0.1:7420") // the same key, as a copied configuration would have
		a.start()
		b.start()
		defer stopAll([]*gossiper{a, b})
		time.Sleep(time.Minute)
		if len(a.book.IDs())+len(b.book.IDs()) > 0 {
			t.Errorf("books: %v, %v", a.book.IDs(), b.book.IDs())
		}
	})
}

// udpLess is a machine whose firewall drops all datagrams.
type udpLess struct{ net.PacketConn }

func (udpLess) WriteTo(b []byte, _ net.Addr) (int, error) { return len(b), nil }

// With UDP blocked, liveness rests on the fallback over TCP, which needs time of its own (serf#216). The control run has the
// probe interval equal to the probe time-out.
func TestGossipIsStableWithoutUDP(t *testing.T) {
	flaps := func(t *testing.T, interval time.Duration, suspicion int) int {
		var lost atomic.Int64
		synctest.Test(t, func(t *testing.T) {
			n := memnet.New()
			defer n.Close()
			all := gossipers(t, n, 3, func(g *gossiper) {
				g.UDP = udpLess{g.UDP}
				g.Replace()
				g.SetProbe(interval, suspicion)
				g.Changed = func(_ task.NodeID, alive bool) {
					if !alive {
						lost.Add(1)
					}
				}
			})
			defer stopAll(all)
			took := timeUntil(time.Minute, complete(all))
			time.Sleep(5 * time.Minute)
			if interval > time.Second && (took > 50*time.Second || !all[0].UDPBlocked()) {
				t.Errorf("complete after %s; UDP blocked, as it says: %v", took, all[0].UDPBlocked())
			}
			synctest.Wait()
		})
		return int(lost.Load())
	}
	if n := flaps(t, 2*time.Second, 3); n > 0 {
		t.Errorf("%d machines were called gone", n)
	}
	if n := flaps(t, time.Second, 6); n == 0 {
		t.Error("control: without time for the fallback nobody was called gone")
	}
}

func TestGossipFindsAClone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		all := gossipers(t, n, 2, nil)
		clone := newGossiper(t, n, 3, "cluster-x", "10.0.0.1:7420")
		clone.Self = "node-2"
		clone.start()
		defer stopAll(append(all, clone))
		for _, g := range []*gossiper{all[0], all[1], clone} {
			found := func() bool {
				c := g.Copies("node-2")
				return len(c) == 2 && len(g.Copies("node-1")) == 0 && c[0].Session.Less(c[1].Session) && c[0].Addr == "10.0.0.2:7420" && c[1].Addr == "10.0.0.3:7420"
			}
			if d := timeUntil(2*time.Minute, found); d > time.Minute {
				t.Errorf("%s did not notice the copy of node-2 within %s", g.host.ID(), d)
			}
		}
	})
}

// A machine whose count of sessions was lost is found again, a little later.
func TestGossipTakesAnEarlierSessionInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		all := gossipers(t, n, 2, func(g *gossiper) { g.started.Store(100) })
		defer stopAll(all)
		timeUntil(time.Minute, complete(all))
		all[1].stop()
		again := newGossiper(t, n, 2, "cluster-x", "10.0.0.1:7420")
		again.setAddr("10.0.9.2")
		again.start()
		all[1] = again
		found := func() bool { return slices.Equal(all[0].book.Lookup("node-2"), []string{"10.0.9.2:7420"}) }
		if d := timeUntil(2*time.Minute, found); d < 20*time.Second || d > 40*time.Second {
			t.Errorf("found after %s", d)
		}
	})
}

func TestGossipStartFailsWithoutASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		g := newGossiper(t, n, 1, "cluster-x")
		var full atomic.Bool
		full.Store(true)
		next := g.NextSession
		g.NextSession = func() (transport.Session, error) {
			if full.Load() {
				return transport.Session{}, errors.New("disk full")
			}
			return next()
		}
		g.start()
		defer stopAll([]*gossiper{g})
		time.Sleep(7 * time.Second)
		full.Store(false)
		if d := timeUntil(time.Minute, func() bool { return !g.Session().IsZero() }); d > 5*time.Second {
			t.Errorf("started %s after the disk had room", d)
		}
	})
}
