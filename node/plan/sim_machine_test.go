package plan_test

import (
	"lanjobs/fsm"
	"lanjobs/task"
)

type machine struct {
	s       *sim
	id      task.NodeID
	rate    float64
	inc     uint64
	asleep  bool
	late    []func() // what arrived while asleep
	running map[task.Token]*attempt
	slots   int
	life    int // of the agent: answers to an earlier one are dropped
	polling bool
}

type attempt struct {
	a        task.Assignment
	d        task.Deadlines
	acting   bool
	step     uint64
	reported bool
}

func (m *machine) boot() task.Boot { return task.Boot(float64(m.s.now)*m.rate*1e6) + 1e12 }

// truly is how long in true time until the machine's boot clock shows b.
func (m *machine) truly(b task.Boot) int64 { return int64(float64(b-m.boot())/m.rate/1e6) + 1 }

// awake runs f now, or first thing after waking.
func (m *machine) awake(f func()) {
	if m.asleep {
		m.late = append(m.late, f)
		return
	}
	f()
}

func (m *machine) in(ms int64, f func()) { m.s.after(ms, func() { m.awake(f) }) }

func (m *machine) start() {
	m.inc++
	m.life++
	m.polling = false
	m.register(m.life)
	m.mishap(m.life)
}

func (m *machine) register(life int) {
	held := make([]task.Token, 0, len(m.running))
	for t := range m.running {
		held = append(held, t)
	}
	m.s.ask(&fsm.RegisterNode{Info: task.NodeInfo{ID: m.id, Name: string(m.id), Slots: m.slots}, Incarnation: m.inc, Held: held}, func(fsm.Result) {
		m.awake(func() {
			if life == m.life {
				m.poll(life)
			}
		})
	})
}

func (m *machine) poll(life int) {
	if m.polling || life != m.life {
		return
	}
	m.polling = true
	sent := m.boot()
	done := false
	next := func(as []task.Assignment, fresh bool) {
		if done || life != m.life {
			return
		}
		done, m.polling = true, false
		for _, a := range as {
			m.take(a, sent, fresh)
		}
		m.in(1, func() { m.poll(life) })
	}
	want := m.slots - len(m.running)
	if !m.s.chance(m.s.f.loss) {
		m.s.after(m.s.delay(), func() { m.park(want, next) })
	}
	m.in(10_000, func() { next(nil, true) })
}

// park is the leader's side of a poll: leases that the node does not know are sent again, to be renewed before they start.
func (m *machine) park(want int, next func([]task.Assignment, bool)) {
	s := m.s
	if !s.leads {
		return
	}
	var again []task.Assignment
	s.st.LeasesOf(m.id, func(l *fsm.Lease) {
		if m.running[l.Token] == nil {
			sh := s.st.Job(l.Ref.Job).Shard(l.Ref.Stage, l.Ref.Shard)
			again = append(again, task.Assignment{Job: l.Ref.Job, Stage: l.Ref.Stage, Shard: l.Ref.Shard, Token: l.Token, MustRenew: true, Checkpoint: sh.Checkpoint()})
		}
	})
	if len(again) > 0 {
		s.after(s.delay(), func() { m.awake(func() { next(again, false) }) })
		return
	}
	if want > 0 {
		s.parked[m.id] = &simPoll{want: want, fn: func(as []task.Assignment) { m.awake(func() { next(as, true) }) }}
		s.write()
	}
}

func (m *machine) terms(a *task.Assignment) task.LeaseTerms {
	return m.s.st.Job(a.Job).Spec.Stages[a.Stage].Lease
}

func (m *machine) deadlines(l task.LeaseTerms, sent task.Boot, ttl task.Millis) task.Deadlines {
	if m.s.f.fromReply {
		sent = m.boot()
	}
	d := l.HolderDeadlines(sent, ttl)
	if m.s.f.share != 0 {
		d.End = sent.Add(task.Millis(float64(ttl) * m.s.f.share).Duration())
		d.Kill, d.Term = d.End, d.End
	}
	return d
}

// take starts an assignment, at once if the request that fetched it is young, else after its first renewal.
func (m *machine) take(a task.Assignment, sent task.Boot, fresh bool) {
	if m.running[a.Token] != nil {
		return
	}
	l := m.terms(&a)
	x := &attempt{a: a}
	m.running[a.Token] = x
	if a.Checkpoint != nil {
		x.step = a.Checkpoint.Seq
	}
	if !a.MustRenew && fresh {
		d := m.deadlines(l, sent, a.FirstTTL)
		if d.Remaining(m.boot()) > a.FirstTTL.Duration()*4/10 || m.s.f.fromReply {
			x.d = d
			m.act(x)
		}
	}
	m.renew(x)
}

