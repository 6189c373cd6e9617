package clustertest

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"lanjobs/node/worker"
	"lanjobs/task"
	"lanjobs/task/runner"
)

type conn = net.Conn

// oracle sees every step of every simulated process in the cluster and knows what no node can know: what happens elsewhere
// at the same moment.
type oracle struct {
	t *testing.T

	mu     sync.Mutex
	acting map[task.ShardRef]map[*process]bool
	saved  map[task.ShardRef]uint64 // newest acknowledged checkpoint
	starts map[task.ExecutionID]int
	ended  map[task.ShardRef]int // processes that ran to their end
}

func newOracle(t *testing.T) *oracle {
	return &oracle{t: t, acting: map[task.ShardRef]map[*process]bool{}, saved: map[task.ShardRef]uint64{}, starts: map[task.ExecutionID]int{}, ended: map[task.ShardRef]int{}}
}

// begin notes a process's start: one per execution, and at the newest acknowledged checkpoint or after it (I1, I5).
func (o *oracle) begin(p *process) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.starts[p.a.Execution()]++; o.starts[p.a.Execution()] > 1 {
		o.t.Errorf("execution %s started twice", p.a.Execution())
	}
	if p.step < o.saved[p.a.Ref()] {
		o.t.Errorf("%v resumes at %d, %d was acknowledged", p.a.Ref(), p.step, o.saved[p.a.Ref()])
	}
	if o.acting[p.a.Ref()] == nil {
		o.acting[p.a.Ref()] = map[*process]bool{}
	}
	o.acting[p.a.Ref()][p] = true
}

// act is a step of a process: no other one of the shard may be able to act now (I1, I2).
func (o *oracle) act(p *process) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for q := range o.acting[p.a.Ref()] {
		if q != p && !q.r.isFrozen() {
			o.t.Errorf("two processes act on %v: %s under %d and %s under %d", p.a.Ref(), p.r.m.id, p.a.Token, q.r.m.id, q.a.Token)
		}
	}
}

func (o *oracle) end(p *process) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.acting[p.a.Ref()], p)
}

func (o *oracle) acknowledged(ref task.ShardRef, seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.saved[ref] = max(o.saved[ref], seq)
}

func (o *oracle) check() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for ref, n := range o.ended {
		if n == 0 {
			o.t.Errorf("%v never ended", ref)
		}
	}
}

// fakeRunner runs simulated processes in virtual time, with a guard that kills at the deadline.
type fakeRunner struct {
	m      *machine
	worker *worker.Worker
	exits  chan runner.Exit

	mu      sync.Mutex
	freeze  bool
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
	r     *fakeRunner
	a     task.Assignment
	d     task.Deadlines
	step  uint64
	steps uint64
	stop  chan task.Outcome
	over  bool
}

func newFakeRunner(m *machine) *fakeRunner {
	ctx, cancel := context.WithCancel(context.Background())
	return &fakeRunner{m: m, exits: make(chan runner.Exit, 64), procs: map[task.ExecutionID]*process{}, changed: make(chan struct{}), ctx: ctx, cancel: cancel}
}

func (r *fakeRunner) begin(context.Context) { r.wg.Go(r.guard) }

// guard kills what has reached its deadline, as long as the machine is not frozen.
func (r *fakeRunner) guard() {
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
		r.lapse()
	}
}

func (r *fakeRunner) lapse() {
	if r.isFrozen() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.procs {
		if r.m.clock.Boot() >= p.d.Kill {
			r.kill(p, task.Outcome{End: task.EndLeaseLost})
		}
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
	p := &process{r: r, a: *a, d: d, steps: 6, stop: make(chan task.Outcome, 1)}
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
		case <-time.After(time.Duration(r.m.c.pace*(500+p.a.Shard%7*100)) * time.Millisecond):
		}
		if !r.awaitThaw() {
			return
		}
		r.mu.Lock()
		if !p.over {
			r.m.c.oracle.act(p)
		}
		r.mu.Unlock()
		ctx, cancel := context.WithTimeout(r.ctx, 20*time.Second)
		seq, err := r.worker.Checkpoint(ctx, &p.a, []byte{byte(p.step + 1)})
		cancel()
		if err == nil {
			r.m.c.oracle.acknowledged(p.a.Ref(), seq)
			p.step = seq
		}
	}
	r.mu.Lock()
	if !p.over {
		r.kill(p, task.Outcome{End: task.EndExited})
	}
	r.mu.Unlock()
	r.exit(p, <-p.stop)
}

func (r *fakeRunner) exit(p *process, o task.Outcome) {
	if o.End == task.EndExited {
		r.m.c.oracle.mu.Lock()
		r.m.c.oracle.ended[p.a.Ref()]++
		r.m.c.oracle.mu.Unlock()
	}
	select {
	case r.exits <- runner.Exit{Assignment: p.a, Outcome: o}:
	case <-r.ctx.Done():
	}
}

func (r *fakeRunner) Extend(x task.ExecutionID, d task.Deadlines) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.procs[x]; p != nil {
		p.d = p.d.Later(d)
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

func (r *fakeRunner) isFrozen() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.freeze
}

func (r *fakeRunner) frozen() bool { return r.isFrozen() }

func (r *fakeRunner) setFrozen(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.freeze = on
	close(r.changed)
	r.changed = make(chan struct{})
}

// awaitThaw holds a process while its machine is frozen; false = the machine went off.
func (r *fakeRunner) awaitThaw() bool {
	for {
		r.mu.Lock()
		frozen, changed := r.freeze, r.changed
		r.mu.Unlock()
		if !frozen {
			return r.ctx.Err() == nil
		}
		select {
		case <-changed:
		case <-r.ctx.Done():
			return false
		}
	}
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
