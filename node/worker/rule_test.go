package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// The deadline rule (DESIGN 3): what may start on its first lease, and from where it is counted.
func TestDeadlineRule(t *testing.T) {
	terms := task.DefaultLease(task.DefaultTTL)
	for _, c := range []struct {
		name      string
		first     task.Millis
		grace     task.Millis
		mustRenew bool
		age       time.Duration // of the poll's request when the spec is here
		starts    bool
	}{
		{"fresh", 30 * task.Second, terms.StopGrace, false, 0, true},
		{"parked for a quarter", 30 * task.Second, terms.StopGrace, false, 7500 * time.Millisecond, true},
		{"just half of the share left", 30 * task.Second, task.Second, false, 12 * time.Second, true},
		{"less than half of the share left", 30 * task.Second, task.Second, false, 12100 * time.Millisecond, false},
		{"half left, SIGTERM past", 2 * task.Second, task.Second, false, 868 * time.Millisecond, false},
		{"older than its request", 30 * task.Second, terms.StopGrace, true, 0, false},
		{"long over", 30 * task.Second, terms.StopGrace, false, time.Hour, false},
	} {
		b := newBook()
		const sent = task.Boot(time.Hour)
		a := newAttempt(task.Assignment{Token: 1, FirstTTL: c.first, MustRenew: c.mustRenew})
		a.phase, a.sent = phasePreparing, sent
		b.put(a)
		own := terms
		own.StopGrace = c.grace
		_, acked, starts := b.prepare(a, own, sent.Add(c.age))
		if starts != c.starts || starts == (acked != nil) {
			t.Errorf("%s: starts %v, want %v; waits for a renewal: %v", c.name, starts, c.starts, acked != nil)
		}
		switch want := own.HolderDeadlines(sent, c.first); {
		case c.mustRenew && a.deadlines != task.Deadlines{}:
			t.Errorf("%s: believes in %v before a renewal", c.name, a.deadlines)
		case !c.mustRenew && a.deadlines != want:
			t.Errorf("%s: deadlines %v, want %v", c.name, a.deadlines, want)
		}
		if c.starts {
			continue
		}
		if _, again, ok := b.begin(a, sent.Add(time.Hour)); ok || again == nil {
			t.Errorf("%s: began without an acknowledged renewal", c.name)
		}
	}
}

// What happens to an attempt while the runner takes it over is made good right after.
func TestChangesDuringTheStart(t *testing.T) {
	b := newBook()
	a := newAttempt(task.Assignment{Token: 1, FirstTTL: 30 * task.Second})
	b.put(a)
	terms := task.DefaultLease(task.DefaultTTL)
	d, _, ok := b.prepare(a, terms, 0)
	if !ok {
		t.Fatal("did not begin")
	}
	f := &flight{tokens: []task.Token{1}, due: []task.Token{1}, sent: task.Boot(time.Second)}
	moved, _ := b.settle(f, &transport.RenewReply{Renewed: []transport.Renewal{{Token: 1, TTL: task.DefaultTTL}}}, task.Boot(time.Second))
	if len(moved) != 0 {
		t.Error("extended before the runner knows the attempt")
	}
	stops, _ := b.halt(func(*attempt) bool { return true }, task.StopCancel, func(*attempt) task.Millis { return 9 * task.Second }, task.Boot(2*time.Second))
	if len(stops) != 0 {
		t.Error("stopped before the runner knows the attempt")
	}
	later, stops := b.started(a, task.Boot(3*time.Second))
	if later == d || later.End != terms.HolderDeadlines(task.Boot(time.Second), task.DefaultTTL).End {
		t.Errorf("deadlines after the start %v", later)
	}
	if len(stops) != 1 || stops[0].reason != task.StopCancel || stops[0].grace != 8*task.Second {
		t.Errorf("stops after the start %+v", stops)
	}
}

