package plan

import (
	"fmt"
	"strings"

	"lanjobs/fsm"
	"lanjobs/task"
)

// Explain says why a shard is not running (R41): what keeps it from every machine, or else machine by machine what keeps each
// from taking it, by the code that places. nil = there is no such shard.
func Explain(v *View, job task.JobID, stage, shard int) []Reason {
	j := v.State.Job(job)
	if j == nil || j.Shard(stage, shard) == nil {
		return nil
	}
	if v.Flight == nil {
		known := *v
		known.Flight = NewFlight()
		v = &known
	}
	p := newPlacer(v)
	if r, all := p.forAll(j, stage, shard); all {
		return []Reason{r}
	}
	return p.perMachine(j, stage, shard)
}

// forAll is what keeps a shard from every machine.
func (p *placer) forAll(j *fsm.Job, stage, shard int) (Reason, bool) {
	st, spec, sh := &j.Stages[stage], &j.Spec.Stages[stage], j.Shard(stage, shard)
	q := p.State.Queue(j.Queue())
	switch {
	case sh.State.Leased():
		return Reason{Kind: KindRuns, Text: "is " + sh.State.String() + " on " + p.nameOf(p.State.NodeByPlace(sh.Node))}, true
	case sh.State.Done():
		return Reason{Kind: KindDone, Text: "is " + sh.State.String()}, true
	case j.State.Final(), st.State.Done():
		return Reason{Kind: KindStageDone, Text: fmt.Sprintf("stage %s is %s", spec.Name, st.State), Change: "lanjobs retry " + string(j.ID)}, true
	case j.Cancelling:
		return Reason{Kind: KindCancelling, Text: "the job is being cancelled: " + j.CancelReason}, true
	case st.State == task.StageWaiting:
		return Reason{Kind: KindNeeds, Text: "waits for " + undone(j, stage)}, true
	case sh.Due > p.Now:
		text := "waits " + seconds(sh.Due.Sub(p.Now)) + " before it is tried again"
		if h := sh.History(); len(h) > 0 {
			text += ", after: " + h[len(h)-1].Outcome.String()
		}
		return Reason{Kind: KindBackoff, Text: text}, true
	case j.Paused:
		return Reason{Kind: KindJobPaused, Text: "the job is paused", Change: "lanjobs resume " + string(j.ID)}, true
	case q != nil && q.Paused:
		return Reason{Kind: KindQueuePaused, Text: "queue " + q.Name + " is paused", Change: "lanjobs queue resume " + q.Name}, true
	case q != nil && q.Room() <= p.Flight.queues[q.Name] && q.Max > 0:
		return Reason{Kind: KindQueueFull, Text: fmt.Sprintf("queue %s is full: %d of %d", q.Name, q.Active, q.Max), Change: "lanjobs queue set " + q.Name + " --max N"}, true
	case p.Flight.has(task.ShardRef{Job: j.ID, Stage: stage, Shard: shard}):
		return Reason{Kind: KindGranting, Text: "is being given to a machine just now"}, true
	case spec.Parallelism > 0 && p.leftOf(j, stage) <= 0:
		return Reason{Kind: KindParallelism, Text: fmt.Sprintf("%d of %d shards of stage %s run at once (parallelism)", st.Active(), spec.Parallelism, spec.Name)}, true
	case len(p.members) == 0:
		return Reason{Kind: KindNoMachine, Text: "the cluster has no machine", Change: "lanjobs join"}, true
	}
	return Reason{}, false
}

// perMachine asks every machine, by the steps of Place for one shard.
func (p *placer) perMachine(j *fsm.Job, stage, shard int) []Reason {
	spec := &j.Spec.Stages[stage]
	c := p.begin(j)
	c.pick.stage, c.pick.shard, c.fit = stage, shard, p.fitOf(j.Queue(), spec)
	chosen := p.chooseSeat(c)
	out := make([]Reason, 0, len(p.members))
	for _, m := range p.members {
		r := Reason{Node: m.id, Kind: p.judgeStage(j.Queue(), spec, c.fit.need, m)}
		seat := -1
		for i := range c.fit.seats {
			if c.fit.seats[i].member == m {
				seat = i
			}
		}
		switch {
		case r.Kind != "":
		case seat < 0:
			r.Kind = KindLeads
		default:
			r.Kind = p.judgeShard(c, seat, chosen)
		}
		p.say(&r, c, m)
		out = append(out, r)
	}
	return out
}

// judgeShard is what keeps a machine that fits the stage from one of its shards.
func (p *placer) judgeShard(c *cursor, i, chosen int) Kind {
	m := c.fit.seats[i].member
	history := c.job.Shard(c.pick.stage, c.pick.shard).History()
	switch {
	case i == chosen:
		return ""
	case c.job.Spec.Stages[c.pick.stage].Broadcast && c.job.PinnedTo(c.pick.stage, c.pick.shard) != m.id:
		return KindPinned
	case m.held >= m.info.Slots:
		return KindFull
	case m.free > 0 && !m.enough(&c.fit.need):
		return KindResources
	case troubled(history, m.id):
		return KindFailed
	case p.ownerOf(c) >= 0 && p.ownerOf(c) != i:
		return KindBelongs
	case m.free <= 0:
		return KindAsked
	}
	return KindOther
}

// ownerOf is the seat that the strategy gives the shard to sooner or later, -1 if it may be any.
func (p *placer) ownerOf(c *cursor) int {
	s, ok := c.queue.strategy.(owning)
	history := c.job.Shard(c.pick.stage, c.pick.shard).History()
	if !ok || c.job.Spec.Stages[c.pick.stage].Broadcast || len(c.fit.seats) == 0 {
		return -1
	}
	clean, at := c.fit.without(history)
	if len(clean.seats) == 0 {
		return s.owner(&c.pick, c.fit)
	}
	return at[s.owner(&c.pick, clean)]
}

// undone names the stages that a stage still waits for.
func undone(j *fsm.Job, stage int) string {
	var texts []string
	for _, name := range j.Spec.Stages[stage].Needs {
		if i := j.Spec.Stage(name); i >= 0 && !j.Stages[i].State.Done() {
			st := &j.Stages[i]
			done := st.Counts[task.ShardSucceeded] + st.Counts[task.ShardFailed] + st.Counts[task.ShardCancelled]
			texts = append(texts, fmt.Sprintf("stage %s (%d of %d shards done)", name, done, st.Len()))
		}
	}
	return strings.Join(texts, " and ")
}
