package worker

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

// A small world is one shard, two machines and a leader, moved by hand: the real book of each machine, the real ledger, and
// between them messages that arrive when the explorer lets them (exhaustive_test.go), late, twice or never. A world is a
// function of the moves made, so that it can be made again.

// smallTTL is the lease's length. A tick of real time is a little less than a quarter of it, so that the fourth lies where a leader's
// clock that is 10 % fast has passed the lease's end, and a holder that counted to the full length has not.
const (
	smallTTL  = 10 * task.Second
	smallStep = 2350 * time.Millisecond
)

type smallWorld struct {
	ledger     *fsm.State
	index      uint64
	real       int     // steps since the beginning
	leaderRate float64 // of the leader's clock
	measured   time.Duration
	machines   [2]*smallMachine
	spent      int // faults so far
	lastToken  task.Token
	grants     int
	limit      int // of ticks
	succeeded  task.Token
	faults     []string
}

// smallMachine is one machine: an agent (its book, and what it has on its way) and a guard (the processes).
type smallMachine struct {
	id          task.NodeID
	rate        float64
	incarnation uint64
	frozen      bool
	book        *book
	waiting     map[task.Token]<-chan struct{} // confirming attempts
	poll        *smallPoll
	renewals    []*smallRenewal
	register    *smallRegister
	ends        []task.Report // not acknowledged yet
	strays      []fsm.Command // requests of which nobody waits for the answer any more; they may still arrive
	processes   map[task.Token]*smallProcess
}

// smallProcess is what the guard knows of a command.
type smallProcess struct {
	task.Assignment
	deadlines task.Deadlines
	kill      task.Boot
}

type smallPoll struct {
	incarnation uint64
	sent        task.Boot
	holding     []task.Token
	reply       *transport.PollReply
}

type smallRenewal struct {
	*flight
	incarnation uint64
	reply       *transport.RenewReply
}

type smallRegister struct {
	command *fsm.RegisterNode
	reply   []task.Token
	handled bool
}

var smallTerms = task.LeaseTerms{TTL: smallTTL, Heartbeat: smallTTL / 10, StopGrace: task.Second}

func newSmallWorld(leaderRate, holderRate float64) *smallWorld {
	w := &smallWorld{ledger: fsm.New(), leaderRate: leaderRate, limit: math.MaxInt}
	spec := task.Spec{Name: "small", Stages: []task.StageSpec{{Name: task.DefaultStage, Command: []string{"x"}, Shards: 1, Lease: smallTerms, Retry: task.DefaultRetry(), When: task.WhenSuccess}}}
	text, err := json.Marshal(spec)
	if err != nil {
		panic(err)
	}
	for i := range w.machines {
		m := &smallMachine{id: task.NodeID(fmt.Sprintf("m%d", i)), rate: holderRate, incarnation: 1, processes: map[task.Token]*smallProcess{}}
		m.newBook()
		m.book.registered = true
		w.machines[i] = m
		w.commit(&fsm.RegisterNode{Info: m.info(), Incarnation: 1})
	}
	r := w.commit(&fsm.SubmitJob{RequestID: "r", Job: "j1", Spec: text})[0]
	if w.shard() == nil {
		panic(fmt.Sprint("not taken: ", r.Err))
	}
	return w
}

func (m *smallMachine) info() task.NodeInfo {
	return task.NodeInfo{ID: m.id, Name: string(m.id), Slots: 1}
}

func (m *smallMachine) newBook() {
	m.book, m.waiting = newBook(), map[task.Token]<-chan struct{}{}
	m.book.setSlots(1)
}

func (w *smallWorld) shard() *fsm.Shard {
	if j := w.ledger.Job("j1"); j != nil {
		return j.Shard(0, 0)
	}
	return nil
}

func (w *smallWorld) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf("after %d s: ", w.real)+fmt.Sprintf(format, args...))
}

// now is a machine's boot clock. It counts on while the machine is frozen.
func (w *smallWorld) now(m *smallMachine) task.Boot {
	return task.Boot(time.Hour + time.Duration(float64(w.real)*m.rate*float64(smallStep)))
}

func (w *smallWorld) led() time.Duration {
	return time.Duration(float64(w.real) * w.leaderRate * float64(smallStep))
}

// commit writes one entry, as a leader does: the time led since the last one, then the commands.
func (w *smallWorld) commit(commands ...fsm.Command) []fsm.Result {
	elapsed := min(task.MillisOf(w.led()-w.measured), fsm.MaxElapsed)
	w.measured = w.led()
	w.index++
	results, _ := w.ledger.ApplyBatch(w.index, &fsm.Batch{Leader: "l", Elapsed: elapsed, Commands: commands})
	return results
}

