package plan_test

import (
	"fmt"
	"testing"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

func (b *board) queue(name string, balance task.Balance, limit int) {
	b.t.Helper()
	b.apply(&fsm.SetQueue{Name: name, Balance: &balance, Max: &limit})
}

// placed runs a job's shards one after another and tells where each went.
func (s *shop) placed(id task.JobID) map[int]task.NodeID {
	s.t.Helper()
	out := map[int]task.NodeID{}
	for {
		granted := s.turn()[id]
		if len(granted) == 0 {
			return out
		}
		for _, tok := range granted {
			l := s.s.Lease(tok)
			out[l.Ref.Shard] = s.s.NodeByPlace(l.Node).Info.ID
			s.end(tok)
		}
	}
}

func TestModuloIsShardModNodesInTheOrderOfRegistration(t *testing.T) {
	s := newShop(t, 3, 2)
	s.queue("default", task.BalanceModulo, 0)
	s.submit("j", simStage("s", 20, 300_000), 50)
	for shard, node := range s.placed("j") {
		if want := task.NodeID(fmt.Sprintf("n%d", shard%3)); node != want {
			t.Errorf("shard %d went to %s, not %s", shard, node, want)
		}
	}
}

func TestAShardOfModuloWaitsForItsMachine(t *testing.T) {
	s := newShop(t, 2, 2)
	s.queue("default", task.BalanceModulo, 0)
	s.submit("j", simStage("s", 9, 300_000), 50)
	s.turn()
	var odd []task.Token
	s.s.LeasesOf("n1", func(l *fsm.Lease) { odd = append(odd, l.Token) })
	s.end(odd[0])
	got := s.turn()["j"]
	if len(got) != 1 || s.s.Lease(got[0]).Ref.Shard != 5 {
		t.Fatalf("%v", got)
	}
}

// A stage of many shards, nearly all of which wait for a busy machine: the search is bounded, and finds the others in the end.
func TestTheSearchForAShardOfAMachineIsBoundedAndComplete(t *testing.T) {
	s := newShop(t, 100, 1)
	s.queue("default", task.BalanceConsistentHash, 0)
	for i := range 98 {
		s.apply(&fsm.SetNode{Node: task.NodeID(fmt.Sprintf("n%d", i+2)), Action: fsm.NodeDrain, After: task.Day})
	}
	s.submit("j", simStage("s", 60_000, 300_000), 50)
	s.turn()
	for i := range 200 {
		var n0 task.Token
		s.s.LeasesOf("n0", func(l *fsm.Lease) { n0 = l.Token })
		s.end(n0)
		plans := 0
		for len(s.turn()) == 0 {
			if plans++; plans > 60 || !s.flight.More() {
				t.Fatalf("turn %d: n0 has nothing after %d plans, more=%v", i, plans, s.flight.More())
			}
		}
	}
}

func TestConsistentHashMovesOneNth(t *testing.T) {
	const shards = 3000
	where := func(nodes int) map[int]task.NodeID {
		s := newShop(t, nodes, 64)
		s.queue("default", task.BalanceConsistentHash, 0)
		s.submit("j", simStage("s", shards, 300_000), 50)
		return s.placed("j")
	}
	three, four := where(3), where(4)
	moved, counts := 0, map[task.NodeID]int{}
	for shard, node := range four {
		counts[node]++
		if three[shard] != node {
			moved++
			if node != "n3" {
				t.Fatalf("shard %d moved from %s to %s, which was there before", shard, three[shard], node)
			}
		}
	}
	if len(three) != shards || len(four) != shards {
		t.Fatalf("%d and %d of %d placed", len(three), len(four), shards)
	}
	if part := float64(moved) / shards; part < 0.20 || part > 0.30 {
		t.Errorf("%.3f of the shards moved to the fourth machine, not about 1/4", part)
	}
	for node, n := range counts {
		if n < shards/4*8/10 || n > shards/4*12/10 {
			t.Errorf("%s has %d of %d", node, n, shards)
		}
	}
}

func TestConsistentHashGoesByTheItem(t *testing.T) {
	s := newShop(t, 3, 2)
	s.queue("default", task.BalanceConsistentHash, 0)
	one, two := simStage("a", 6, 300_000), simStage("b", 3, 300_000)
	one.Items = []string{"f0", "f1", "f2", "f3", "f4", "f5"}
	two.Items = []string{"f5", "f3", "f1"}
	s.submit("one", one, 50)
	first := s.placed("one")
	s.submit("two", two, 50)
	second := s.placed("two")
	for shard, item := range []int{5, 3, 1} {
		if second[shard] != first[item] {
			t.Errorf("file f%d was on %s, then on %s", item, first[item], second[shard])
		}
	}
}

func TestRoundRobinGoesByTurns(t *testing.T) {
	s := newShop(t, 3, 4)
	s.queue("default", task.BalanceRoundRobin, 0)
	s.submit("j", simStage("s", 1, 300_000), 50)
	s.submit("k", simStage("s", 1, 300_000), 50)
	var order []task.NodeID
	for i := range 7 { // each ends before the next is placed, so least-loaded would always take the same
		id := task.JobID(fmt.Sprintf("x%d", i))
		s.submit(string(id), simStage("s", 1, 300_000), 90)
		tok := s.turn()[id][0]
		order = append(order, s.s.NodeByPlace(s.s.Lease(tok).Node).Info.ID)
		s.end(tok)
		if i == 0 { // the two others took n1 and n2
			order = append(order, "n1", "n2")
		}
	}
	if got := fmt.Sprint(order); got != "[n0 n1 n2 n0 n1 n2 n0 n1 n2]" {
		t.Errorf("%s", got)
	}
}

func TestPreferredMachinesGoFirstAsLongAsTheyHaveRoom(t *testing.T) {
	for _, balance := range []task.Balance{task.BalanceLeastLoaded, task.BalanceRoundRobin} {
		b := newBoard(t, info("a"), info("b"), info("c", task.KV{Name: "ssd", Value: "true"}))
		b.queue("default", balance, 0)
		st := simStage("s", 6, 5000)
		st.Prefer = []task.Requirement{{Label: "ssd", Op: task.OpExists}}
		b.submit("j", st, 50)
		if got := b.place(4, plan.NewFlight()); len(got["c"]) != 4 || len(got["b"]) != 2 {
			t.Errorf("%s: %v", balance, got)
		}
	}
}

// C26: whatever the strategy, what failed on one machine runs on another at the latest at the third attempt; with no other one
// it goes back.
func TestRetriesGoElsewhereUnderEveryStrategy(t *testing.T) {
	for _, balance := range task.Balances {
		for _, others := range []bool{true, false} {
			nodes := 3
			if !others {
				nodes = 1
			}
			s := newShop(t, nodes, 4)
			s.queue("default", balance, 0)
			st := simStage("s", 1, 300_000)
			st.Retry.Initial, st.Retry.JitterPct = 0, 0
			s.submit("j", st, 50)
			var where []task.NodeID
			for range 3 {
				toks := s.turn()["j"]
				if len(toks) != 1 {
					t.Fatalf("%s: not placed after %v", balance, where)
				}
				l := s.s.Lease(toks[0])
				node := s.s.NodeByPlace(l.Node).Info.ID
				where = append(where, node)
				s.apply(&fsm.Report{Node: node, Reports: []task.Report{{Job: "j", Token: toks[0], Outcome: task.Outcome{End: task.EndExited, ExitCode: 1}}}})
			}
			if moved := where[2] != where[0] || where[1] != where[0]; moved != others {
				t.Errorf("%s, others %v: %v", balance, others, where)
			}
		}
	}
}

func TestAQueueLimitHoldsWithGrantsInFlight(t *testing.T) {
	s := newShop(t, 4, 4)
	s.queue("video", task.BalanceLeastLoaded, 3)
	s.submitTo("video", "j", simStage("s", 10, 300_000))
	s.submitTo("video", "k", simStage("s", 10, 300_000))
	s.submit("other", simStage("s", 1, 300_000), 50)
	first := plan.Place(s.view())
	count := map[string]int{}
	for _, c := range first {
		g := c.(*fsm.Grant)
		count[string(g.Job)] += len(g.Shards)
		s.flight.Add(s.s.Job(g.Job), g)
	}
	if count["j"]+count["k"] != 3 || count["other"] != 1 {
		t.Fatalf("%v", count)
	}
	if again := plan.Place(s.view()); len(again) != 0 {
		t.Fatalf("over the limit: %v", again)
	}
	for _, c := range first {
		s.flight.Remove(c.(*fsm.Grant))
	}
	s.apply(first...)
	if again := plan.Place(s.view()); len(again) != 0 {
		t.Fatalf("over the limit: %v", again)
	}
	paused := true
	s.apply(&fsm.SetQueue{Name: "video", Paused: &paused, Max: new(int)})
	if again := plan.Place(s.view()); len(again) != 0 {
		t.Fatalf("paused: %v", again)
	}
}
