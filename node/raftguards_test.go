package node

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/hashicorp/raft"

	"lanjobs/task"
	"lanjobs/transport"
	"lanjobs/transport/memnet"
)

// both runs an experiment guarded and as a control, each in a bubble of its own.
func both(t *testing.T, experiment func(t *testing.T, guarded bool)) {
	for name, guarded := range map[string]bool{"guarded": true, "control": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { experiment(t, guarded) })
		})
	}
}

// sleeper makes a machine believe in its lead for long: so does one that slept, since Go's clock stood still meanwhile.
func sleeper(c *raft.Config) {
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 20*time.Second, 20*time.Second, 20*time.Second
}

// hashicorp/raft#695: a heartbeat handled beside the main loop raises the term under a leader, and the next request is logged
// as if the new leader had written it. Guard: no fast path for heartbeats.
func TestHeartbeatUnderADeposedLeader(t *testing.T) {
	both(t, func(t *testing.T, guarded bool) {
		l := newLab(t, guarded, "a", "b", "c", "forger")
		defer l.close()
		l.nodes["a"].tune = sleeper
		l.bootstrap("a", "b", "c")
		l.start("a", "b", "c")
		a := l.leadBy("a")
		a.mustApply("before")
		l.level(5 * time.Second)

		l.net.Cut("a", "b")
		l.net.Cut("a", "c")
		next := l.leader("a")
		next.mustApply("after")
		if _, leads := leadership(a.raft); !leads {
			t.Fatal("the sleeper no longer believes that it leads")
		}

		// The first heartbeat of the new term arrives, and a request right behind it. It comes from a machine of its own,
		// so that nothing else gets through.
		forger := l.nodes["forger"]
		forger.connect()
		beat := &raft.AppendEntriesRequest{RPCHeader: header("forger"), Term: next.raft.CurrentTerm()}
		if err := forger.trans.AppendEntries("a", "a", beat, &raft.AppendEntriesResponse{}); err != nil {
			t.Fatal(err)
		}
		if err := a.apply("stale", time.Second); err == nil {
			t.Error("a deposed leader acknowledged a command")
		}

		l.net.Heal()
		l.leader("a").mustApply("healed")
		if !l.level(15 * time.Second) {
			t.Fatal("the sleeper did not catch up")
		}
		diverged := a.fsm.state() != next.fsm.state()
		if diverged == guarded {
			t.Errorf("guarded %v: the sleeper has %s, the leader %s", guarded, a.fsm.state(), next.fsm.state())
		}
	})
}

// ready serves the question of a transfer on a machine, and gives the one to ask it from a leader.
func (l *lab) ready(from task.NodeID) func(context.Context, task.NodeID) (uint64, error) {
	for id, n := range l.nodes {
		l.net.Serve(id, transport.HandlerFunc(func(context.Context, task.NodeID, transport.Method, []byte) (any, error) {
			return transport.PingReply{LastIndex: n.raft.LastIndex()}, nil
		}))
	}
	return func(ctx context.Context, to task.NodeID) (uint64, error) {
		var reply transport.PingReply
		err := l.net.Caller(from).Call(ctx, to, transport.MethodPing, transport.PingRequest{}, &reply)
		return reply.LastIndex, err
	}
}

