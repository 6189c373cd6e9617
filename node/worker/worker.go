package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"lanjobs/node/bell"
	"lanjobs/task"
	"lanjobs/task/runner"
)

// Config is all that a worker is made of.
type Config struct {
	// NodeInfo is what the node says of itself now (R5); asked at each registration. Slots in it rules how much runs at once.
	NodeInfo func() task.NodeInfo
	// Incarnation grows with every start of the agent on this node; the leader refuses a lower one (I13).
	Incarnation uint64
	Clock       task.Clock
	Control     Control
	Runner      Runner // may be set later by Attach, as a runner wants its Backend first
	// Store may be nil: then a deferral is forgotten by a restart of the agent and the shard runs again at once.
	Store Store
	Load  func() task.Load // what heartbeats carry (R6); nil = nothing
	Awake Awake            // nil = nobody keeps the machine awake
	Log   *slog.Logger     // nil = none
}

// Validate returns all faults at once.
func (c *Config) Validate() error {
	var faults []error
	for _, f := range []struct {
		bad  bool
		what string
	}{
		{c.NodeInfo == nil, "NodeInfo"}, {c.Incarnation == 0, "Incarnation"}, {c.Clock == nil, "Clock"},
		{c.Control == nil, "Control"}, {c.Runner == nil, "Runner"},
	} {
		if f.bad {
			faults = append(faults, fmt.Errorf("worker: %s is missing", f.what))
		}
	}
	return errors.Join(faults...)
}

// Worker is one node's holder of leases. It is also the runner.Backend of the tasks it runs.
type Worker struct {
	cfg    Config
	clock  task.Clock
	log    *slog.Logger
	book   *book
	outbox *outbox
	specs  *specs
	bell   bell.Bell
	found  bell.Bell // rung by LeaderFound

	awakeMu sync.Mutex // keeps what Awake is told in order

	// Each kick wakes one part; one pending kick is enough, since the part looks at everything when it wakes.
	keeperKick, launchKick, outboxKick chan struct{}
}

// New makes a worker; nothing runs before Run.
func New(cfg Config) *Worker {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Load == nil {
		cfg.Load = func() task.Load { return task.Load{} }
	}
	return &Worker{
		cfg: cfg, clock: cfg.Clock, log: cfg.Log,
		book: newBook(), outbox: newOutbox(), specs: newSpecs(),
		keeperKick: make(chan struct{}, 1), launchKick: make(chan struct{}, 1), outboxKick: make(chan struct{}, 1),
	}
}

// Attach sets the runner, before Run: the real one is made with this worker as its Backend.
func (w *Worker) Attach(r Runner) { w.cfg.Runner = r }

// LeaderFound tells that this node has heard of a leader just now: what waits to ask one again asks at once. The waits between
// tries are for the time without one.
func (w *Worker) LeaderFound() {
	w.found.Ring()
	w.outbox.hurry()
	kick(w.outboxKick)
}

// Run works until ctx ends, and then leaves running attempts to the guard: the next agent of this node takes them over
// (R14, R44). To end the work as well, call Shutdown first. An error means that it could not begin.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.cfg.Validate(); err != nil {
		return err
	}
	if err := w.restore(); err != nil {
		return err
	}
	var parts sync.WaitGroup
	for _, part := range []func(context.Context){w.keep, w.converse, w.launch, w.collect, w.deliver} {
		parts.Go(func() { part(ctx) })
	}
	parts.Wait()
	return nil
}

// restore takes over what the former agent left: running attempts with their deadlines, ends not yet acknowledged.
func (w *Worker) restore() error {
	w.book.setSlots(w.cfg.NodeInfo().Slots)
	w.book.awakeAt(sleepCount(w.clock), true)
	held := w.cfg.Runner.Held()
	now := w.clock.Boot()
	for _, h := range held {
		w.book.reattach(h, now)
		w.log.Info("attempt found", "job", h.Assignment.Job, "shard", h.Assignment.Shard, "attempt", h.Assignment.Attempt,
			"token", h.Assignment.Token, "running", h.Running)
	}
	if err := w.loadStore(held); err != nil {
		return fmt.Errorf("read outbox: %w", err)
	}
	w.tellAwake()
	kick(w.launchKick)
	kick(w.outboxKick)
	return nil
}

// collect moves ends from the runner into the outbox. A full outbox lets the runner wait (it keeps the record anyway).
func (w *Worker) collect(ctx context.Context) {
	exits := w.cfg.Runner.Exits()
	for {
		if !w.await(ctx, func() bool { return w.outbox.len() < maxOutbox }) {
			return
		}
		select {
		case e, ok := <-exits:
			if !ok {
				exits = nil
				continue
			}
			w.ended(e)
		case <-ctx.Done():
			return
		}
	}
}

// debugs tells whether debug lines are written: where attempts are short, even making one that is not costs something.
func (w *Worker) debugs() bool { return w.log.Enabled(context.Background(), slog.LevelDebug) }

// ended frees the slot of an attempt whose process is gone. The outbox takes the token before the book lets go of it, so
// that it is in Held and Holding without a gap. A deferral counts more than how the process ended: the task was told to.
func (w *Worker) ended(e runner.Exit) {
	a := &e.Assignment
	r := task.Report{Job: a.Job, Stage: a.Stage, Shard: a.Shard, Token: a.Token, Outcome: e.Outcome, Outputs: e.Outputs}
	if wait, deferred := w.book.deferral(a.Token); deferred {
		r.Outcome = task.Outcome{End: task.EndDeferred, Wait: wait, RunMillis: e.Outcome.RunMillis}
	}
	if r.Outcome.End == task.EndDrained && w.book.stoppedFor(a.Token) == task.StopSleep {
		r.Outcome.Message = task.WentToSleep
	}
	w.outbox.add(r, true)
	w.book.end(a.Token)
	w.tellAwake()
	if w.debugs() {
		w.log.Debug("attempt ended", "job", a.Job, "shard", a.Shard, "attempt", a.Attempt, "token", a.Token, "end", r.Outcome.String())
	}
	kick(w.outboxKick)
	kick(w.launchKick)
	w.bell.Ring()
}
