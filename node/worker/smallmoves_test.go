package worker

import (
	"slices"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// move is one thing that may happen next. Faults are those of which a history has only so many.
type move struct {
	name  string
	fault bool
	can   func(w *smallWorld, m *smallMachine) bool
	do    func(w *smallWorld, m *smallMachine)
}

// moves of the world come first, then those of a machine that runs, then what the network and the leader do with a machine's
// messages, whether it runs or not.
var moves = []move{
	{name: "time passes", can: of(func(w *smallWorld) bool { return true }), do: func(w *smallWorld, _ *smallMachine) { w.tick() }},
	{name: "the leader expires", can: of(func(w *smallWorld) bool { return len(w.lapsed()) > 0 }), do: func(w *smallWorld, _ *smallMachine) {
		w.commit(&fsm.Expire{Tokens: w.lapsed()})
	}},
	{name: "another leader", fault: true, can: of(func(w *smallWorld) bool { return true }), do: func(w *smallWorld, _ *smallMachine) { w.newLeader() }},

	{name: "asks for work", can: runs(func(w *smallWorld, m *smallMachine) bool {
		return m.poll == nil && m.book.registered && !m.book.announce && len(m.book.attempts) == 0
	}), do: func(w *smallWorld, m *smallMachine) {
		m.poll = &smallPoll{incarnation: m.incarnation, sent: w.now(m), holding: m.known()}
	}},
	{name: "takes the work", can: runs(func(w *smallWorld, m *smallMachine) bool { return m.poll != nil && m.poll.reply != nil }), do: (*smallWorld).takeWork},
	{name: "renews", can: runs(func(w *smallWorld, m *smallMachine) bool {
		return m.book.registered && m.book.anyDue(w.now(m))
	}), do: func(w *smallWorld, m *smallMachine) {
		f := m.book.takeDue(w.now(m), func() {})
		f.sent = w.now(m)
		m.renewals = append(m.renewals, &smallRenewal{flight: f, incarnation: m.incarnation})
	}},
	{name: "hears of its oldest renewal", can: runs(func(w *smallWorld, m *smallMachine) bool { return m.renewed(0) }), do: func(w *smallWorld, m *smallMachine) { w.takeRenewal(m, 0) }},
	{name: "hears of its newest renewal", can: runs(func(w *smallWorld, m *smallMachine) bool { return m.renewed(1) }), do: func(w *smallWorld, m *smallMachine) { w.takeRenewal(m, 1) }},
	{name: "waits no longer for its renewals", fault: true, can: runs(func(w *smallWorld, m *smallMachine) bool {
		return slices.ContainsFunc(m.renewals, func(r *smallRenewal) bool { return !r.released })
	}), do: func(w *smallWorld, m *smallMachine) {
		for _, r := range m.renewals {
			m.book.overdue(r.flight, w.now(m))
		}
	}},
	{name: "registers", can: runs(func(w *smallWorld, m *smallMachine) bool { return m.register == nil && m.book.mustRegister() }), do: func(w *smallWorld, m *smallMachine) {
		m.register = &smallRegister{command: &fsm.RegisterNode{Info: m.info(), Incarnation: m.incarnation, Held: m.known()}}
	}},
	{name: "hears that it is registered", can: runs(func(w *smallWorld, m *smallMachine) bool { return m.register != nil && m.register.handled }), do: func(w *smallWorld, m *smallMachine) {
		m.carryOut(m.book.setRegistered(m.register.command.Held, m.register.reply, w.now(m)), w.now(m))
		m.register = nil
	}},
	{name: "task succeeds", can: runs(func(w *smallWorld, m *smallMachine) bool { return len(m.processes) > 0 }), do: func(w *smallWorld, m *smallMachine) {
		for t := range m.processes {
			m.exit(t, task.Outcome{End: task.EndExited})
		}
	}},
	{name: "freezes", fault: true, can: runs(func(*smallWorld, *smallMachine) bool { return true }), do: func(w *smallWorld, m *smallMachine) { m.frozen = true }},
	{name: "thaws", can: func(w *smallWorld, m *smallMachine) bool { return m != nil && m.frozen }, do: func(w *smallWorld, m *smallMachine) {
		m.frozen = false
		w.enforce(m)
	}},
	{name: "agent crashes", fault: true, can: runs(func(*smallWorld, *smallMachine) bool { return true }), do: func(w *smallWorld, m *smallMachine) { w.crash(m, false) }},
	{name: "crashes as a whole", fault: true, can: runs(func(*smallWorld, *smallMachine) bool { return true }), do: func(w *smallWorld, m *smallMachine) { w.crash(m, true) }},

	{name: "leader answers its poll", can: on(func(w *smallWorld, m *smallMachine) bool { return m.poll != nil && m.poll.reply == nil && w.answers(m) }), do: (*smallWorld).answerPoll},
	{name: "poll is lost", fault: true, can: on(func(w *smallWorld, m *smallMachine) bool { return m.poll != nil }), do: func(w *smallWorld, m *smallMachine) { m.poll = nil }},
	{name: "leader takes its oldest renewal", can: on(func(w *smallWorld, m *smallMachine) bool { return m.unanswered(0) }), do: func(w *smallWorld, m *smallMachine) { w.answerRenewal(m, 0) }},
	{name: "leader takes its newest renewal", can: on(func(w *smallWorld, m *smallMachine) bool { return m.unanswered(1) }), do: func(w *smallWorld, m *smallMachine) { w.answerRenewal(m, 1) }},
	{name: "oldest renewal is lost", fault: true, can: on(func(w *smallWorld, m *smallMachine) bool { return len(m.renewals) > 0 }), do: func(w *smallWorld, m *smallMachine) { w.loseRenewal(m) }},
	{name: "leader takes its registration", can: on(func(w *smallWorld, m *smallMachine) bool { return m.register != nil && !m.register.handled }), do: func(w *smallWorld, m *smallMachine) {
		m.register.reply, m.register.handled = w.commit(m.register.command)[0].Tokens, true
	}},
	{name: "registration arrives twice", fault: true, can: on(func(w *smallWorld, m *smallMachine) bool { return m.register != nil && m.register.handled }), do: func(w *smallWorld, m *smallMachine) {
		m.strays = append(m.strays, m.register.command)
	}},
	{name: "a request of its past arrives", can: on(func(w *smallWorld, m *smallMachine) bool { return len(m.strays) > 0 }), do: func(w *smallWorld, m *smallMachine) {
		w.commit(m.strays[0])
		m.strays = m.strays[1:]
	}},
	{name: "leader takes its report", can: on(func(w *smallWorld, m *smallMachine) bool { return len(m.ends) > 0 }), do: func(w *smallWorld, m *smallMachine) { w.takeReport(m, true) }},
	{name: "report arrives, its answer is lost", fault: true, can: on(func(w *smallWorld, m *smallMachine) bool { return len(m.ends) > 0 }), do: func(w *smallWorld, m *smallMachine) { w.takeReport(m, false) }},
}

func of(can func(*smallWorld) bool) func(*smallWorld, *smallMachine) bool {
	return func(w *smallWorld, m *smallMachine) bool { return m == nil && can(w) }
}

func on(can func(*smallWorld, *smallMachine) bool) func(*smallWorld, *smallMachine) bool {
	return func(w *smallWorld, m *smallMachine) bool { return m != nil && can(w, m) }
}

func runs(can func(*smallWorld, *smallMachine) bool) func(*smallWorld, *smallMachine) bool {
	return func(w *smallWorld, m *smallMachine) bool { return m != nil && !m.frozen && can(w, m) }
}

func (m *smallMachine) renewed(i int) bool { return i < len(m.renewals) && m.renewals[i].reply != nil }

func (m *smallMachine) unanswered(i int) bool {
	return i < len(m.renewals) && m.renewals[i].reply == nil
}

func (w *smallWorld) lapsed() []task.Token {
	return w.ledger.Lapsed(w.ledger.Clock.Add(min(task.MillisOf(w.led()-w.measured), fsm.MaxElapsed)))
}

// newLeader takes over: it measures from now on, so that the time since the last entry counts for nobody. Polls were parked
// with the old one.
func (w *smallWorld) newLeader() {
	w.measured = w.led()
	w.commit(&fsm.Elected{Node: "l2", Term: w.index})
	for _, m := range w.machines {
		if m.poll != nil && m.poll.reply == nil {
			m.poll = nil
		}
	}
}

// answers tells whether the leader has an answer to a parked poll.
func (w *smallWorld) answers(m *smallMachine) bool {
	return w.ledger.Node(m.id).Incarnation != m.poll.incarnation || w.ledger.Held(m.id) > 0 || w.shard().State == task.ShardPending
}

// answerPoll is leader's poll: what the node holds and does not know is sent again, else the shard is granted if it is ready.
func (w *smallWorld) answerPoll(m *smallMachine) {
	reply := &transport.PollReply{Unregistered: w.ledger.Node(m.id).Incarnation != m.poll.incarnation}
	m.poll.reply = reply
	if reply.Unregistered {
		return
	}
	w.ledger.LeasesOf(m.id, func(l *fsm.Lease) {
		if !slices.Contains(m.poll.holding, l.Token) {
			reply.Assignments = append(reply.Assignments, task.Assignment{Job: "j1", Token: l.Token, FirstTTL: smallTerms.FirstTTL(), MustRenew: true})
		}
	})
	if len(reply.Assignments) > 0 {
		return
	}
	r := w.commit(&fsm.Grant{Node: m.id, Incarnation: m.poll.incarnation, Job: "j1", Shards: []int{0}})[0]
	if r.Err != nil || len(r.Tokens) == 0 || r.Tokens[0] == 0 {
		m.poll.reply = nil
		return
	}
	t := r.Tokens[0]
	if t <= w.lastToken {
		w.fault("token %v after %v (I3)", t, w.lastToken)
	}
	w.lastToken = t
	if w.grants++; w.grants == 2 {
		w.limit = w.real + afterwards
	}
	reply.Assignments = []task.Assignment{{Job: "j1", Token: t, FirstTTL: smallTerms.FirstTTL()}}
}

func (w *smallWorld) takeWork(m *smallMachine) {
	p := m.poll
	m.poll = nil
	if p.reply.Unregistered {
		m.book.unregister()
		return
	}
	m.book.admit(p.reply.Assignments, p.sent, w.now(m), func(t task.Token) bool {
		return slices.ContainsFunc(m.ends, func(r task.Report) bool { return r.Token == t })
	})
	w.launch(m)
}

func (w *smallWorld) answerRenewal(m *smallMachine, i int) {
	r := m.renewals[i]
	r.reply = &transport.RenewReply{}
	res := w.commit(&fsm.Renew{Node: m.id, Incarnation: r.incarnation, Tokens: r.tokens})[0]
	if res.Err != nil {
		r.reply.Unregistered = true
		return
	}
	for i, ttl := range res.TTLs {
		if ttl == 0 {
			r.reply.Lost = append(r.reply.Lost, r.tokens[i])
		} else {
			r.reply.Renewed = append(r.reply.Renewed, transport.Renewal{Token: r.tokens[i], TTL: ttl})
		}
	}
}

func (w *smallWorld) takeRenewal(m *smallMachine, i int) {
	r, now := m.renewals[i], w.now(m)
	m.renewals = slices.Delete(m.renewals, i, i+1)
	moved, stops := m.book.settle(r.flight, r.reply, now)
	for _, e := range moved {
		for t := range m.processes {
			if t.Execution() == e.execution {
				m.extend(t, e.deadlines)
			}
		}
	}
	m.carryOut(stops, now)
	w.confirm(m)
}

// loseRenewal loses request or answer; the machine finds out at its time-out.
func (w *smallWorld) loseRenewal(m *smallMachine) {
	m.book.failed(m.renewals[0].flight, w.now(m))
	m.renewals = m.renewals[1:]
}

// takeReport brings the oldest report. A success may be accepted under the lease only, and counts once.
func (w *smallWorld) takeReport(m *smallMachine, answered bool) {
	r := m.ends[0]
	held, before := w.ledger.Lease(r.Token) != nil, w.shard().State
	code := w.commit(&fsm.Report{Node: m.id, Reports: []task.Report{r}})[0].Codes[0]
	after := w.shard().State
	switch {
	case code == "" && !held && after != before:
		w.fault("a report under the ended lease %v changed the shard to %v (I4)", r.Token, after)
	case code == "" && r.Outcome.End == task.EndExited && after == task.ShardSucceeded:
		if w.succeeded != 0 && w.succeeded != r.Token {
			w.fault("the shard succeeded under %v and under %v (I4)", w.succeeded, r.Token)
		}
		w.succeeded = r.Token
	}
	if answered {
		m.ends = m.ends[1:]
	}
}