// hashicorp/raft#696: repeated transfers to a peer that swallows packets leave a flag set, and a later leadership of this node
// refuses everything for ever. Guard: only to a voter that answers a ping, one try per term. Cure: restart Raft.
func TestTransferIntoABlackHole(t *testing.T) {
	both(t, func(t *testing.T, guarded bool) {
		l := newLab(t, guarded, "a", "b", "c")
		defer l.close()
		l.inFlight = 1 // or the control run depends on which of two ready channels a select takes
		l.bootstrap("a", "b", "c")
		l.start("a", "b", "c")
		a := l.leadBy("a")
		a.mustApply("first")
		l.level(5 * time.Second)

		l.net.Cut("a", "b")
		a.mustApply("second") // b is one entry behind
		transfer := &Transfer{Self: "a", Raft: a.raft, Clock: memnet.NewClock(), Ready: l.ready("a")}
		for range 2 {
			if guarded {
				_ = transfer.Do(t.Context(), "")
				continue
			}
			f := a.raft.LeadershipTransferToServer("b", "b")
			_ = waitFuture(t.Context(), memnet.NewClock(), f, 550*time.Millisecond)
			time.Sleep(10 * time.Millisecond) // the flag of a try that ended in time is taken back by now
		}
		if !guarded {
			defer stuckTransfers(a.raft, "b")()
			if err := a.apply("refused", time.Second); !errors.Is(err, raft.ErrLeadershipTransferInProgress) {
				t.Fatalf("control: no transfer is stuck: %v", err)
			}
		}
		// The others have a new leader, and its term reaches a with the answer to what was under way to b.
		l.net.Isolate("a")
		l.leader("a")
		l.net.Heal()
		if !l.level(15 * time.Second) {
			t.Fatal("not level after the heal")
		}
		l.leadBy("a")

		led, stuck := runTerms(a, 15*time.Second)
		err := a.apply("third", 5*time.Second)
		if guarded && (err != nil || led == 0 || stuck != nil) {
			t.Errorf("apply: %v; led %d terms, stuck: %v", err, led, stuck)
		}
		if guarded {
			return
		}
		if !errors.Is(err, raft.ErrLeadershipTransferInProgress) || led > 0 || !errors.Is(stuck, raft.ErrLeadershipTransferInProgress) {
			t.Errorf("control: apply: %v; led %d terms, stuck: %v", err, led, stuck)
		}
		a.crash()
		a.start()
		if !l.level(15 * time.Second) {
			t.Fatal("not level after the restart")
		}
		l.leadBy("a").mustApply("fourth")
	})
}

// stuckTransfers finds, in a leader, the channel on which the fault leaves a goroutine of the library for ever; free ends it. The
// bubble would wait for it else.
func stuckTransfers(r *raft.Raft, to raft.ServerID) (free func()) {
	synctest.Wait()
	peers := reflect.ValueOf(r).Elem().FieldByName("leaderState").FieldByName("replState")
	field := peers.MapIndex(reflect.ValueOf(to)).Elem().FieldByName("triggerDeferErrorCh")
	trigger := reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
	return func() {
		for range 3 {
			trigger.TryRecv()
			synctest.Wait()
		}
	}
}

// runTerms runs Terms on a machine for a while: in how many terms it led, and what Stuck heard.
func runTerms(n *labNode, d time.Duration) (led int, stuck error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	terms := &Terms{
		Raft: n.raft, Clock: memnet.NewClock(),
		Lead:  func(ctx context.Context, _ uint64) { led++; <-ctx.Done() },
		Stuck: func(_ uint64, err error) { stuck = err },
	}
	_ = terms.Run(ctx)
	return led, stuck
}

// hashicorp/raft#697: a former leader with more uncommitted entries than the new leader's snapshot reaches gets that snapshot
// again and again. Guard: a trailing log longer than that.
func TestSnapshotInstalledForEver(t *testing.T) {
	both(t, func(t *testing.T, guarded bool) {
		l := newLab(t, true, "a", "b", "c") // the guard is the setting alone
		defer l.close()
		for _, n := range l.nodes {
			n.tune = func(c *raft.Config) {
				c.SnapshotInterval = time.Hour
				if !guarded {
					c.TrailingLogs = 5
				}
			}
		}
		l.bootstrap("a", "b", "c")
		l.start("a", "b", "c")
		a := l.leadBy("a")
		a.mustApply("first")
		l.level(5 * time.Second)
		for _, pair := range [][2]task.NodeID{{"a", "b"}, {"a", "c"}, {"b", "c"}} {
			l.net.Delay(pair[0], pair[1], 5*time.Millisecond) // or the loop would take no time at all
		}

		l.net.Isolate("a")
		for i := range 300 {
			a.raft.Apply(fmt.Appendf(nil, "lost %d", i), time.Second)
		}
		next := l.leader("a")
		for i := range 100 {
			next.mustApply(fmt.Sprint("kept ", i))
		}
		if err := next.raft.Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(12 * time.Second) // until the request that was under way before the snapshot has timed out
		l.net.Heal()
		next.mustApply("later")
		time.Sleep(10 * time.Second)
		caughtUp, restores := a.fsm.has("later"), a.fsm.restored()
		if guarded && (!caughtUp || restores > 1) || !guarded && (caughtUp || restores < 20) {
			t.Errorf("guarded %v: caught up %v, %d snapshots installed", guarded, caughtUp, restores)
		}
	})
}

