package plan_test

import (
	"container/heap"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"testing"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

// The simulation runs the real ledger and the real plan with model machines in true time, single-threaded and seeded: same
// seed, same run. Machines have boot clocks of their own rate, sleep, lose messages and crash; leaders change at any moment,
// with what they had proposed committed or lost. After every step the laws of the ledger are checked, and that no two
// processes of one shard ever act at the same time.

// faults says which faults a run has, as chances per decision.
type faults struct {
	drift, loss, sleep, crash, leader float64
	// Mutations of the holder, to show that the test can fail.
	share     float64 // replaces φ when not 0
	fromReply bool    // counts the deadline from the answer
	noKill    bool    // does not kill what lapsed while asleep
}

type event struct {
	at  int64 // true time, ms
	seq int
	do  func()
}
type events []event

func (h events) Len() int { return len(h) }
func (h events) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *events) Push(x any)   { *h = append(*h, x.(event)) }
func (h *events) Pop() any     { o := *h; e := o[len(o)-1]; *h = o[:len(o)-1]; return e }

type sim struct {
	r     *rand.Rand
	f     faults
	calm  bool // no more faults
	pace  int  // most milliseconds that one step of work takes
	now   int64
	seq   int
	q     events
	st    *fsm.State
	index uint64
	audit map[task.EventKind]int

	term     int
	leads    bool
	measured int64 // true time up to which the leader has given time to the clock
	queue    []pending
	busy     bool
	parked   map[task.NodeID]*simPoll
	machines []*machine
	acked    map[task.ShardRef]uint64 // newest checkpoint whose save was acknowledged
}

type pending struct {
	cmd   fsm.Command
	reply func(fsm.Result)
}

type simPoll struct {
	want int
	fn   func([]task.Assignment)
}

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

func (s *sim) after(ms int64, f func()) {
	s.seq++
	heap.Push(&s.q, event{s.now + max(ms, 0), s.seq, f})
}
func (s *sim) chance(p float64) bool { return !s.calm && s.r.Float64() < p }
func (s *sim) delay() int64 {
	if s.chance(0.05) {
		return int64(s.r.Intn(3000)) // a slow packet
	}
	return 1 + int64(s.r.Intn(20))
}

func newSim(seed int64, f faults, machines int, stages ...task.StageSpec) *sim {
	s := &sim{pace: 4000, r: rand.New(rand.NewSource(seed)), f: f, st: fsm.New(), audit: map[task.EventKind]int{}, parked: map[task.NodeID]*simPoll{}, acked: map[task.ShardRef]uint64{}}
	for i := range machines {
		m := &machine{s: s, id: task.NodeID(fmt.Sprintf("m%d", i)), rate: 1 + f.drift*(2*s.r.Float64()-1), slots: 2, running: map[task.Token]*attempt{}}
		s.machines = append(s.machines, m)
	}
	s.elect()
	for _, m := range s.machines {
		m.start()
	}
	spec := task.Spec{Name: "sim", Queue: "default", Retain: task.Day, Stages: stages}
	data, _ := json.Marshal(spec)
	s.after(100, func() { s.ask(&fsm.SubmitJob{RequestID: "r", Job: "j", Spec: data, Digest: data}, nil) })
	return s
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

// fault is a broken law, thrown by fail and caught by run.
type fault string

func (s *sim) fail(format string, args ...any) {
	panic(fault(fmt.Sprintf("at %d ms: %s", s.now, fmt.Sprintf(format, args...))))
}

// --- the machine ---

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

// overlap fails if two processes of one shard act at this moment (I1, I2).
func (s *sim) overlap(ref task.ShardRef) {
	var who []string
	for _, m := range s.machines {
		for tok, x := range m.running {
			if x.acting && !m.asleep && x.a.Ref() == ref {
				who = append(who, fmt.Sprintf("%s under token %d", m.id, tok))
			}
		}
	}
	if len(who) > 1 {
		s.fail("two processes act on %v: %v", ref, who)
	}
}

// run goes on until the job is final or the time is over, and gives the law that broke, "" if none did.
func (s *sim) run(faultsUntil, until int64) (broken string) {
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(fault)
			if !ok {
				panic(p)
			}
			broken = string(f)
		}
	}()
	for len(s.q) > 0 && s.now < until {
		e := heap.Pop(&s.q).(event)
		s.now = e.at
		s.calm = s.now >= faultsUntil
		e.do()
		if j := s.st.Job("j"); j != nil && j.State.Final() {
			break
		}
	}
	return ""
}