// The same with a runner whose disk is slow: it ends up with the renewed lease, and a task that is told to stop before it runs.
func TestSlowStart(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 2, task.DefaultLease(task.DefaultTTL))
		n := l.node(2, 1, func(*task.Assignment) work { return work{takes: -1, startTime: 5 * time.Second} })
		l.confirmed(2) // while they are being started
		if n.r.began() != 0 {
			t.Fatal("started already")
		}
		l.g.order(1, task.StopCancel, 5*task.Second)
		l.until(10*time.Second, "one cancelled", func() bool { return l.g.tally()[task.ShardCancelled] == 1 })
		p := n.r.alive()
		if len(p) != 1 || p[0].Deadlines.End < n.Boot().Add(200*time.Second) {
			t.Errorf("runs %+v at %v, want the renewed lease of 300 s", p, n.Boot())
		}
		if s := n.r.stopped(); len(s) != 1 || s[0].reason != task.StopCancel {
			t.Errorf("stops %+v", s)
		}
	})
}

// oddControl answers some calls in its own way.
type oddControl struct {
	*wire
	register func(*transport.RegisterRequest) (*transport.RegisterReply, error)
	poll     func(context.Context, *transport.PollRequest) (*transport.PollReply, error)
	do       func(transport.Method) error
	renew    func() error
}

func (c *oddControl) Renew(ctx context.Context, r *transport.RenewRequest) (*transport.RenewReply, error) {
	if c.renew != nil {
		if err := c.renew(); err != nil {
			return nil, err
		}
	}
	return c.wire.Renew(ctx, r)
}

func (c *oddControl) Register(ctx context.Context, r *transport.RegisterRequest) (*transport.RegisterReply, error) {
	if c.register != nil {
		return c.register(r)
	}
	return c.wire.Register(ctx, r)
}

func (c *oddControl) Poll(ctx context.Context, r *transport.PollRequest) (*transport.PollReply, error) {
	if c.poll != nil {
		return c.poll(ctx, r)
	}
	return c.wire.Poll(ctx, r)
}

func (c *oddControl) Do(ctx context.Context, m transport.Method, request, reply any) error {
	if c.do != nil {
		if err := c.do(m); err != nil {
			return err
		}
	}
	return c.wire.Do(ctx, m, request, reply)
}

// A leader that never knows the node, or always has the same to say, is not talked to as fast as the network can.
func TestFruitlessAnswersAreNotChased(t *testing.T) {
	for name, reply := range map[string]*transport.PollReply{
		"never knows us": {Unregistered: true},
		"same order":     {Orders: []transport.StopOrder{{Token: 99}}},
		"nothing":        {},
	} {
		bubble(t, func(t *testing.T, l *lab) {
			polls, registers := 0, 0
			l.alone(&oddControl{
				poll: func(context.Context, *transport.PollRequest) (*transport.PollReply, error) {
					l.g.look(func() { polls++ })
					return reply, nil
				},
				register: func(*transport.RegisterRequest) (*transport.RegisterReply, error) {
					l.g.look(func() { registers++ })
					return &transport.RegisterReply{}, nil
				},
			}, nil)
			l.sleep(time.Minute)
			if polls > 80 || registers > 80 {
				t.Errorf("%s: %d polls and %d registrations in a minute", name, polls, registers)
			}
		})
	}
}

// A read that a replaced leader answers from the past is no proof that the lease is lost: a renewal finds out.
func TestReadsDoNotFence(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		past := false
		n := l.bareNode(1, 1, endless)
		n.control = &oddControl{wire: n.wire, do: func(m transport.Method) (err error) {
			l.g.look(func() {
				if past && m == transport.MethodStateGet {
					err = task.ErrStaleToken
				}
			})
			return err
		}}
		n.start()
		l.g.job("j1", 1, task.DefaultLease(task.DefaultTTL))
		l.runs(n, 1)
		l.confirmed(1)
		l.g.look(func() { past = true })
		before := l.g.see(&l.g.renews)
		a := n.r.alive()[0].Assignment
		if _, _, err := n.w.StateGet(context.Background(), &a, "k"); !errors.Is(err, task.ErrNoLeader) {
			t.Errorf("read from the past: %v", err)
		}
		l.sleep(100 * time.Millisecond)
		if len(n.r.stopped()) != 0 || l.g.see(&l.g.renews) != before+1 {
			t.Errorf("stops %v, %d renewals", n.r.stopped(), l.g.see(&l.g.renews)-before)
		}
	})
}