// Raft's requests name no receiver: addresses of three dead voters that lead to one live node make a majority of two. Guard: the
// prologue names the receiver.
func TestRequestsThatReachTheWrongNode(t *testing.T) {
	both(t, func(t *testing.T, guarded bool) {
		l := newLab(t, guarded, "a", "b")
		defer l.close()
		l.resolve = func(from, to task.NodeID) task.NodeID {
			switch {
			case to == "a" || to == "b":
				return to
			case from == "a":
				return "b"
			}
			return "a"
		}
		l.bootstrap("a", "b", "c", "d", "e")
		l.start("a", "b")
		led := until(8*time.Second, func() bool { return l.leads() != nil })
		committed := led && l.leads().apply("two of five", 5*time.Second) == nil
		if led == guarded || committed == guarded {
			t.Errorf("guarded %v: a leader %v, a commit %v with two of five voters", guarded, led, committed)
		}
		if guarded && !l.nodes["a"].heard(transport.ErrWrongNode) && !l.nodes["b"].heard(transport.ErrWrongNode) {
			t.Error("nobody heard that the book is wrong")
		}
	})
}

// Votes are remembered by address: two candidates at one address get two votes of one voter. Guard: a request must name the node
// of its stream, as id and as address.
func TestTwoCandidatesAtOneAddress(t *testing.T) {
	both(t, func(t *testing.T, guarded bool) {
		l := newLab(t, guarded, "a", "b", "c")
		defer l.close()
		l.bootstrap("a", "b", "c")
		l.start("c")
		ask := func(from task.NodeID, addr string) bool {
			n := l.nodes[from]
			if n.trans == nil {
				n.connect()
			}
			req := &raft.RequestVoteRequest{RPCHeader: header(from), Term: 7, LastLogIndex: 1, LastLogTerm: 1}
			req.Addr = []byte(addr)
			var resp raft.RequestVoteResponse
			_ = n.trans.RequestVote("c", "c", req, &resp)
			return resp.Granted
		}
		if guarded {
			if ask("a", "10.0.0.1:7420") {
				t.Error("a vote for a candidate that is named by an address")
			}
			if !ask("a", "a") || ask("b", "b") {
				t.Error("not exactly one vote in a term")
			}
			return
		}
		if !ask("a", "10.0.0.1:7420") || !ask("b", "10.0.0.1:7420") {
			t.Error("control: two candidates at one address did not get two votes")
		}
	})
}

// A follower that refuses entries once, say with a full disk: raft's pipeline to it may stop for good, with one goroutine waiting
// to send and another for somebody to read, while heartbeats go on and keep the follower calm (grafana/pyroscope#5518 met the
// same). Guard: answers are always read.
func TestPipelineStuck(t *testing.T) {
	both(t, func(t *testing.T, guarded bool) {
		l := newLab(t, guarded, "a", "b", "c")
		defer l.close()
		full := &fullStore{RaftStore: l.nodes["b"].store}
		l.nodes["b"].store = full
		l.bootstrap("a", "b", "c")
		l.start("a", "b", "c")
		a := l.leadBy("a")
		l.level(5 * time.Second)
		for i := range 50 { // the control run depends on which of two ready channels a select takes
			full.refuse.Store(1)
			for k := range 10 {
				a.raft.Apply(fmt.Appendf(nil, "%d.%d", i, k), time.Second)
			}
			time.Sleep(200 * time.Millisecond)
		}
		a.mustApply("last")
		time.Sleep(15 * time.Second)
		if got := l.nodes["b"].fsm.has("last"); got != guarded {
			t.Errorf("guarded %v: the follower got the last entry: %v", guarded, got)
		}
		if _, leads := leadership(a.raft); !leads {
			t.Error("the leader is another now")
		}
	})
}

// fullStore refuses the next few writes.
type fullStore struct {
	RaftStore
	refuse atomic.Int32
}

func (f *fullStore) StoreLogs(logs []*raft.Log) error {
	if f.refuse.Add(-1) >= 0 {
		return errors.New("no space left on device")
	}
	return f.RaftStore.StoreLogs(logs)
}
