package node

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/task"
	"lanjobs/transport"
	"lanjobs/transport/memnet"
)

// A node whose disk was wiped but whose name stayed votes for anybody: a committed entry is lost. Guard on the wire: no vote with
// an empty log. (The guard on disk is OpenStores, which finds the loss at the start.)
func TestAmnesiacVoter(t *testing.T) {
	both(t, func(t *testing.T, guarded bool) {
		l := newLab(t, guarded, "a", "b", "c")
		defer l.close()
		l.bootstrap("a", "b", "c")
		l.start("a", "b", "c")
		a, b, c := l.leadBy("a"), l.nodes["b"], l.nodes["c"]
		a.mustApply("before")
		l.level(5 * time.Second)
		c.crash()
		a.mustApply("grant") // on a and b, a majority
		until(5*time.Second, func() bool { return b.raft.LastIndex() == a.raft.LastIndex() })
		a.crash()
		b.crash()
		b.wipe()

		l.start("b", "c")
		led := until(8*time.Second, func() bool { return l.leads() != nil })
		if led == guarded {
			t.Errorf("guarded %v: a leader without the grant: %v", guarded, led)
		}
		l.start("a")
		l.leader().mustApply("after")
		l.level(15 * time.Second)
		for id, n := range l.nodes {
			if n.fsm.has("grant") != guarded || !n.fsm.has("after") {
				t.Errorf("guarded %v: %s has %s", guarded, id, n.fsm.state())
			}
		}
	})
}

// Two clusters that touch: the leader of one adds a node that leads the other. The library takes equal index and term for the
// same entry and says nothing. Guard: the prologue names the cluster.
func TestTwoClustersTouch(t *testing.T) {
	both(t, func(t *testing.T, guarded bool) {
		l := newLab(t, guarded, "x", "y")
		defer l.close()
		l.nodes["y"].cluster = "cluster-y"
		l.bootstrap("x")
		l.bootstrap("y")
		l.start("x", "y")
		x, y := l.nodes["x"], l.nodes["y"]
		leads := func(n *labNode) bool { _, ok := leadership(n.raft); return ok }
		until(10*time.Second, func() bool { return leads(x) && leads(y) })
		x.mustApply("of x")
		y.mustApply("of y")
		if err := x.raft.AddNonvoter("y", "y", 0, 0).Error(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		_, boss := y.raft.LeaderWithID()
		taken := boss == "x" && y.raft.AppliedIndex() == x.raft.AppliedIndex() && !y.fsm.has("of x")
		if taken == guarded {
			t.Errorf("guarded %v: y follows %s, applied %d of %d: %s", guarded, boss, y.raft.AppliedIndex(), x.raft.AppliedIndex(), y.fsm.state())
		}
		if guarded && (!leads(y) || !x.heard(transport.ErrWrongCluster) || y.apply("more of y", time.Second) != nil) {
			t.Error("y was disturbed, or x did not hear why it cannot have it")
		}
	})
}

// VerifyLeader is no proof: an answer that was under way when it was asked counts. Rule: what must be true rests on a committed
// entry. One run shows both.
func TestVerifyLeaderIsNoProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, true, "a", "b", "c")
		defer l.close()
		l.nodes["a"].tune = sleeper
		for _, id := range []task.NodeID{"b", "c"} { // quick enough to have elected one of them before the answers arrive
			l.nodes[id].tune = func(c *raft.Config) {
				c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 200*time.Millisecond, 200*time.Millisecond, 150*time.Millisecond
			}
		}
		l.bootstrap("a", "b", "c")
		l.start("a", "b", "c")
		a := l.leadBy("a")
		a.mustApply("before")
		l.level(5 * time.Second)
		if err := a.raft.VerifyLeader().Error(); err != nil { // and so the streams for heartbeats are open
			t.Fatal(err)
		}
		time.Sleep(time.Second)

		// Answers to a take 4 s from here on; a asks, and then everything it sends is lost.
		l.net.DelayOneWay("b", "a", 4*time.Second)
		l.net.DelayOneWay("c", "a", 4*time.Second)
		first := a.raft.VerifyLeader()
		time.Sleep(time.Millisecond)
		l.net.CutOneWay("a", "b")
		l.net.CutOneWay("a", "c")
		l.leader("a").mustApply("by the next")
		time.Sleep(300 * time.Millisecond)

		clock := memnet.NewClock()
		second := a.raft.VerifyLeader()
		barrier := a.raft.Barrier(time.Second)
		if err := waitFuture(t.Context(), clock, second, 5*time.Second); err != nil {
			t.Errorf("control: VerifyLeader of a deposed leader: %v", err)
		}
		if a.raft.CurrentTerm() >= l.leader("a").raft.CurrentTerm() {
			t.Error("control: a had heard of the new term")
		}
		if err := waitFuture(t.Context(), clock, barrier, 2*time.Second); err == nil {
			t.Error("a deposed leader committed a barrier")
		}
		_ = waitFuture(t.Context(), clock, first, time.Second)
	})
}

// A node that was removed while it was away asks for votes when it is back (raft#524). Pre-vote keeps it from disturbing anybody,
// but it never learns why nobody answers. Guard: the handshake tells it.
func TestRemovedWhileAway(t *testing.T) {
	for _, told := range []bool{true, false} {
		t.Run(fmt.Sprint("told ", told), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, true, "a", "b", "c", "d")
				defer l.close()
				var removed atomic.Bool
				l.admit = func(id task.NodeID, _ transport.Session) error {
					if told && id == "d" && removed.Load() {
						return transport.ErrRemoved
					}
					return nil
				}
				l.bootstrap("a", "b", "c", "d")
				l.start("a", "b", "c", "d")
				a := l.leadBy("a")
				l.level(5 * time.Second)
				d := l.nodes["d"]
				d.crash()
				if err := a.raft.RemoveServer("d", 0, 0).Error(); err != nil {
					t.Fatal(err)
				}
				removed.Store(true)
				time.Sleep(15 * time.Second) // a has given up telling d by the log
				d.start()
				term := a.raft.CurrentTerm()
				time.Sleep(30 * time.Second)
				if now, leads := leadership(a.raft); !leads || now != term {
					t.Errorf("term %d became %d, a leads: %v", term, now, leads)
				}
				if d.raft.State() == raft.Leader || d.heard(transport.ErrRemoved) != told {
					t.Errorf("d is %s and heard of its removal: %v", d.raft.State(), d.heard(transport.ErrRemoved))
				}
			})
		})
	}
}