// A leader of the past does not know the job yet: the spec is asked for again, and the attempt has not failed.
func TestSpecNotFoundIsAskedForAgain(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		misses := 0
		n := l.bareNode(1, 1, instant)
		n.control = &oddControl{wire: n.wire, do: func(m transport.Method) (err error) {
			l.g.look(func() {
				if misses++; m == transport.MethodSpec && misses < 4 {
					err = task.ErrNotFound
				}
			})
			return err
		}}
		n.start()
		l.g.job("j1", 1, task.DefaultLease(task.DefaultTTL))
		l.until(10*time.Second, "done", l.succeeded(1))
		if ends := l.g.shards[0].ends; len(ends) != 1 || ends[0] != task.EndExited {
			t.Errorf("ends %v", ends)
		}
	})
}

// A renewal refused as a whole means that the leader knows another start of this node: it registers at once.
func TestRefusedRenewalRegisters(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		refuse := false
		n := l.bareNode(1, 1, endless)
		n.control = &oddControl{wire: n.wire, renew: func() (err error) {
			l.g.look(func() {
				if refuse {
					refuse, err = false, task.ErrStaleToken
				}
			})
			return err
		}}
		n.start()
		l.g.job("j1", 1, task.DefaultLease(task.DefaultTTL))
		l.runs(n, 1)
		l.confirmed(1)
		regs, renews := l.g.see(&l.g.regs), l.g.see(&l.g.renews)
		l.g.look(func() { refuse = true })
		l.until(time.Minute, "registered", func() bool { return l.g.see(&l.g.regs) == regs+1 })
		if late := l.g.see(&l.g.renews) - renews; late > 0 {
			t.Errorf("%d renewals before the registration", late)
		}
		l.sleep(time.Minute)
		if len(n.r.stopped()) != 0 {
			t.Errorf("stops %v", n.r.stopped())
		}
	})
}

// Whatever tells of it, a node that the leader does not know registers at once, even with leases of 2 s and a poll parked.
func TestUnregisteredRegistersAgain(t *testing.T) {
	for _, ttl := range []task.Millis{2 * task.Second, 20 * task.Second} {
		bubble(t, func(t *testing.T, l *lab) {
			l.g.job("j1", 1, task.DefaultLease(ttl))
			n := l.node(1, 1, endless)
			l.runs(n, 1)
			l.confirmed(1)
			for range 5 {
				l.sleep(20 * time.Second)
				l.g.look(func() { delete(l.g.nodes, n.id) })
			}
			l.sleep(time.Minute)
			if n.r.began() != 1 || len(n.r.stopped()) != 0 || len(l.g.freed) != 0 || l.g.tally()[task.ShardRunning] != 1 {
				t.Errorf("%d starts, stops %v, freed %v", n.r.began(), n.r.stopped(), l.g.freed)
			}
		})
	}
	bubble(t, func(t *testing.T, l *lab) { // a renewal hears it first, the poll is parked for 5 s
		l.g.job("j1", 1, task.DefaultLease(2*task.Second))
		n := l.node(1, 1, endless)
		l.runs(n, 1)
		l.confirmed(1)
		n.restart()
		l.sleep(time.Second)
		l.g.look(func() { delete(l.g.nodes, n.id) })
		l.sleep(10 * time.Second)
		if len(n.r.stopped()) != 0 || l.g.tally()[task.ShardRunning] != 1 {
			t.Errorf("stops %v", n.r.stopped())
		}
	})
	bubble(t, func(t *testing.T, l *lab) { // idle
		n := l.node(1, 1, endless)
		l.sleep(10 * time.Second)
		l.g.look(func() { delete(l.g.nodes, n.id) })
		l.sleep(10 * time.Second)
		l.g.look(func() {
			if l.g.nodes[n.id] == nil {
				t.Error("not registered again")
			}
		})
	})
}
