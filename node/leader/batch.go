package leader

import (
	"context"
	"fmt"
	"slices"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

// batch is one entry on its way: the requests it answers and the grants it decided.
type batch struct {
	requests []*request
	commands []fsm.Command         // those of the requests, then the decisions
	polls    map[task.NodeID]*poll // that its grants will answer
	orders   bool                  // it may have given holders an order to stop
}

// step writes one batch if there is anything to write and room in flight. It tells whether it did.
func (t *term) step(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	t.mu.Lock()
	if t.inFlight >= maxInFlight || t.quiet != nil {
		t.mu.Unlock()
		return false
	}
	requests := t.take()
	t.mu.Unlock()

	b := &batch{requests: requests}
	entry := &fsm.Batch{Leader: t.cfg.Self}
	for _, r := range requests {
		entry.Commands = append(entry.Commands, r.cmd)
		switch r.cmd.(type) {
		case *fsm.CancelJob, *fsm.SetNode, *fsm.FireSchedule: // a run by hand may replace another
			b.orders = true
		}
	}
	must := t.decide(b, entry)
	if len(entry.Commands) == 0 && !must {
		return false
	}
	t.measure(entry)
	b.commands = entry.Commands
	t.mu.Lock()
	t.inFlight++
	t.mu.Unlock()
	future := t.cfg.Log.Propose(entry.Encode())
	t.batches.Go(func() { t.settle(ctx, b, future) })
	return true
}

// take removes from the queue what fits into one batch. The caller holds mu.
func (t *term) take() []*request {
	var buf []byte
	var last *fsm.SubmitJob
	size, n := 0, 0
	for _, r := range t.queue {
		buf = buf[:0]
		if submit, ok := r.cmd.(*fsm.SubmitJob); ok && submit.SameJob(last) {
			size += sameJobBytes
		} else {
			if ok {
				last = submit
			}
			fsm.EncodeCommand(&buf, r.cmd)
		}
		if n > 0 && size+len(buf) > maxBatchBytes {
			break
		}
		size += len(buf)
		n++
	}
	out := t.queue[:n:n]
	t.queue = t.queue[n:]
	if len(t.queue) == 0 {
		t.queue = nil
	}
	return out
}

// measure gives the batch the time led since the last one: up to MaxElapsed to the cluster clock, the rest as idle time.
// What is under a millisecond is kept for the next.
func (t *term) measure(entry *fsm.Batch) {
	led := task.MillisOf(t.cfg.Clock.Awake() - t.measured)
	t.measured += led.Duration()
	entry.Elapsed = min(led, fsm.MaxElapsed)
	entry.Idle = led - entry.Elapsed
}

// decide adds the plan's commands. must tells that a batch is needed even without any, to move the clock.
func (t *term) decide(b *batch, entry *fsm.Batch) (must bool) {
	presence, polls := t.sessions.offers()
	for _, c := range entry.Commands {
		if r, ok := c.(*fsm.Report); ok {
			p := presence[r.Node]
			p.Ending += len(r.Reports)
			presence[r.Node] = p
		}
	}
	awake := t.cfg.Clock.Awake()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cfg.Log.Read(func(s *fsm.State) {
		wall := t.wall(s)
		entry.Wall = wall.UnixMilli()
		t.sessions.judge(s, presence)
		t.note(s, b, entry.Commands, awake)
		entry.Together = s.Members() >= 2
		v := &plan.View{State: s, Now: t.now(s), Led: t.led(s), Self: t.cfg.Self, Nodes: presence, Flight: t.flight, Lacks: &t.lacks, Coming: coming(s, entry.Commands, polls)}
		decisions := plan.Expire(v)
		decisions = append(decisions, plan.Presences(v)...)
		decisions = append(decisions, t.ending(b, plan.ExpireJobs(v))...)
		decisions = append(decisions, t.ending(b, t.timetable.Schedules(v, wall))...)
		grants := plan.Place(v)
		decisions = append(decisions, grants...)
		if len(grants) == 0 && awake-t.lastSplit >= splitEvery {
			t.lastSplit = awake
			decisions = append(decisions, plan.Split(v)...)
		}
		if awake-t.lastCollect >= collectEvery {
			t.lastCollect = awake
			collected, more := plan.Collect(v)
			if more {
				t.lastCollect += collectAgain - collectEvery
			}
			decisions = append(decisions, collected...)
		}
		entry.Commands = append(entry.Commands, decisions...)
		b.polls = t.reserve(v, decisions, polls)
		if at, ok := t.due(s); ok && t.inFlight == 0 {
			must = at <= v.Now || awake-t.measured >= keepAlive
		}
		if at, ok := plan.NextDrain(s, s.Clock); ok && at <= v.Now {
			b.orders = true
		}
	})
	return must
}

// coming gives the jobs that the entry stores, as many as the parked polls could take shards of.
func coming(s *fsm.State, commands []fsm.Command, polls map[task.NodeID]*poll) (jobs []*fsm.Job) {
	room := 0
	for _, p := range polls {
		room += p.want
	}
	ids := map[task.JobID]bool{} // of two that drew one id only the first is stored
	for _, c := range commands {
		if len(jobs) >= room {
			break
		}
		if submit, ok := c.(*fsm.SubmitJob); ok && !ids[submit.Job] {
			ids[submit.Job] = true
			if j := s.Preview(submit); j != nil {
				jobs = append(jobs, j)
			}
		}
	}
	return jobs
}

// reserve notes grants as being in flight and gives the polls that they will answer. The caller holds mu.
func (t *term) reserve(v *plan.View, decisions []fsm.Command, polls map[task.NodeID]*poll) map[task.NodeID]*poll {
	out := map[task.NodeID]*poll{}
	for _, c := range decisions {
		if g, ok := c.(*fsm.Grant); ok {
			t.flight.Add(v.Job(g.Job), g)
			out[g.Node] = polls[g.Node]
		}
	}
	t.sessions.granting(out)
	return out
}

// settle answers the requests of a batch and delivers its grants once it was applied.
func (t *term) settle(ctx context.Context, b *batch, f Future) {
	results, err := f.Wait(ctx)
	if err == nil && len(results) != len(b.commands) {
		err = fmt.Errorf("%d results for %d commands", len(results), len(b.commands))
	}
	t.mu.Lock()
	t.inFlight--
	t.settled()
	for _, c := range b.commands {
		if g, ok := c.(*fsm.Grant); ok {
			t.flight.Remove(g)
		}
	}
	t.mu.Unlock()
	if err != nil {
		t.cfg.Slog.Debug("batch not applied", "commands", len(b.commands), "error", err)
		for _, r := range b.requests {
			r.done <- outcome{err: errTermOver()}
		}
		t.sessions.release(b.polls)
		t.nudge()
		return
	}
	for i, r := range b.requests {
		r.done <- outcome{result: results[i]}
	}
	t.deliver(b, results)
	if b.orders {
		t.sessions.sendOrders()
	}
	t.nudge()
}

// deliver answers the polls with what they were granted.
func (t *term) deliver(b *batch, results []fsm.Result) {
	if len(b.polls) == 0 {
		return
	}
	granted, specs := make(map[task.NodeID][]task.Assignment, len(b.polls)), map[string]string{}
	t.cfg.Log.Read(func(s *fsm.State) {
		for i, c := range b.commands {
			g, ok := c.(*fsm.Grant)
			if !ok {
				continue
			}
			granted[g.Node] = slices.Grow(granted[g.Node], len(g.Shards))
			for n, tok := range results[i].Tokens {
				if a, ok := assignment(s, g.Job, g.Stage, g.Shards[n], tok); ok {
					granted[g.Node] = append(granted[g.Node], a)
					specs[a.SpecDigest] = s.Job(g.Job).Spec.JSON
				}
			}
		}
	})
	for node, p := range b.polls {
		t.sessions.answer(p, granted[node], specs)
	}
}

// assignment is a granted shard as its worker gets it; ok is false if the grant was refused or is over already.
func assignment(s *fsm.State, job task.JobID, stage, shard int, tok task.Token) (task.Assignment, bool) {
	j := s.Job(job)
	if tok == 0 || j == nil {
		return task.Assignment{}, false
	}
	sh := j.Shard(stage, shard)
	if sh == nil || sh.Token != tok || !sh.State.Leased() {
		return task.Assignment{}, false
	}
	a := task.Assignment{Job: job, Stage: stage, Shard: shard, Attempt: int(sh.Tries), Token: tok, SpecDigest: j.Spec.Digest,
		FirstTTL: j.Spec.Stages[stage].Lease.FirstTTL(), Checkpoint: sh.Checkpoint(), ScheduledFor: j.ScheduledFor,
		Item: j.Item(stage, shard), Of: j.Stages[stage].Len()}
	if r, ok := j.RangeOf(stage, shard); ok {
		a.Range = &r
	}
	return a, true
}
