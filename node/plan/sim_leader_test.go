package plan_test

import (
	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

type simPoll struct {
	want int
	fn   func([]task.Assignment)
}

// ask sends a command to the leader and repeats it until an answer comes.
func (s *sim) ask(c fsm.Command, reply func(fsm.Result)) {
	answered := false
	var try func()
	try = func() {
		if answered {
			return
		}
		s.propose(c, func(r fsm.Result) {
			if !answered {
				answered = true
				if reply != nil {
					reply(r)
				}
			}
		})
		s.after(3000, try)
	}
	try()
}

// propose is one message to the leader: it may be lost on the way there or back.
func (s *sim) propose(c fsm.Command, reply func(fsm.Result)) {
	if s.chance(s.f.loss) {
		return
	}
	s.after(s.delay(), func() {
		if s.leads {
			s.queue = append(s.queue, pending{c, func(r fsm.Result) {
				if !s.chance(s.f.loss) {
					s.after(s.delay(), func() { reply(r) })
				}
			}})
			s.write()
		}
	})
}

func (s *sim) elect() {
	s.leads, s.measured = true, s.now
	s.term++
	s.queue = []pending{{&fsm.Elected{Node: "m0", Term: uint64(s.term)}, func(fsm.Result) {}}}
	s.write()
	s.tick(s.term)
	if s.f.leader > 0 {
		s.after(500+int64(s.r.Intn(30000)), func() {
			if s.chance(s.f.leader) {
				s.depose()
			}
		})
	}
}

func (s *sim) depose() {
	s.leads, s.queue, s.parked = false, nil, map[task.NodeID]*simPoll{}
	s.after(500+int64(s.r.Intn(2500)), s.elect)
}

// tick is the writer's timer.
func (s *sim) tick(term int) {
	s.after(50, func() {
		if s.leads && s.term == term {
			s.write()
			s.tick(term)
		}
	})
}

// write proposes a batch as the leader's writer does: time led, what arrived, decisions.
func (s *sim) write() {
	if s.busy || !s.leads {
		return
	}
	led := task.Millis(s.now - s.measured)
	b := &fsm.Batch{Elapsed: min(led, fsm.MaxElapsed), Wall: s.r.Int63n(1 << 50), Leader: "m0"} // wall clocks are nonsense on purpose (I8)
	queue := s.queue
	for _, p := range queue {
		b.Commands = append(b.Commands, p.cmd)
	}
	v := &plan.View{State: s.st, Now: s.st.Clock.Add(b.Elapsed), Nodes: map[task.NodeID]plan.Presence{}, Flight: plan.NewFlight()}
	for id, p := range s.parked {
		v.Nodes[id] = plan.Presence{Want: p.want, Heard: true}
	}
	b.Commands = append(b.Commands, plan.Expire(v)...)
	grants := plan.Place(v)
	b.Commands = append(b.Commands, grants...)
	due, outstanding := s.st.Due()
	if len(b.Commands) == 0 && !(outstanding && (due <= v.Now || led >= 5000)) {
		return
	}
	s.measured, s.queue, s.busy = s.now, nil, true
	polls := map[task.NodeID]*simPoll{}
	for _, c := range grants {
		g := c.(*fsm.Grant)
		if p := s.parked[g.Node]; p != nil {
			polls[g.Node] = p
		}
	}
	for id := range polls {
		delete(s.parked, id)
	}
	term := s.term
	s.after(1+int64(s.r.Intn(15)), func() { s.commit(b, queue, polls, term) })
}

func (s *sim) commit(b *fsm.Batch, queue []pending, polls map[task.NodeID]*simPoll, term int) {
	s.busy = false
	led := s.leads && s.term == term
	if !led && s.r.Intn(2) == 0 {
		return // proposed by a leader that fell: lost
	}
	s.index++
	results, evs, err := s.st.Apply(s.index, b.Encode())
	if err != nil {
		s.fail("%v", err)
	}
	if err := s.st.Check(); err != nil {
		s.fail("%v", err)
	}
	for _, e := range evs {
		s.audit[e.Kind]++
	}
	if !led {
		return // committed, but nobody answers
	}
	for i, p := range queue {
		p.reply(results[i])
	}
	given := map[task.NodeID][]task.Assignment{}
	for i := len(queue); i < len(b.Commands); i++ {
		g, ok := b.Commands[i].(*fsm.Grant)
		if !ok {
			continue
		}
		for k, tok := range results[i].Tokens {
			if tok != 0 {
				sh := s.st.Job(g.Job).Shard(g.Stage, g.Shards[k])
				given[g.Node] = append(given[g.Node], task.Assignment{Job: g.Job, Stage: g.Stage, Shard: g.Shards[k], Token: tok,
					Attempt: int(sh.Tries), FirstTTL: s.st.Job(g.Job).Spec.Stages[g.Stage].Lease.FirstTTL(), Checkpoint: sh.Checkpoint()})
			}
		}
	}
	for _, m := range s.machines {
		if p := polls[m.id]; p != nil && !s.chance(s.f.loss) {
			as := given[m.id]
			s.after(s.delay(), func() { p.fn(as) })
		}
	}
	s.write()
}
