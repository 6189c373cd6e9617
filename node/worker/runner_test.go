package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"lanjobs/task"
	"lanjobs/task/runner"
)

// work is what a fake task does.
type work struct {
	takes     time.Duration // until it ends by itself; 0 = at once, below 0 = never
	exit      int
	outputs   []task.KV
	ignores   bool          // SIGTERM
	ends      time.Duration // after SIGTERM
	startTime time.Duration // of Start itself
	fail      string        // Start's error
}

// fakeRunner runs fake tasks on a machine. Its guard is off by default, so that tests see what the worker does by itself.
type fakeRunner struct {
	m     *machine
	guard bool
	tough bool          // against every order: a process stuck in the kernel
	nap   time.Duration // between looks at the boot clock, which may jump
	deaf  bool          // to a grace: only an order to kill at once is followed
	plan  func(a *task.Assignment) work
	onRun func(a *task.Assignment) // called as a process begins
	// life is what a task does while it runs, until its context ends with the process.
	life func(ctx context.Context, a *task.Assignment)

	mu        sync.Mutex
	procs     map[task.ExecutionID]*proc
	ended     map[task.ExecutionID]runner.Exit // not forgotten
	exits     chan runner.Exit
	agentDone chan struct{}
	forgotten []task.ExecutionID
	starts    int
	stops     []stopCall
	peak      int
	kills     int // by the guard
	wg        sync.WaitGroup
}

type stopCall struct {
	x      task.ExecutionID
	reason task.StopReason
	grace  task.Millis
	at     task.Boot
}

type proc struct {
	a      task.Assignment
	w      work
	d      task.Deadlines
	change chan struct{} // 1: look at the fields again
	reason task.StopReason
	term   bool
	killAt task.Boot
	alive  bool
	began  task.Boot
	cancel context.CancelFunc
}

func newFakeRunner(m *machine, plan func(a *task.Assignment) work) *fakeRunner {
	r := &fakeRunner{m: m, plan: plan, nap: 100 * time.Millisecond, procs: map[task.ExecutionID]*proc{}, ended: map[task.ExecutionID]runner.Exit{}}
	r.newAgent()
	return r
}

// newAgent is what a restart of the agent means to the runner: ends not forgotten are delivered again.
func (r *fakeRunner) newAgent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.agentDone != nil {
		close(r.agentDone)
	}
	r.exits, r.agentDone = make(chan runner.Exit, 16), make(chan struct{})
	for _, e := range r.ended {
		r.wg.Go(func() { r.hand(e, r.exits, r.agentDone) })
	}
}

// close ends all processes without a trace, as the end of a test.
func (r *fakeRunner) close() {
	r.mu.Lock()
	close(r.agentDone)
	for _, p := range r.procs {
		p.reason, p.killAt = task.StopFenced, 1
		kick(p.change)
	}
	r.mu.Unlock()
	r.wg.Wait()
}

func (r *fakeRunner) Start(a *task.Assignment, _ *task.Spec, d task.Deadlines) error {
	w := r.plan(a)
	if w.startTime > 0 {
		<-r.m.After(w.startTime)
	}
	if w.fail != "" {
		return fmt.Errorf("%s", w.fail)
	}
	if r.onRun != nil {
		r.onRun(a)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	x := a.Execution()
	if r.procs[x] != nil {
		panic("started twice: " + string(x))
	}
	p := &proc{a: *a, w: w, d: d, change: make(chan struct{}, 1), alive: true, began: r.m.Boot()}
	r.procs[x] = p
	r.starts++
	n := 0
	for _, q := range r.procs {
		if q.alive {
			n++
		}
	}
	r.peak = max(r.peak, n)
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	if r.life != nil {
		r.wg.Go(func() { r.life(ctx, &p.a) })
	}
	r.wg.Go(func() { r.run(p) })
	return nil
}

func (r *fakeRunner) run(p *proc) {
	end := p.began.Add(p.w.takes)
	if p.w.takes < 0 {
		end = 1 << 62
	}
	for {
		r.mu.Lock()
		now := r.m.Boot()
		var out task.Outcome
		switch {
		case r.guard && now >= p.d.Kill:
			out.End = task.EndLeaseLost
			r.kills++
		case p.killAt != 0 && now >= p.killAt:
			out.End = p.reason.End()
		case now >= end:
			out = task.Outcome{End: task.EndExited, ExitCode: p.w.exit}
			if p.term {
				out = task.Outcome{End: p.reason.End()}
			}
		}
		if out.End != "" {
			p.alive = false
			p.cancel()
			e := runner.Exit{Assignment: p.a, Outcome: out, Outputs: p.w.outputs}
			r.ended[p.a.Execution()] = e
			exits, done := r.exits, r.agentDone
			r.mu.Unlock()
			r.hand(e, exits, done)
			return
		}
		next := end
		if p.killAt != 0 {
			next = min(next, p.killAt)
		}
		if r.guard {
			next = min(next, p.d.Kill)
		}
		r.mu.Unlock()
		t := r.m.NewTimer(min(next.Sub(now), r.nap))
		select {
		case <-t.C():
		case <-p.change:
		}
		t.Stop()
		r.mu.Lock()
		if p.killAt != 0 && !p.term && !p.w.ignores {
			p.term = true
			end = min(end, r.m.Boot().Add(p.w.ends))
		}
		r.mu.Unlock()
	}
}

func (r *fakeRunner) hand(e runner.Exit, exits chan runner.Exit, done chan struct{}) {
	select {
	case exits <- e:
	case <-done:
	}
}

func (r *fakeRunner) Extend(x task.ExecutionID, d task.Deadlines) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.procs[x]; p != nil {
		p.d = p.d.Later(d)
		kick(p.change)
	}
}

func (r *fakeRunner) Stop(x task.ExecutionID, reason task.StopReason, grace task.Millis) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stops = append(r.stops, stopCall{x, reason, grace, r.m.Boot()})
	p := r.procs[x]
	if p == nil || !p.alive || r.deaf && grace > 0 || r.tough {
		return
	}
	if p.reason == "" {
		p.reason = reason
	}
	if kill := r.m.Boot().Add(grace.Duration()); p.killAt == 0 || kill < p.killAt {
		p.killAt = kill
	}
	kick(p.change)
}

func (r *fakeRunner) Exits() <-chan runner.Exit {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.exits
}

func (r *fakeRunner) Held() (out []runner.Held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for x, p := range r.procs {
		if _, ended := r.ended[x]; p.alive || ended {
			out = append(out, runner.Held{Assignment: p.a, Deadlines: p.d, Running: p.alive})
		}
	}
	return out
}

func (r *fakeRunner) Forget(x task.ExecutionID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ended, x)
	delete(r.procs, x)
	r.forgotten = append(r.forgotten, x)
}

// alive lists what runs, with the deadlines that the runner was told.
func (r *fakeRunner) alive() (out []runner.Held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.procs {
		if p.alive {
			out = append(out, runner.Held{Assignment: p.a, Deadlines: p.d, Running: true})
		}
	}
	return out
}

func (r *fakeRunner) stopped() []stopCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]stopCall(nil), r.stops...)
}

func (r *fakeRunner) count() (starts, forgotten int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.starts, len(r.forgotten)
}

func (r *fakeRunner) began() int {
	n, _ := r.count()
	return n
}

// most is how many ran at once at the peak.
func (r *fakeRunner) most() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.peak
}

func (r *fakeRunner) set(f func(*fakeRunner)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r)
}
