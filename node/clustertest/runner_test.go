package clustertest

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"lanjobs/node/worker"
	"lanjobs/task"
	"lanjobs/task/runner"
)

type conn = net.Conn

// fakeRunner runs simulated processes in virtual time, with a guard that kills at the deadline.
type fakeRunner struct {
	m      *machine
	worker *worker.Worker
	exits  chan runner.Exit
	lag    time.Duration // how long after a thaw the guard looks again

	mu      sync.Mutex
	paused  bool // the tasks wait; their agent does not
	off     bool
	procs   map[task.ExecutionID]*process
	changed chan struct{}
	wg      sync.WaitGroup
	ctx     context.Context
	cancel  context.CancelFunc
}

var _ worker.Runner = (*fakeRunner)(nil)

// process is one simulated attempt: it saves a checkpoint after each step.
type process struct {
	r         *fakeRunner
	a         task.Assignment
	deadlines atomic.Pointer[task.Deadlines]
	step      uint64
	steps     uint64
	stop      chan task.Outcome
	over      bool // guarded by r.mu
}

// overdue is for how long the process has been past its kill while its machine ran, below 0 before it. A thaw gives the guard
// time to look (I2).
func (p *process) overdue() time.Duration {
	late := p.r.m.clock.Boot().Sub(p.deadlines.Load().Kill)
	return min(late, p.r.m.clock.RunsFor()-thawGrace)
}

// lapsed tells whether the process is past its kill, and lives only because its machine has just been thawed.
func (p *process) lapsed() bool {
	return p.r.m.clock.Boot() >= p.deadlines.Load().Kill && p.r.m.clock.RunsFor() <= thawGrace
}

// late tells whether the node's belief in the lease is over.
func (p *process) late() bool { return p.r.m.clock.Boot() >= p.deadlines.Load().End }

func newFakeRunner(m *machine) *fakeRunner {
	ctx, cancel := context.WithCancel(context.Background())
	return &fakeRunner{m: m, exits: make(chan runner.Exit, 64), lag: m.c.guardLag, procs: map[task.ExecutionID]*process{}, changed: make(chan struct{}), ctx: ctx, cancel: cancel}
}

func (r *fakeRunner) begin() { r.wg.Go(r.guard) }

// guard kills what has reached its deadline. After a thaw it comes to that a little later.
func (r *fakeRunner) guard() {
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.m.clock.After(guardTick / 2):
		}
		if r.m.clock.RunsFor() < r.lag {
			continue
		}
		r.mu.Lock()
		for _, p := range r.procs {
			if r.m.clock.Boot() >= p.deadlines.Load().Kill {
				r.kill(p, task.Outcome{End: task.EndLeaseLost})
			}
		}
		r.mu.Unlock()
	}
}

// kill ends a process. The caller holds mu.
func (r *fakeRunner) kill(p *process, o task.Outcome) {
	if p.over {
		return
	}
	p.over = true
	r.m.c.oracle.end(p)
	p.stop <- o
}

func (r *fakeRunner) Start(a *task.Assignment, _ *task.Spec, d task.Deadlines) error {
	p := &process{r: r, a: *a, steps: 6, stop: make(chan task.Outcome, 1)}
	p.deadlines.Store(&d)
	if a.Checkpoint != nil {
		p.step = a.Checkpoint.Seq
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.off {
		return task.ErrConflict
	}
	r.procs[a.Execution()] = p
	r.m.c.oracle.begin(p)
	r.wg.Go(p.run)
	return nil
}

// run is the process: a step, a checkpoint, the next step.
func (p *process) run() {
	r := p.r
	for p.step < p.steps {
		select {
		case o := <-p.stop:
			r.exit(p, o)
			return
		case <-r.ctx.Done():
			return
		case <-r.m.clock.After(time.Duration(r.m.c.pace*(500+p.a.Shard%7*100)) * time.Millisecond):
		}
		if !r.awaitTurn() {
			return
		}
		r.mu.Lock()
		if !p.over {
			r.m.c.oracle.act(p)
		}
		r.mu.Unlock()
		p.save()
		if r.m.c.between != nil {
			r.m.c.between(p)
		}
	}
	r.mu.Lock()
	if !p.over {
		if p.late() {
			r.m.c.oracle.endedLate(p)
		}
		r.kill(p, task.Outcome{End: task.EndExited})
	}
	r.mu.Unlock()
	select {
	case o := <-p.stop:
		r.exit(p, o)
	case <-r.ctx.Done(): // a power cut kills without a word
	}
}

// save saves a checkpoint, also when it should not: a process does not know that its lease is over.
func (p *process) save() {
	r := p.r
	superseded, late := r.m.c.oracle.superseded(p), p.late()
	ctx, cancel := context.WithTimeout(r.ctx, 2*time.Second) // one that is cut off goes on with its work meanwhile
	defer cancel()
	seq, err := r.worker.Checkpoint(ctx, &p.a, []byte{byte(p.step + 1)})
	if err == nil {
		// A renewal that was on its way may have given it more time meanwhile.
		r.m.c.oracle.acknowledged(p, seq, superseded, late && p.late())
		p.step = seq
	} else if late {
		r.m.c.oracle.lateWrite()
	}
}

func (r *fakeRunner) exit(p *process, o task.Outcome) {
	select {
	case r.exits <- runner.Exit{Assignment: p.a, Outcome: o}:
	case <-r.ctx.Done():
	}
}

func (r *fakeRunner) Extend(x task.ExecutionID, d task.Deadlines) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.procs[x]; p != nil {
		later := p.deadlines.Load().Later(d)
		p.deadlines.Store(&later)
	}
}

func (r *fakeRunner) Stop(x task.ExecutionID, reason task.StopReason, _ task.Millis) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.procs[x]; p != nil {
		r.kill(p, task.Outcome{End: reason.End()})
	}
}

func (r *fakeRunner) Exits() <-chan runner.Exit { return r.exits }
func (r *fakeRunner) Held() []runner.Held       { return nil }
func (r *fakeRunner) Forget(x task.ExecutionID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.procs, x)
}

// pause lets the tasks wait, or go on.
func (r *fakeRunner) pause(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused = on
	close(r.changed)
	r.changed = make(chan struct{})
}

// awaitTurn holds a process while its machine stands still or the tasks are paused; false = the machine went off.
func (r *fakeRunner) awaitTurn() bool {
	for r.m.clock.Await(r.ctx) {
		r.mu.Lock()
		paused, changed := r.paused, r.changed
		r.mu.Unlock()
		if !paused {
			return true
		}
		select {
		case <-changed:
		case <-r.ctx.Done():
		}
	}
	return false
}

// powerOff ends all processes without a word.
func (r *fakeRunner) powerOff() {
	r.mu.Lock()
	r.off = true
	for _, p := range r.procs {
		if !p.over {
			p.over = true
			r.m.c.oracle.end(p)
		}
	}
	r.mu.Unlock()
	r.cancel()
	r.wg.Wait()
}
