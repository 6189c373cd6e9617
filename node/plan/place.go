package plan

import (
	"math"
	"slices"

	"lanjobs/fsm"
	"lanjobs/task"
)

// MaxPollBytes bounds the checkpoints that one answer to a worker carries, give or take one: far below what a message may
// hold (transport.MaxMessageBytes), and little enough that even a slow network delivers it within a first lease.
const MaxPollBytes = 8 << 20

// Place gives grants for what is ready to the nodes that ask for work: by priority; among jobs of one priority by fair shares
// (fair.go); a job's shards in their order; each to the machine that its queue's strategy chooses among those that fit (R33,
// R34), another one than it failed on where there is one, and never the leader's own machine while another one can run the
// stage (R18).
//
// What it costs grows with what it grants, not with what is stored: see scan.go.
func Place(v *View) []fsm.Command {
	p := newPlacer(v)
	if p.free > 0 || p.own > 0 {
		p.scan()
		p.placeComing(v.Coming)
	}
	out := make([]fsm.Command, len(p.out))
	for i, g := range p.out {
		if !slices.IsSorted(g.Shards) { // by weight
			slices.Sort(g.Shards)
		}
		out[i] = g
	}
	for _, q := range p.queues {
		if q.Balance == task.BalanceRoundRobin && q.last >= 0 {
			v.Flight.turns[q.Name] = p.State.NodeByPlace(int32(q.last)).Info.ID
		}
	}
	return out
}

// placer is one plan at work.
type placer struct {
	*View
	members []*member
	free    int // assignments that the members but the leader's own machine can still take
	own     int // that the leader's own can
	fits    map[fitKey]*fit
	plain   *fit            // of every stage that asks for nothing
	refused map[string]bool // the queues that some machine refuses
	queues  []*queue
	queue   *queue // the last one asked for
	sharing sharing
	out     []*fsm.Grant
}

func newPlacer(v *View) *placer {
	p := &placer{View: v, members: v.members()}
	others := false
	for _, m := range p.members {
		for _, q := range m.info.Refuses {
			if p.refused == nil {
				p.refused = map[string]bool{}
			}
			p.refused[q] = true
		}
		if m.id == v.Self {
			p.own = m.free
			continue
		}
		p.free += m.free
		others = others || m.keeps == ""
	}
	if !others { // then it is as good as any
		p.free, p.own = p.own, 0
	}
	return p
}

// fitKey is what the machines for a stage depend on: the stage, nil if it asks for nothing, and its queue, "" if none refuses that.
type fitKey struct {
	spec  *task.StageSpec
	queue string
}

func (p *placer) fitOf(queue string, spec *task.StageSpec) *fit {
	key := fitKey{spec: spec}
	if p.refused[queue] {
		key.queue = queue
	}
	if asksNothing(spec) {
		key.spec = nil
	}
	if key == (fitKey{}) {
		if p.plain == nil {
			p.plain = p.fitting(queue, spec, p.members)
		}
		return p.plain
	}
	f := p.fits[key]
	if f == nil {
		f = p.fitting(queue, spec, p.members)
		if p.fits == nil {
			p.fits = map[fitKey]*fit{}
		}
		p.fits[key] = f
	}
	return f
}

// begin makes the cursor of a job.
func (p *placer) begin(j *fsm.Job) *cursor {
	return &cursor{job: j, queue: p.queueOf(j), active: p.activeOf(j), pick: pick{job: j}}
}

// grantOne grants a job's next shard that can be placed, if there is one.
func (p *placer) grantOne(c *cursor) bool {
	if c.queue.room <= 0 {
		return false
	}
	for ; c.pick.stage < len(c.job.Stages); c.pick.stage++ {
		if !c.begun {
			p.beginStage(c)
		}
		if c.left > 0 && p.grantOf(c) {
			return true
		}
		c.begun = false
	}
	return false
}

// beginStage looks whether a stage has shards to grant, and machines for them.
func (p *placer) beginStage(c *cursor) {
	c.begun, c.left, c.from, c.next, c.order, c.looks, c.grants = true, p.leftOf(c.job, c.pick.stage), 0, 0, nil, 0, nil
	c.pick.work = 0
	if c.left <= 0 {
		return
	}
	spec := &c.job.Spec.Stages[c.pick.stage]
	if c.fit = p.fitOf(c.job.Queue(), spec); !c.fit.anyRoom() {
		c.left = 0
		return
	}
	if len(spec.Weights) > 0 {
		c.job.EachReady(c.pick.stage, func(shard int) bool { c.order = append(c.order, shard); return true })
	} else if len(p.Flight.looked) > 0 {
		c.from = p.Flight.looked[stageKey{c.job.ID, c.pick.stage}]
		c.next = c.from
	}
}

// maxLooks bounds the shards of a stage that are looked at in vain in one plan: those that wait for a machine of their own.
const maxLooks = 4096

// grantOf grants the stage's next shard that can be placed.
func (p *placer) grantOf(c *cursor) bool {
	for {
		shard, ok := c.nextShard()
		if !ok {
			if c.from > 0 { // from the beginning next time
				delete(p.Flight.looked, stageKey{c.job.ID, c.pick.stage})
				p.Flight.scan.more = true
			}
			return false
		}
		c.pick.shard = shard
		if p.Flight.has(c.ref()) {
			continue
		}
		if i := p.chooseSeat(c); i >= 0 {
			p.grant(c, i)
			return true
		}
		if !c.fit.anyRoom() {
			return false
		}
		if c.looks++; c.looks >= maxLooks {
			p.Flight.looked[stageKey{c.job.ID, c.pick.stage}] = shard + 1
			p.Flight.scan.more = true
			return false
		}
	}
}

// nextShard gives the next shard of the stage in the order of grants.
func (c *cursor) nextShard() (shard int, ok bool) {
	if c.order != nil {
		if len(c.order) == 0 {
			return 0, false
		}
		shard, c.order = c.order[0], c.order[1:]
		return shard, true
	}
	shard = c.job.NextReady(c.pick.stage, c.next)
	c.next = shard + 1
	return shard, shard >= 0
}

// grant books a shard for a seat.
func (p *placer) grant(c *cursor, i int) {
	m := c.fit.seats[i].member
	data := 0
	if cp := c.job.Shard(c.pick.stage, c.pick.shard).Checkpoint(); cp != nil {
		data = len(cp.Data)
	}
	before := m.free
	m.give(&c.fit.need, data)
	if m.id == p.Self && p.own > 0 {
		p.own -= before - m.free
	} else {
		p.free -= before - m.free
	}
	c.active++
	c.left--
	if c.queue.room != math.MaxInt {
		c.queue.room--
	}
	c.queue.last = m.at
	for k := range c.grants {
		if c.grants[k].at == m.at {
			c.grants[k].grant.Shards = append(c.grants[k].grant.Shards, c.pick.shard)
			return
		}
	}
	g := &fsm.Grant{Node: m.id, Incarnation: m.node.Incarnation, Job: c.job.ID, Stage: c.pick.stage, Shards: []int{c.pick.shard}}
	c.grants = append(c.grants, seated{m.at, g})
	p.out = append(p.out, g)
}
