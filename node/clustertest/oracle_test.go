package clustertest

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"lanjobs/task"
)

// What the oracle allows.
const (
	// thawGrace is how long after a thaw a process may go on that has lapsed meanwhile (I2).
	thawGrace = 250 * time.Millisecond
	// guardTick is how late a guard that runs may be.
	guardTick = 100 * time.Millisecond
	// expiryLate is how late on the cluster clock an expiry may be (I7).
	expiryLate = 10 * task.Second
)

// oracle sees every step of every simulated process and every event of every machine, and knows what no node can know: what
// happens elsewhere at the same moment.
type oracle struct {
	t *testing.T

	mu     sync.Mutex // guards all below
	acting map[task.ShardRef]map[*process]bool
	begun  map[task.ShardRef]task.Token // of the newest process
	saved  map[task.ShardRef]uint64     // newest acknowledged checkpoint
	starts map[task.ExecutionID]int
	late   map[task.Token]bool // its process ended by itself after the belief was over

	events map[place]task.Event // the one history, from whoever told it first
	last   place
	token  task.Token                  // newest granted
	due    map[task.Token]task.Instant // of the leases that are held
	holder map[shardKey]task.Token
	done   map[shardKey]bool
	saves  map[shardKey]uint64 // newest committed checkpoint
	seen   tally
	hear   func(*task.Event) // is told each event once, as soon as the first machine has it
}

// place names an event: entry and number in it.
type place struct {
	index uint64
	n     int
}

func (p place) after(q place) bool { return p.index > q.index || p.index == q.index && p.n > q.n }

type shardKey struct {
	job   task.JobID
	stage string
	shard int
}

// tally shows that a run was not empty.
type tally struct{ grants, expiries, refusals, saves, lateWrites, thawed int }

func newOracle(t *testing.T) *oracle {
	return &oracle{t: t, acting: map[task.ShardRef]map[*process]bool{}, begun: map[task.ShardRef]task.Token{}, saved: map[task.ShardRef]uint64{},
		starts: map[task.ExecutionID]int{}, late: map[task.Token]bool{}, events: map[place]task.Event{}, due: map[task.Token]task.Instant{},
		holder: map[shardKey]task.Token{}, done: map[shardKey]bool{}, saves: map[shardKey]uint64{}}
}

// begin notes a process's start: one per execution, under a newer token than any before (I3), at the newest acknowledged
// checkpoint or after it (I5, I15).
func (o *oracle) begin(p *process) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ref, tok := p.a.Ref(), p.a.Token
	if o.starts[p.a.Execution()]++; o.starts[p.a.Execution()] > 1 {
		o.t.Errorf("execution %s started twice (I1)", p.a.Execution())
	}
	if tok <= o.begun[ref] {
		o.t.Errorf("%v starts under %d after %d (I3)", ref, tok, o.begun[ref])
	}
	o.begun[ref] = max(o.begun[ref], tok)
	if p.step < o.saved[ref] {
		o.t.Errorf("%v resumes at %d, %d was acknowledged (I5)", ref, p.step, o.saved[ref])
	}
	if o.acting[ref] == nil {
		o.acting[ref] = map[*process]bool{}
	}
	o.acting[ref][p] = true
}

// act is a step of a process. It must come before its kill, but for a moment after a thaw (I2), and no other process of the
// shard may be able to act now (I1).
func (o *oracle) act(p *process) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if over := p.overdue(); over > guardTick {
		o.t.Errorf("%s acts on %v %s after its kill, running for %s (I2)", p.r.m.id, p.a.Ref(), over, p.r.m.clock.RunsFor())
	}
	if !p.r.m.awake.holds() {
		o.t.Errorf("%s may fall asleep while it works on %v (I14)", p.r.m.id, p.a.Ref())
	}
	if p.lapsed() {
		o.seen.thawed++
		return // it may do something, and nobody accepts it
	}
	for q := range o.acting[p.a.Ref()] {
		if q != p && q.r.m.clock.Runs() && !q.lapsed() {
			o.t.Errorf("two processes act on %v: %s under %d and %s under %d (I1)", p.a.Ref(), p.r.m.id, p.a.Token, q.r.m.id, q.a.Token)
		}
	}
}

func (o *oracle) end(p *process) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.acting[p.a.Ref()], p)
}

// superseded tells whether a process of a newer token has begun.
func (o *oracle) superseded(p *process) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return p.a.Token < o.begun[p.a.Ref()]
}

// acknowledged notes a save that the node has confirmed. superseded and late are as they were before it was asked for: a
// holder that slept past its deadline, or has a successor, gets nothing accepted (I11).
func (o *oracle) acknowledged(p *process, seq uint64, superseded, late bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if superseded || late {
		o.t.Errorf("%s saved %d of %v under %d, superseded %v, after its deadline %v (I11)", p.r.m.id, seq, p.a.Ref(), p.a.Token, superseded, late)
	}
	o.saved[p.a.Ref()] = max(o.saved[p.a.Ref()], seq)
}

