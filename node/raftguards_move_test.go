package node

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/task"
	"lanjobs/transport"
	"lanjobs/transport/memnet"
)

// noStore is a BookStore that keeps nothing.
type noStore struct{}

func (noStore) Load() (map[task.NodeID]transport.Peer, error) { return nil, nil }
func (noStore) Save(task.NodeID, transport.Peer) error        { return nil }
func (noStore) Delete(task.NodeID) error                      { return nil }

// movers is a lab whose machines find each other by their books.
type movers struct {
	*lab
	books    map[task.NodeID]*transport.Book
	sessions uint64
}

func newMovers(t *testing.T, ids ...task.NodeID) *movers {
	m := &movers{lab: newLab(t, true, ids...), books: map[task.NodeID]*transport.Book{}}
	m.dialer = func(ctx context.Context, from, to task.NodeID) (net.Conn, error) {
		for _, addr := range m.books[from].Lookup(to) {
			return m.nodes[from].host.DialAddr(ctx, addr, "raft")
		}
		return nil, fmt.Errorf("no address of %s", to)
	}
	for i, id := range ids {
		book, err := transport.OpenBook(noStore{}, memnet.NewClock(), silent)
		if err != nil {
			t.Fatal(err)
		}
		m.books[id] = book
		m.nodes[id].host.Move(fmt.Sprintf("10.0.0.%d:7420", i+1))
	}
	m.gossip(ids...)
	return m
}

// gossip lets all books know where these machines are now.
func (m *movers) gossip(ids ...task.NodeID) {
	m.sessions++
	for _, book := range m.books {
		for _, id := range ids {
			book.Update(id, transport.Peer{Session: transport.Session{Counter: m.sessions}, Addrs: []string{m.nodes[id].host.Addr()}})
		}
	}
}

// follow drops the streams to machines that moved, as the node does.
func (m *movers) follow() {
	for id, book := range m.books {
		layer := m.nodes[id].layer
		book.Watch(layer.DropPeer)
	}
}

// configured gives Raft's configuration as text.
func (n *labNode) configured() string {
	c := n.raft.GetConfiguration()
	return fmt.Sprint(c.Configuration().Servers, c.Error())
}

// A follower gets another address (R2): nothing is configured anew, and it is caught up at once. In the control run the streams to
// the old place are not dropped.
func TestFollowerMoves(t *testing.T) {
	took := map[bool]time.Duration{}
	for _, dropping := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			m := newMovers(t, "a", "b", "c")
			defer m.close()
			m.bootstrap("a", "b", "c")
			m.start("a", "b", "c")
			if dropping {
				m.follow()
			}
			a, c := m.leadBy("a"), m.nodes["c"]
			a.mustApply("before")
			m.level(5 * time.Second)
			before := a.configured()

			c.host.Move("10.0.9.3:7420")
			time.Sleep(200 * time.Millisecond)
			m.gossip("c")
			start := time.Now()
			a.mustApply("after")
			if !until(30*time.Second, func() bool { return c.fsm.has("after") }) {
				t.Fatal("the follower that moved got nothing")
			}
			took[dropping] = time.Since(start)
			if now := a.configured(); now != before {
				t.Errorf("the configuration changed from %s to %s", before, now)
			}
		})
	}
	if took[true] > 1500*time.Millisecond || took[false] < 3*time.Second {
		t.Errorf("caught up after %s, without dropping the streams after %s", took[true], took[false])
	}
}

// All machines have other addresses after a power cut (nomad#12926, consul#457): a leader and the data within 15 s.
func TestAllMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMovers(t, "a", "b", "c")
		defer m.close()
		m.bootstrap("a", "b", "c")
		m.start("a", "b", "c")
		m.leadBy("a").mustApply("before")
		m.level(5 * time.Second)
		for i, id := range []task.NodeID{"a", "b", "c"} {
			m.nodes[id].crash()
			m.nodes[id].host.Move(fmt.Sprintf("10.0.9.%d:7420", i+1))
		}
		m.gossip("a", "b", "c")
		start := time.Now()
		m.start("a", "b", "c")
		m.leader().mustApply("after")
		m.level(15 * time.Second)
		for id, n := range m.nodes {
			if !n.fsm.has("before") || !n.fsm.has("after") || time.Since(start) > 15*time.Second {
				t.Errorf("%s after %s: %s", id, time.Since(start), n.fsm.state())
			}
		}
	})
}

// Two machines exchange their addresses, and the third has the old book for a while: nobody is taken for another (C37 step 4).
func TestAddressesAreExchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMovers(t, "a", "b", "c")
		defer m.close()
		m.bootstrap("a", "b", "c")
		m.start("a", "b", "c")
		m.leadBy("a").mustApply("before")
		m.level(5 * time.Second)
		b, c := m.nodes["b"], m.nodes["c"]
		b.crash()
		c.crash()
		atB, atC := b.host.Addr(), c.host.Addr()
		b.host.Move(atC)
		c.host.Move(atB)
		m.start("b", "c")
		led := until(15*time.Second, func() bool {
			n := m.leads("a") // a reaches nobody, but can be reached
			return n != nil && n.apply("with a wrong book", time.Second) == nil
		})
		if !led {
			t.Error("no lead while one book was wrong")
		}
		if !m.nodes["a"].heard(transport.ErrWrongNode) {
			t.Error("a did not notice that its book is wrong")
		}
		m.gossip("b", "c")
		m.leader().mustApply("with the right book")
		if !m.level(15 * time.Second) {
			t.Error("not level")
		}
		for id, n := range m.nodes {
			if n.fsm.state() != m.nodes["a"].fsm.state() {
				t.Errorf("%s has %s, a has %s", id, n.fsm.state(), m.nodes["a"].fsm.state())
			}
		}
	})
}

// After a long absence a follower is caught up within 15 s, and its return changes neither term nor leader (C39).
func TestReturnAfterALongAbsence(t *testing.T) {
	for _, away := range []time.Duration{2 * time.Second, 45 * time.Second, 3 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, true, "a", "b", "c")
			defer l.close()
			l.bootstrap("a", "b", "c")
			l.start("a", "b", "c")
			a := l.leadBy("a")
			l.level(5 * time.Second)
			term := a.raft.CurrentTerm()
			l.net.Isolate("c")
			a.mustApply("meanwhile")
			time.Sleep(away)
			l.net.Heal()
			if !l.level(15 * time.Second) {
				t.Errorf("not caught up within 15 s after %s", away)
			}
			time.Sleep(30 * time.Second)
			if now, leads := leadership(a.raft); !leads || now != term || l.nodes["c"].raft.State() != raft.Follower {
				t.Errorf("after %s: term %d became %d, a leads: %v", away, term, now, leads)
			}
		})
	}
}
