package simulate

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

// Run plays a scenario and writes its timeline.
func Run(scenario Scenario, w io.Writer) error {
	s := scenario.withDefaults()
	if err := s.check(); err != nil {
		return err
	}
	r := newRun(s)
	out := &timeline{Scenario: s}
	for t := 0; r.goesOn(t); t++ {
		if err := r.tick(t); err != nil {
			return err
		}
		out.tick(t, r)
	}
	out.end(r)
	_, err := io.WriteString(w, out.String())
	return err
}

// run is a scenario at play.
type run struct {
	Scenario
	state   *fsm.State
	index   uint64
	flight  *plan.Flight
	workers []*worker
	jobs    []task.JobID
	events  []task.Event // of the tick
}

// worker is the model of one machine.
type worker struct {
	id          task.NodeID
	up          bool
	incarnation uint64
	heard       int // last tick in which it was
}

func newRun(s Scenario) *run {
	r := &run{Scenario: s, state: fsm.New(), flight: plan.NewFlight()}
	for _, name := range s.Workers {
		r.workers = append(r.workers, &worker{id: task.NodeID(name)})
	}
	return r
}

// goesOn tells whether a tick is played.
func (r *run) goesOn(t int) bool {
	if r.Until > 0 {
		return t <= r.Until
	}
	to := slices.Max(r.Triggers)
	for _, times := range []map[string][]int{r.Lost, r.Back} {
		for _, at := range times {
			to = max(to, slices.Max(append(at, 0)))
		}
	}
	return t <= to || t < maxTicks && r.state.Live() > 0
}

// tick plays one tick: what happens to machines, then what they say, then what is decided.
func (r *run) tick(t int) error {
	r.events = nil
	var said []fsm.Command
	for _, w := range r.workers {
		if slices.Contains(r.Lost[string(w.id)], t) {
			w.up = false
		}
		if t == 0 && !slices.Contains(r.Lost[string(w.id)], 0) || slices.Contains(r.Back[string(w.id)], t) {
			w.up = true
			w.incarnation++
			said = append(said, &fsm.RegisterNode{Info: task.NodeInfo{ID: w.id, Name: string(w.id), Slots: r.Slots}, Incarnation: w.incarnation})
		}
	}
	if t == 0 {
		said = append(said, &fsm.SetQueue{Name: task.DefaultQueue, Balance: &r.Balance})
	}
	for _, w := range r.workers {
		said = append(said, r.says(w, t)...)
	}
	if slices.Contains(r.Triggers, t) {
		said = append(said, r.submit())
	}
	elapsed := task.Millis(0)
	if t > 0 {
		elapsed = tick
	}
	for first := true; first || len(said) > 0; first = false {
		if err := r.apply(elapsed, said); err != nil {
			return err
		}
		elapsed = 0
		said = r.decide(t)
	}
	return nil
}

// says is what a living machine tells the leader: renewals, then ends.
func (r *run) says(w *worker, t int) (out []fsm.Command) {
	if !w.up {
		return nil
	}
	w.heard = t
	var held []task.Token
	var ends []task.Report
	r.state.LeasesOf(w.id, func(l *fsm.Lease) {
		held = append(held, l.Token)
		granted := int(r.state.Job(l.Ref.Job).Shard(l.Ref.Stage, l.Ref.Shard).Granted) / int(tick)
		if t >= r.Window && t-granted >= r.RunFor {
			ends = append(ends, task.Report{Job: l.Ref.Job, Stage: l.Ref.Stage, Shard: l.Ref.Shard, Token: l.Token, Outcome: task.Outcome{End: task.EndExited}})
		}
	})
	slices.Sort(held)
	if len(held) > 0 && t%r.Heartbeat == 0 {
		out = append(out, &fsm.Renew{Node: w.id, Incarnation: w.incarnation, Tokens: held})
	}
	if len(ends) > 0 {
		slices.SortFunc(ends, func(a, b task.Report) int { return a.Shard - b.Shard })
		out = append(out, &fsm.Report{Node: w.id, Reports: ends})
	}
	return out
}

func (r *run) submit() fsm.Command {
	lease := task.LeaseTerms{TTL: tick * task.Millis(r.TTL), Heartbeat: tick * task.Millis(r.Heartbeat)}
	spec := task.Spec{Name: r.Name, Queue: task.DefaultQueue, Priority: 50, Retain: task.Day, IdempotencyWindow: task.Day, Stages: []task.StageSpec{
		{Name: task.DefaultStage, Shards: r.Shards, When: task.WhenSuccess, Run: "true", Lease: lease, Retry: task.DefaultRetry()}}}
	if r.Keyed {
		spec.Stages[0].ShardKey = "${LANJOBS_JOB_NAME}-${LANJOBS_SHARD}"
	}
	data, _ := json.Marshal(spec) // plain data: never fails
	id := task.JobID(fmt.Sprintf("job%d", len(r.jobs)+1))
	r.jobs = append(r.jobs, id)
	return &fsm.SubmitJob{RequestID: task.RequestID(id), Job: id, Spec: data, Digest: data}
}

// decide is what the leader adds: lapsed leases, silent machines, grants. The leader is none of the workers.
func (r *run) decide(t int) []fsm.Command {
	v := &plan.View{State: r.state, Now: r.state.Clock, Self: "leader", Nodes: map[task.NodeID]plan.Presence{}, Flight: r.flight}
	for _, w := range r.workers {
		p := plan.Presence{Heard: w.incarnation > 0, Silent: t-w.heard > r.TTL-1}
		if w.up {
			p.Want, p.Silent = r.Slots, false
		}
		v.Nodes[w.id] = p
	}
	out := plan.Expire(v)
	out = append(out, plan.Presences(v)...)
	if len(out) > 0 {
		return out // placing sees what came of it
	}
	return plan.Place(v)
}

func (r *run) apply(elapsed task.Millis, commands []fsm.Command) error {
	r.index++
	results, events := r.state.ApplyBatch(r.index, &fsm.Batch{Elapsed: elapsed, Leader: "leader", Commands: commands})
	for _, res := range results {
		if res.Err != nil {
			return res.Err
		}
	}
	r.events = append(r.events, events...)
	return r.state.Check()
}
