package plan

import (
	"lanjobs/fsm"
	"lanjobs/task"
)

// Jobs of one priority share what is free by their number of active shards (max-min fairness): the next shard granted is
// always one of the job that has the fewest, and of the oldest of those. So a job of 100,000 shards neither starves a job of
// one nor is starved by many of one, and alone it gets everything.

// cursor is a job in one plan, and where in it the plan stands.
type cursor struct {
	job    *fsm.Job
	queue  *queue
	active int // leases, and grants in flight and in this plan
	pick   pick

	begun  bool // the stage
	fit    *fit
	left   int   // that may be granted of the stage
	from   int   // first shard looked at
	next   int   // next shard to look at
	order  []int // instead, of a stage with weights: the shards that are left to look at
	looks  int   // shards looked at in vain
	grants []seated
}

// seated is a grant of this plan and the member it goes to.
type seated struct {
	at    int
	grant *fsm.Grant
}

// sharing is a heap of cursors, the one that is to get the next shard first.
type sharing []*cursor

func (h sharing) before(i, j int) bool {
	return h[i].active < h[j].active || h[i].active == h[j].active && h[i].job.Seq < h[j].job.Seq
}

func (h *sharing) push(c *cursor) {
	*h = append(*h, c)
	s := *h
	for i := len(s) - 1; i > 0 && s.before(i, (i-1)/2); i = (i - 1) / 2 {
		s[i], s[(i-1)/2] = s[(i-1)/2], s[i]
	}
}

// sink puts the first one at its place again after it has got more.
func (h sharing) sink() {
	for i := 0; ; {
		least := i
		for _, child := range [...]int{2*i + 1, 2*i + 2} {
			if child < len(h) && h.before(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// drop takes the first one out.
func (h *sharing) drop() {
	s := *h
	s[0] = s[len(s)-1]
	*h = s[:len(s)-1]
	h.sink()
}

// share gives shards of the gathered jobs until no room is left or none of them can be placed.
func (p *placer) share() {
	for len(p.sharing) > 1 && p.free+p.own > 0 {
		if p.grantOne(p.sharing[0]) {
			p.sharing.sink()
		} else {
			p.sharing.drop()
		}
	}
	if len(p.sharing) == 1 {
		for p.free+p.own > 0 && p.grantOne(p.sharing[0]) {
		}
	}
	p.sharing = p.sharing[:0]
}

// queue is a queue in one plan.
type queue struct {
	*fsm.Queue
	room     int // leases that its jobs may still get
	strategy strategy
	last     int // member.at of who got its last shard, -1 = nobody yet
}

// queueOf gives the queue of a job.
func (p *placer) queueOf(j *fsm.Job) *queue {
	name := j.Queue()
	if p.queue != nil && p.queue.Name == name {
		return p.queue
	}
	for _, q := range p.queues {
		if q.Name == name {
			p.queue = q
			return q
		}
	}
	q := &queue{Queue: p.State.Queue(name), last: -1}
	if q.Queue == nil {
		q.Queue = &fsm.Queue{Name: name, Paused: true} // never: a queue in use cannot be removed
	}
	q.room, q.strategy = q.Room(), strategyOf(q.Balance)
	if q.Max > 0 {
		q.room -= p.Flight.queues[name]
	}
	if id, ok := p.Flight.turns[name]; ok {
		for _, m := range p.members {
			if m.id == id {
				q.last = m.at
			}
		}
	}
	p.queues = append(p.queues, q)
	p.queue = q
	return q
}

// activeOf is how many shards of a job run or are on their way.
func (v *View) activeOf(j *fsm.Job) int {
	n := v.Flight.jobs[j.ID]
	for i := range j.Stages {
		n += j.Stages[i].Active()
	}
	return n
}

// leftOf is how many shards of a stage may be granted now.
func (v *View) leftOf(j *fsm.Job, stage int) int {
	n := j.Grantable(stage)
	if n <= 0 || len(v.Flight.stages) == 0 {
		return n
	}
	flying := v.Flight.stages[stageKey{j.ID, stage}]
	if max := j.Spec.Stages[stage].Parallelism; max > 0 {
		return min(n, max-j.Stages[stage].Active()-flying)
	}
	return n
}

// ref names the shard that a cursor looks at.
func (c *cursor) ref() task.ShardRef {
	return task.ShardRef{Job: c.job.ID, Stage: c.pick.stage, Shard: c.pick.shard}
}