// lateWrite notes one that was refused as it should be.
func (o *oracle) lateWrite() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen.lateWrites++
}

// endedLate notes a process that ended by itself after its deadline: its success must not count (I11).
func (o *oracle) endedLate(p *process) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.late[p.a.Token] = true
}

// audit takes what a machine's committed entries did. Every machine tells the same history (I10), whose laws are checked as
// it grows.
func (o *oracle) audit(m task.NodeID, events []task.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range events {
		at := place{e.Index, e.N}
		if old, told := o.events[at]; told {
			if !reflect.DeepEqual(old, e) {
				o.t.Errorf("%s tells another history at %v: %+v, not %+v (I10)", m, at, e, old)
			}
			continue
		}
		if !at.after(o.last) {
			o.t.Errorf("%s tells of %v, which nobody else did: %+v (I10)", m, at, e)
		}
		o.events[at], o.last = e, at
		o.law(&e)
		if o.hear != nil {
			o.hear(&e)
		}
	}
}

// at gives a channel that gets a value when the nth event of a kind has happened from now on, counted from 1.
func (o *oracle) at(kind task.EventKind, nth int) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	count, fired := 0, make(chan struct{}, 1)
	o.hear = func(e *task.Event) {
		if e.Kind == kind {
			if count++; count == nth {
				fired <- struct{}{}
			}
		}
	}
	return fired
}

func (o *oracle) law(e *task.Event) {
	switch e.Kind {
	case task.EventLeaseGrant:
		o.grant(e)
	case task.EventLeaseConfirm, task.EventLeaseRenew:
		o.holds(e, "renewed")
		if e.Expiry < o.due[e.Token] {
			o.t.Errorf("a renewal shortens the lease %d (I6)", e.Token)
		}
		o.due[e.Token] = e.Expiry
	case task.EventLeaseExpire:
		o.holds(e, "expired")
		o.seen.expiries++
		switch due := o.due[e.Token]; {
		case e.Clock < due:
			o.t.Errorf("lease %d expires at %d, it was renewed until %d (I6)", e.Token, e.Clock, due)
		case e.Clock.Sub(due) > expiryLate:
			o.t.Errorf("lease %d expires %d ms late (I7)", e.Token, e.Clock.Sub(due))
		}
		o.free(e)
	case task.EventLeaseRelease:
		o.holds(e, "released")
		o.free(e)
		if e.Reason != (task.Outcome{End: task.EndExited}).String() {
			return
		}
		for i, key := range keys(e) {
			o.done[key] = true
			if tok := e.Token + task.Token(i); o.late[tok] {
				o.t.Errorf("%v is done by %d, which ended after its deadline (I11)", key, tok)
			}
		}
	case task.EventCheckpoint:
		o.holds(e, "saved")
		o.seen.saves++
		key := keys(e)[0]
		if e.Seq <= o.saves[key] {
			o.t.Errorf("checkpoint %d of %v after %d (C35)", e.Seq, key, o.saves[key])
		}
		o.saves[key] = e.Seq
	case task.EventLeaseRefuse:
		o.seen.refusals++
	}
}

// grant: tokens grow over the whole cluster (I3), a shard has one holder (I1), and what is done stays done (I15, C19).
func (o *oracle) grant(e *task.Event) {
	o.seen.grants++
	if e.Token <= o.token {
		o.t.Errorf("token %d is granted after %d (I3)", e.Token, o.token)
	}
	o.token = max(e.Token, e.LastToken)
	for i, key := range keys(e) {
		tok := e.Token + task.Token(i)
		if old := o.holder[key]; old != 0 {
			o.t.Errorf("%v is granted under %d while %d holds it (I1)", key, tok, old)
		}
		if o.done[key] {
			o.t.Errorf("%v is granted again after its success (I15)", key)
		}
		o.holder[key], o.due[tok] = tok, e.Expiry
	}
}

// holds checks that an event comes from the tokens that hold its shards (I4).
func (o *oracle) holds(e *task.Event, what string) {
	for i, key := range keys(e) {
		if tok := e.Token + task.Token(i); o.holder[key] != tok {
			o.t.Errorf("%v is %s by %d, its holder is %d (I4)", key, what, tok, o.holder[key])
		}
	}
}

func (o *oracle) free(e *task.Event) {
	for i, key := range keys(e) {
		delete(o.holder, key)
		delete(o.due, e.Token+task.Token(i))
	}
}

// keys gives the shards of an event; their tokens follow each other.
func keys(e *task.Event) (out []shardKey) {
	ranges, err := task.ParseRanges(e.Shards)
	if err != nil {
		panic(fmt.Sprintf("event %+v: %v", e, err))
	}
	for _, r := range ranges {
		for k := r.First; k <= r.Last; k++ {
			out = append(out, shardKey{e.Job, e.Stage, k})
		}
	}
	slices.SortFunc(out, func(a, b shardKey) int { return a.shard - b.shard })
	return out
}