func simStage(name string, shards int, ttl task.Millis, needs ...string) task.StageSpec {
	r := task.DefaultRetry()
	r.Initial, r.LeaseLosses = task.Second, 1000
	return task.StageSpec{Name: name, Shards: shards, Needs: needs, When: task.WhenSuccess, Run: "x", Lease: task.DefaultLease(ttl), Retry: r}
}

func seeds(normal int) int {
	if n, err := strconv.Atoi(os.Getenv("LANJOBS_SEEDS")); err == nil {
		return n * 10
	}
	return normal
}

var rough = faults{drift: 0.1, loss: 0.15, sleep: 0.3, crash: 0.1, leader: 0.7}

func TestNoTwoProcessesActOnAShardWhateverHappens(t *testing.T) {
	moved := 0
	for seed := range int64(seeds(400)) {
		ttl := []task.Millis{2000, 5000, 10000, 60000}[seed%4]
		s := newSim(seed, rough, 3, simStage("a", 4, ttl), simStage("b", 2, ttl, "a"))
		if broken := s.run(300_000, 3_600_000); broken != "" {
			t.Fatalf("seed %d: %s", seed, broken)
		}
		if j := s.st.Job("j"); j == nil || j.State != task.JobSucceeded {
			t.Fatalf("seed %d: an hour after the faults the job is not done: %+v", seed, j)
		}
		moved += s.audit[task.EventLeaseExpire]
	}
	if moved == 0 {
		t.Fatal("no lease ever expired: the faults do not bite")
	}
}

func TestWithoutFaultsNothingExpiresInTenHours(t *testing.T) {
	for _, leader := range []float64{0, 0.01} { // with a failover now and then too (I12)
		s := newSim(7, faults{drift: 0.1, leader: leader}, 3, simStage("a", 60, 60000))
		s.pace = 1_300_000
		if broken := s.run(36_000_000, 36_000_000); broken != "" {
			t.Fatal(broken)
		}
		if n := s.audit[task.EventLeaseExpire]; n != 0 || s.audit[task.EventLeaseConfirm] == 0 {
			t.Errorf("leader changes %v: %d leases expired, %d confirmed", leader > 0, n, s.audit[task.EventLeaseConfirm])
		}
		if s.now < 35_000_000 {
			t.Errorf("the job ended after %d ms", s.now)
		}
	}
}

// The mutants of the holder must be caught; otherwise the tests above prove nothing.
func TestTheSimulationCatchesWrongHolders(t *testing.T) {
	for name, f := range map[string]faults{
		"counts from the answer": {drift: 0.1, loss: 0.15, sleep: 0.6, leader: 0.7, fromReply: true},
		"believes 1.3 TTL":       {drift: 0.1, loss: 0.3, sleep: 0.3, leader: 0.7, share: 1.3},
		"forgets its sleep":      {drift: 0.1, loss: 0.15, sleep: 0.6, leader: 0.7, noKill: true},
	} {
		caught := int64(-1)
		for seed := int64(0); seed < 400 && caught < 0; seed++ {
			s := newSim(seed, f, 3, simStage("a", 4, 5000), simStage("b", 2, 5000, "a"))
			if s.run(300_000, 3_600_000) != "" {
				caught = seed
			}
		}
		if caught < 0 {
			t.Errorf("a holder that %s is not caught", name)
		}
	}
}
