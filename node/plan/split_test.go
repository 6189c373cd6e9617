package plan_test

import (
	"testing"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

// skewed plays a range job of three shards whose numbers take unequal time: those of the first are slow. Three machines with one
// slot each work through them, report a cursor after every number, and take what the ledger says is left of theirs. It gives
// how many ticks it took.
func skewed(t *testing.T, splits bool) (ticks int, shards int) {
	s := newShop(t, 3, 1)
	st := simStage("s", 3, 300_000)
	st.Range = &task.RangeSpec{Start: 0, End: 300, Size: 100}
	s.submit("j", st, 50)
	cost := func(n int64) int { // ticks
		if n < 100 {
			return 10
		}
		return 1
	}
	type work struct {
		next int64
		busy int // ticks until the number begun is done
	}
	works := map[task.Token]*work{}
	done := map[int64]int{}
	asked := map[task.Token]int64{} // where its task was when it was asked to be split
	for ticks = 0; !s.s.Job("j").State.Final(); ticks++ {
		if ticks > 5000 {
			t.Fatal("it does not end")
		}
		s.turn()
		if splits {
			for _, c := range plan.Split(s.view()) {
				sp := c.(*fsm.SplitShard)
				w := works[sp.Token]
				if w == nil || asked[sp.Token] == w.next {
					t.Fatalf("token %d is asked to be split twice at %d", sp.Token, w.next)
				}
				asked[sp.Token] = w.next
				s.apply(sp)
			}
			if again := plan.Split(s.view()); len(again) > 0 {
				t.Fatalf("asked again at once: %+v", again[0])
			}
		}
		var held []*fsm.Lease
		s.s.Leases(func(l *fsm.Lease) { held = append(held, l) })
		for _, l := range held {
			j := s.s.Job("j")
			r, _ := j.RangeOf(0, l.Ref.Shard)
			w := works[l.Token]
			if w == nil {
				w = &work{next: r.Start, busy: cost(r.Start)}
				works[l.Token] = w
				s.apply(&fsm.Cursor{Ref: l.Ref, Token: l.Token, Cursor: w.next + 1, RequestID: task.RequestID("first")})
			}
			if w.busy--; w.busy > 0 {
				continue
			}
			done[w.next]++
			w.next++
			if r, _ = j.RangeOf(0, l.Ref.Shard); w.next < r.End {
				r = s.apply(&fsm.Cursor{Ref: l.Ref, Token: l.Token, Cursor: w.next + 1, RequestID: "c"})[0].Range
			}
			if w.next >= r.End {
				s.end(l.Token)
				continue
			}
			w.busy = cost(w.next)
		}
	}
	for n := range int64(300) {
		if done[n] != 1 {
			t.Fatalf("number %d was done %d times", n, done[n])
		}
	}
	return ticks, s.s.Job("j").Stages[0].Len()
}

// R35: a job with one slow shard ends at least 1.7 times sooner on three machines when it is split.
func TestSplittingASlowShardPaysOff(t *testing.T) {
	without, _ := skewed(t, false)
	with, shards := skewed(t, true)
	t.Logf("%d ticks without, %d with, %d shards in the end", without, with, shards)
	if ratio := float64(without) / float64(with); ratio < 1.7 {
		t.Errorf("only %.2f times sooner", ratio)
	}
}

func TestNothingIsSplitWhileShardsOfTheStageAreReadyOrNoMachineIsIdle(t *testing.T) {
	for _, c := range []struct {
		name           string
		slots, shards  int
		parallel, want int
	}{{"idle", 2, 3, 0, 3}, {"ready", 2, 9, 0, 0}, {"busy", 1, 3, 0, 0}, {"parallelism", 2, 3, 3, 0}, {"parallelism for one more", 2, 3, 4, 1}} {
		s := newShop(t, 3, c.slots)
		st := simStage("s", c.shards, 300_000)
		st.Range = &task.RangeSpec{Start: 0, End: int64(c.shards) * 100, Size: 100}
		st.Parallelism = c.parallel
		s.submit("j", st, 50)
		s.turn()
		s.s.Leases(func(l *fsm.Lease) {
			defer s.apply(&fsm.Cursor{Ref: l.Ref, Token: l.Token, Cursor: int64(l.Ref.Shard)*100 + 1})
		})
		if c.name == "ready" { // there is room, and something to fill it
			s.apply(&fsm.RegisterNode{Info: task.NodeInfo{ID: "new", Name: "new", Slots: 2}, Incarnation: 1})
		}
		got := plan.Split(s.view())
		if len(got) != c.want {
			t.Errorf("%s: %d splits, not %d", c.name, len(got), c.want)
		}
		if len(got) > 0 {
			s.apply(got...)
		}
		if again := plan.Split(s.view()); len(again) != 0 {
			t.Errorf("%s: %d more for the same room", c.name, len(again))
		}
	}
}
