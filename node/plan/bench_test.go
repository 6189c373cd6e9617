package plan_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

// mill is a ledger with machines that end what they are granted at once: each turn is a plan, an entry, and the reports.
type mill struct {
	b      *testing.B
	s      *fsm.State
	index  uint64
	slots  int
	flight *plan.Flight
}

func newMill(b *testing.B, nodes, slots int) *mill {
	m := &mill{b: b, s: fsm.New(), slots: slots, flight: plan.NewFlight()}
	for i := range nodes {
		id := fmt.Sprintf("n%02d", i)
		m.apply(&fsm.RegisterNode{Info: task.NodeInfo{ID: task.NodeID(id), Name: id, Slots: slots, CPUs: 8, MemoryMB: 16 << 10}, Incarnation: 1})
	}
	return m
}

func (m *mill) apply(cs ...fsm.Command) []fsm.Result {
	m.index++
	res, _ := m.s.ApplyBatch(m.index, &fsm.Batch{Leader: "n00", Commands: cs})
	for _, r := range res {
		if r.Err != nil {
			m.b.Fatal(r.Err)
		}
	}
	return res
}

func (m *mill) submit(id string, shards int) {
	data, _ := json.Marshal(task.Spec{Name: id, Queue: "default", Priority: 50, Retain: task.Day, Stages: []task.StageSpec{simStage("s", shards, 300_000)}})
	m.apply(&fsm.SubmitJob{RequestID: task.RequestID(id), Job: task.JobID(id), Spec: data, Digest: data})
}

// view is a view in which every machine asks for want shards.
func (m *mill) view(want int) *plan.View {
	v := &plan.View{State: m.s, Self: "n00", Nodes: map[task.NodeID]plan.Presence{}, Flight: m.flight}
	for _, n := range m.s.Nodes() {
		v.Nodes[n.Info.ID] = plan.Presence{Want: want, Heard: true}
	}
	return v
}

// BenchmarkPlace is one plan over 10 machines, nothing of which is applied: ns per decision.
func BenchmarkPlace(b *testing.B) {
	for _, c := range []struct{ jobs, shards, want int }{
		{1, 100_000, 1}, {1, 100_000, 64}, {1, 1_000_000, 1}, {10, 10_000, 64}, {10_000, 1, 1}, {100_000, 1, 1}, {100_000, 1, 64},
	} {
		b.Run(fmt.Sprintf("jobs=%d/shards=%d/want=%d", c.jobs, c.shards, c.want), func(b *testing.B) {
			m := newMill(b, 10, 64)
			for i := range c.jobs {
				m.submit(fmt.Sprintf("j%06d", i), c.shards)
			}
			v := m.view(c.want)
			b.ReportAllocs()
			decided := 0
			for b.Loop() {
				for _, c := range plan.Place(v) {
					decided += len(c.(*fsm.Grant).Shards)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(decided), "ns/decision")
		})
	}
}

// BenchmarkMill is a busy cluster: 10 machines with one slot in 64 free at each plan, decisions applied, ends reported.
func BenchmarkMill(b *testing.B) {
	for _, c := range []struct{ jobs, shards int }{{1, 100_000}, {1, 1_000_000}, {100_000, 1}} {
		b.Run(fmt.Sprintf("jobs=%d/shards=%d", c.jobs, c.shards), func(b *testing.B) {
			m := newMill(b, 10, 64)
			next := 0
			fill := func() {
				for range c.jobs {
					m.submit(fmt.Sprintf("j%07d", next), c.shards)
					next++
				}
			}
			fill()
			decided := 0
			for b.Loop() {
				if m.s.Live() == 0 {
					b.StopTimer()
					fill()
					b.StartTimer()
				}
				grants := plan.Place(m.view(1))
				res := m.apply(grants...)
				ends := map[task.NodeID]*fsm.Report{}
				for i, c := range grants {
					g := c.(*fsm.Grant)
					for k, tok := range res[i].Tokens {
						if ends[g.Node] == nil {
							ends[g.Node] = &fsm.Report{Node: g.Node}
						}
						ends[g.Node].Reports = append(ends[g.Node].Reports, task.Report{Job: g.Job, Stage: g.Stage, Shard: g.Shards[k], Token: tok, Outcome: task.Outcome{End: task.EndExited}})
						decided++
					}
				}
				for _, r := range ends {
					m.apply(r)
				}
			}
			b.ReportMetric(float64(decided)/b.Elapsed().Seconds(), "decisions/s")
		})
	}
}