func (m *machine) act(x *attempt) {
	if newest := m.s.acked[x.a.Ref()]; x.step < newest {
		m.s.fail("%v resumes at %d, %d was acknowledged", x.a.Ref(), x.step, newest)
	}
	x.acting = true
	m.s.overlap(x.a.Ref())
	m.watch(x)
	m.work(x)
}

// watch kills the attempt at its deadline; the guard does so up to a tenth of a second late, never past the end.
func (m *machine) watch(x *attempt) {
	at := x.d.Kill
	m.in(m.truly(at)+int64(m.s.r.Intn(int(min(100, task.Slack(m.terms(&x.a).TTL))))), func() {
		if !x.acting {
			return
		}
		if m.boot() >= x.d.Kill {
			m.end(x, task.Outcome{End: task.EndLeaseLost})
		} else if x.d.Kill != at {
			m.watch(x)
		}
	})
}

// work goes on step by step; each step is a checkpoint.
func (m *machine) work(x *attempt) {
	m.in(200+int64(m.s.r.Intn(m.s.pace)), func() {
		if !x.acting {
			return
		}
		m.s.overlap(x.a.Ref())
		x.step++
		seq := x.step
		if seq > 6 {
			m.end(x, task.Outcome{End: task.EndExited})
			return
		}
		m.s.ask(&fsm.Checkpoint{Ref: x.a.Ref(), Token: x.a.Token, Seq: seq, Data: []byte{byte(seq)}}, func(r fsm.Result) {
			if r.Err == nil && m.s.acked[x.a.Ref()] < seq && m.s.st.Lease(x.a.Token) != nil {
				m.s.acked[x.a.Ref()] = seq
			}
		})
		m.work(x)
	})
}

// end stops the process and reports until acknowledged.
func (m *machine) end(x *attempt, o task.Outcome) {
	x.acting = false
	if m.running[x.a.Token] != x || x.reported {
		return
	}
	x.reported = true
	life := m.life
	m.s.ask(&fsm.Report{Node: m.id, Reports: []task.Report{{Job: x.a.Job, Stage: x.a.Stage, Shard: x.a.Shard, Token: x.a.Token, Outcome: o}}}, func(fsm.Result) {
		m.awake(func() {
			if life == m.life {
				delete(m.running, x.a.Token)
			}
		})
	})
}

func (m *machine) renew(x *attempt) {
	if m.running[x.a.Token] != x || x.reported {
		return
	}
	sent, life, l := m.boot(), m.life, m.terms(&x.a)
	m.s.propose(&fsm.Renew{Node: m.id, Incarnation: m.inc, Tokens: []task.Token{x.a.Token}}, func(r fsm.Result) {
		m.awake(func() {
			switch {
			case life != m.life || m.running[x.a.Token] != x || x.reported || r.Err != nil:
			case r.TTLs[0] == 0:
				m.end(x, task.Outcome{End: task.EndLeaseLost})
				delete(m.running, x.a.Token)
			default:
				d := m.deadlines(l, sent, r.TTLs[0])
				if x.acting || m.boot() < d.Term {
					x.d = x.d.Later(d)
					if !x.acting {
						m.act(x)
					}
				}
			}
		})
	})
	m.in(int64(l.Heartbeat), func() { m.renew(x) })
}

// mishap lets the machine sleep or crash now and then.
func (m *machine) mishap(life int) {
	m.s.after(2000+int64(m.s.r.Intn(20000)), func() {
		if life != m.life || m.asleep {
			return
		}
		switch {
		case m.s.chance(m.s.f.sleep):
			m.asleep = true
			m.s.after(int64(m.s.r.Intn(40000)), m.wake)
		case m.s.chance(m.s.f.crash): // power off: nothing of it runs; it comes back as a new incarnation
			m.life++
			for _, x := range m.running {
				x.acting = false
			}
			m.running = map[task.Token]*attempt{}
			m.s.after(1000+int64(m.s.r.Intn(20000)), m.start)
			return
		}
		m.mishap(life)
	})
}

// wake deals with the deadlines first, then with everything else.
func (m *machine) wake() {
	m.asleep = false
	for _, x := range m.running {
		if x.acting && m.boot() >= x.d.Kill && !m.s.f.noKill {
			m.end(x, task.Outcome{End: task.EndLeaseLost})
		}
	}
	for ref := range m.s.acked {
		m.s.overlap(ref)
	}
	late := m.late
	m.late = nil
	for _, f := range late {
		m.awake(f)
	}
}
