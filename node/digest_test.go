package node

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
	"lanjobs/transport/memnet"
)

// replicas are cores without Raft whose ledgers the test feeds.
type replicas map[task.NodeID]*Core

func (r replicas) Call(ctx context.Context, to task.NodeID, method transport.Method, request, reply any) error {
	body, err := transport.Encode(request)
	if err != nil {
		return err
	}
	out, err := r[to].ServeCall(ctx, "a", method, body)
	if err != nil || reply == nil {
		return err
	}
	if body, err = transport.Encode(out); err != nil {
		return err
	}
	return transport.Decode(body, reply)
}

// TestAStateThatDiffersIsAnAlarm: the leader tells a member whose state is another after the same entries, and no other one; that
// one's next answer takes it back.
func TestAStateThatDiffersIsAnAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		said := map[task.NodeID]string{}
		all := replicas{}
		clock := memnet.NewClock()
		for _, id := range []task.NodeID{"a", "b", "c"} {
			p := Parts{Self: id, Clock: clock, Caller: all, Log: slog.New(slog.NewTextHandler(&log, nil)),
				Diverged: func(index uint64, differs bool) { said[id] = fmt.Sprint(index, differs) }}
			all[id] = &Core{parts: p, ledger: newLedger(p.Log, clock, func([]task.Event) {}, func() error { return nil }, func(uint64) {})}
		}
		index := uint64(0)
		apply := func(c fsm.Command, to ...task.NodeID) {
			index++
			for _, id := range to {
				all[id].ledger.Apply(&raft.Log{Index: index, Type: raft.LogCommand, Data: (&fsm.Batch{Elapsed: 1, Commands: []fsm.Command{c}}).Encode()})
			}
		}
		compare := func() bool {
			done := make(chan bool)
			go func() { done <- all["a"].compareWith(t.Context(), []task.NodeID{"b", "c"}, 2) }()
			synctest.Wait()
			for range 3 {
				apply(&fsm.Elected{Node: "a", Term: index}, "a", "b", "c")
			}
			return <-done
		}
		apply(&fsm.InitCluster{ID: "c1", Name: "home"}, "a", "b", "c")
		if !compare() || said["b"] != "3 false" || said["c"] != "3 false" || log.Len() > 0 {
			t.Fatalf("equal states: %v\n%s", said, log.String())
		}
		// One bit of another entry on c.
		apply(&fsm.CreateToken{ID: "t", Hash: []byte("h"), TTL: 1000, Uses: 1}, "a", "b")
		all["c"].ledger.Apply(&raft.Log{Index: index, Type: raft.LogCommand, Data: (&fsm.Batch{Elapsed: 1, Commands: []fsm.Command{&fsm.CreateToken{ID: "t", Hash: []byte("i"), TTL: 1000, Uses: 1}}}).Encode()})
		at := index + 2
		if !compare() || said["b"] != fmt.Sprint(at, false) || said["c"] != fmt.Sprint(at, true) || strings.Count(log.String(), "differs from this leader's") != 1 {
			t.Fatalf("c differs: %v\n%s", said, log.String())
		}
		// Nothing happens any more: nothing is compared, and nobody waits for ever.
		done := make(chan bool)
		go func() { done <- all["a"].compareWith(t.Context(), []task.NodeID{"b", "c"}, 2) }()
		if <-done {
			t.Error("a digest of an entry that never came")
		}
	})
}

// TestADigestThatNobodyTakesHoldsNoState: a frozen state that stays would be all that the cluster ever had, beside what it has.
func TestADigestThatNobodyTakesHoldsNoState(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	c := &Core{parts: Parts{Self: "a", Clock: memnet.NewClock(), Log: log}, ledger: newLedger(log, memnet.NewClock(), func([]task.Event) {}, func() error { return nil }, func(uint64) {})}
	entry := func(index uint64) {
		c.ledger.Apply(&raft.Log{Index: index, Type: raft.LogCommand, Data: (&fsm.Batch{Elapsed: 1}).Encode()})
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for i, ask := range []func(){
		func() { c.ledger.digests.want(2); c.digestSoon(over) },
		func() { _, _ = c.serveDigest(t.Context(), "b", &transport.DigestRequest{Index: 1}) }, // too late
	} {
		ask()
		entry(uint64(2 + i))
		if c.ledger.digests.frozen != nil {
			t.Errorf("case %d: a state is frozen for nobody", i)
		}
	}
}