// tick lets a step of time pass for everybody. What a deadline asks for on a machine that runs happens at once.
func (w *smallWorld) tick() {
	w.real++
	for _, m := range w.machines {
		if !m.frozen {
			w.enforce(m)
		}
	}
}

// enforce is what guard and keeper do by themselves.
func (w *smallWorld) enforce(m *smallMachine) {
	now := w.now(m)
	m.guard(now)
	stops, _, ends := m.book.enforce(now)
	m.carryOut(stops, now)
	m.resign(ends)
	m.guard(now)
}

// guard kills what has reached its deadline.
func (m *smallMachine) guard(now task.Boot) {
	for t, p := range m.processes {
		if now >= min(p.kill, p.deadlines.Kill) {
			m.exit(t, task.Outcome{End: task.EndLeaseLost})
		}
	}
}

// exit is the end of a process, which the agent has noted for its report before the book lets go of it.
func (m *smallMachine) exit(t task.Token, o task.Outcome) {
	p := m.processes[t]
	delete(m.processes, t)
	m.ends = append(m.ends, endReport(&p.Assignment, o))
	m.book.end(t)
}

func (m *smallMachine) carryOut(stops []order, now task.Boot) {
	for _, o := range stops {
		if p := m.processes[o.token]; p != nil {
			p.kill = min(p.kill, now.Add(o.grace.Duration()))
		}
	}
	m.guard(now)
}

func (m *smallMachine) resign(ends []task.Report) {
	for _, r := range ends {
		m.ends = append(m.ends, r)
		m.book.end(r.Token)
	}
}

// launch gives queued attempts their slots and starts what may start.
func (w *smallWorld) launch(m *smallMachine) {
	now := w.now(m)
	for _, a := range m.book.takeQueued() {
		d, acked, ok := m.book.prepare(a, smallTerms, now)
		if ok {
			m.start(a, d, now)
		} else if acked != nil {
			m.waiting[a.Token] = acked
		}
	}
}

// confirm starts what waited for its first renewal.
func (w *smallWorld) confirm(m *smallMachine) {
	now := w.now(m)
	for t, acked := range m.waiting {
		select {
		case <-acked:
		default:
			continue
		}
		delete(m.waiting, t)
		a := m.book.attempts[t]
		if a == nil {
			continue
		}
		if d, again, ok := m.book.begin(a, now); ok {
			m.start(a, d, now)
		} else if again != nil {
			m.waiting[t] = again
		}
	}
}

func (m *smallMachine) start(a *attempt, d task.Deadlines, now task.Boot) {
	m.processes[a.Token] = &smallProcess{Assignment: a.Assignment, deadlines: d, kill: d.Kill}
	later, stops := m.book.started(a, now)
	if later != (task.Deadlines{}) {
		m.extend(a.Token, later)
	}
	m.carryOut(stops, now)
}

func (m *smallMachine) extend(t task.Token, d task.Deadlines) {
	if p := m.processes[t]; p != nil {
		if p.kill == p.deadlines.Kill { // no order shortens it
			p.kill = d.Kill
		}
		p.deadlines = d
	}
}

// crash ends the agent, and with it what it had on its way; requests may still arrive. The next one finds what the guard kept.
func (w *smallWorld) crash(m *smallMachine, guardToo bool) {
	for _, r := range m.renewals {
		if r.reply == nil {
			m.strays = append(m.strays, &fsm.Renew{Node: m.id, Incarnation: r.incarnation, Tokens: r.tokens})
		}
	}
	if m.register != nil && !m.register.handled {
		m.strays = append(m.strays, m.register.command)
	}
	m.poll, m.renewals, m.register = nil, nil, nil
	m.incarnation++
	m.newBook()
	if guardToo {
		clear(m.processes)
		m.ends = nil
	}
	for _, p := range m.processes {
		d := p.deadlines
		d.Kill = min(d.Kill, p.kill)
		m.book.reattach(runner.Held{Assignment: p.Assignment, Deadlines: d, Running: true}, w.now(m))
	}
}

// known is what the machine runs or has a report of.
func (m *smallMachine) known() []task.Token {
	out := m.book.tokens()
	for _, r := range m.ends {
		out = append(out, r.Token)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// check looks for what must never be.
func (w *smallWorld) check() {
	for _, m := range w.machines {
		if m.frozen {
			continue // nothing of it moves; what it does after the thaw is looked at then
		}
		now := w.now(m)
		for t, p := range m.processes {
			a := m.book.attempts[t]
			l := w.ledger.Lease(t)
			switch {
			case l == nil:
				w.fault("%s runs %v, whose lease has ended (I1)", m.id, t)
			case now >= p.deadlines.End:
				w.fault("%s runs %v after its deadline (I2)", m.id, t)
			case a == nil:
				w.fault("%s runs %v and does not know of it (I13)", m.id, t)
			}
		}
	}
}
