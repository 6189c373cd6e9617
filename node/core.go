package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/fsm"
	"lanjobs/node/leader"
	"lanjobs/node/worker"
	"lanjobs/task"
	"lanjobs/transport"
)

// Parts are what a Core is built from: all that touches the machine comes from outside, so that whole clusters run in
// virtual time on the same code.
type Parts struct {
	Self        task.NodeID
	Info        func() task.NodeInfo
	Incarnation uint64
	Clock       task.Clock
	Log         *slog.Logger
	Caller      transport.Caller
	Members     func() []task.NodeID // all that are known, for finding a leader
	NewJobID    func() task.JobID
	// Out tells why this node takes no part in its cluster, nil if it does. May be nil.
	Out func() error
	// OpenRaft starts Raft on the ledger and gives what ends it; nil on a plain worker, which keeps no log.
	OpenRaft func(raft.FSM) (r *raft.Raft, end func() error, err error)
	// Stuck hears that this node leads and can commit nothing: the cure is to start it again.
	Stuck func(error)
	// Founding is committed by the first leader of a cluster that has none yet; nil otherwise. Founded hears that it is.
	Founding *fsm.InitCluster
	// Generation of the cluster that this node is of; OtherGeneration hears of members of another one. 0 and nil: not told.
	Generation      uint64
	OtherGeneration func(from task.NodeID, generation uint64)
	// Begin is committed before anything else by a leader whose state is of an earlier generation: this history was begun
	// from it (I3). nil = never.
	Begin *fsm.NewGeneration
	// Diverged hears how this member's state compares with the leader's after an entry. May be nil.
	Diverged func(index uint64, differs bool)
	Era      time.Time // see leader.Config
	// Replaces are nodes whose place this one takes in a restored cluster, when it is founded.
	Replaces   []task.NodeID
	Founded    func()
	Events     func([]task.Event) // what committed entries did, in order
	SyncEvents func() error       // Events are on disk
	Restored   func(index uint64) // a snapshot took the place of all entries up to index
	Runner     func(*worker.Worker) (worker.Runner, error)
	Outbox     worker.Store
	Crashes    Crashes // nil = not counted
	Load       func() task.Load
	Awake      worker.Awake // keeps the machine awake; nil = nobody
	// Local answers the calls that are about this machine and not about the cluster: logs, API, join.
	Local transport.Handler
}

// Core is a node without its machine: ledger, Raft, leader, worker, and the way calls take between them.
type Core struct {
	parts   Parts
	ledger  *ledger
	raft    *raft.Raft   // nil on a plain worker
	endRaft func() error // sync.OnceValue
	hand    *Transfer
	leader  *leader.Leader
	worker  *worker.Worker
	control *control
	kick    chan struct{} // seats: look again now
	asleep  atomic.Bool   // from Sleep to Woke
	silent  atomic.Int64  // see Silence
	// hasKnown: a leader was known since the start; see Fresh.
	hasKnown atomic.Bool
	leaving  atomic.Bool // this node gives its own seat away: others are left alone meanwhile
}

var _ transport.Handler = (*Core)(nil)

// NewCore builds a core; nothing leads or works before Run. Close undoes it.
func NewCore(p Parts) (*Core, error) {
	c := &Core{parts: p, kick: make(chan struct{}, 1)}
	c.silent.Store(int64(p.Clock.Awake()))
	c.ledger = newLedger(p.Log, p.Clock, p.Events, p.SyncEvents, p.Restored)
	c.leader = leader.New(leader.Config{Self: p.Self, Log: c.ledger, Clock: p.Clock, Slog: p.Log, NewJobID: p.NewJobID, Elected: c.Leads, Caller: p.Caller, Begin: p.Begin, Era: p.Era})
	c.control = &control{self: p.Self, caller: p.Caller, clock: p.Clock, known: c.LeaderID, members: p.Members, out: p.Out, crashes: p.Crashes}
	c.worker = worker.New(worker.Config{NodeInfo: p.Info, Incarnation: p.Incarnation, Clock: p.Clock, Control: c.control,
		Store: p.Outbox, Load: p.Load, Awake: p.Awake, Log: p.Log})
	if p.OpenRaft != nil {
		r, end, err := p.OpenRaft(c.ledger)
		if err != nil {
			return nil, err
		}
		c.raft, c.endRaft, c.ledger.raft = r, sync.OnceValue(end), r
		c.hand = &Transfer{Self: p.Self, Raft: r, Clock: p.Clock, Ready: c.lastIndexOf}
	}
	r, err := p.Runner(c.worker)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.worker.Attach(r)
	return c, nil
}

// Run leads whenever this node is elected, and works. It ends with ctx, leaving running attempts to the guard, or with the
// first part that fails.
func (c *Core) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var parts sync.WaitGroup
	part := func(f func(context.Context) error) {
		parts.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				stop(err)
			}
		})
	}
	part(c.worker.Run)
	if c.raft != nil {
		part(c.leadTerms)
		part(c.watchLeader)
	}
	<-ctx.Done()
	parts.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// leadTerms leads one term after the other. The barrier has been passed before a term is handed over.
func (c *Core) leadTerms(ctx context.Context) error {
	terms := &Terms{Raft: c.raft, Clock: c.parts.Clock, Lead: c.leadTerm, Stuck: func(_ uint64, err error) { c.parts.Stuck(err) }}
	return terms.Run(ctx)
}

func (c *Core) leadTerm(ctx context.Context, number uint64) {
	c.parts.Log.Info("leading", "term", number)
	var parts sync.WaitGroup
	parts.Go(func() { _ = c.leader.Lead(ctx, number) }) // it ends with the term, for no other reason
	parts.Go(func() { c.found(ctx) })
	parts.Go(func() { c.keepSeats(ctx) })
	parts.Go(func() { c.compareDigests(ctx) })
	parts.Wait()
	c.parts.Log.Info("no longer leading", "term", number)
}

// found gives a cluster its name and keys in the first term that it has.
func (c *Core) found(ctx context.Context) {
	f := c.parts.Founding
	if f == nil {
		return
	}
	for ctx.Err() == nil {
		has := false
		c.ledger.Read(func(s *fsm.State) { has = s.Cluster.ID != "" && s.Node(c.parts.Self) != nil })
		if has {
			c.parts.Founded()
			return
		}
		r, err := c.leader.Propose(ctx, f)
		if err == nil && r.Err == nil {
			err = c.replace(ctx)
		}
		if err == nil && r.Err == nil {
			// The founder needs no token to be a member of what it founded.
			r, err = c.leader.Propose(ctx, &fsm.AdmitNode{Node: c.parts.Self, Name: c.parts.Info().Name})
		}
		if err == nil && r.Err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-c.parts.Clock.After(retryFounding):
		}
	}
}

// replace lets the nodes go whose place this one takes.
func (c *Core) replace(ctx context.Context) error {
	for _, id := range c.parts.Replaces {
		if c.Gone(id) {
			continue
		}
		if _, err := c.leader.Propose(ctx, &fsm.SetNode{Node: id, Action: fsm.NodeLeave, By: c.parts.Info().Name, Reason: "the cluster was restored from a backup; it goes on as " + string(c.parts.Self)}); err != nil {
			return err
		}
	}
	return nil
}

var _ transport.GenerationKeeper = (*Core)(nil)

// Close stops Raft. Run must have ended.
func (c *Core) Close() error { return c.StopRaft() }

// StopRaft ends this node's part in Raft while the rest runs on: it leads no more, and does not vote. Repeating it is harmless.
func (c *Core) StopRaft() error {
	if c.raft == nil {
		return nil
	}
	return c.endRaft()
}

// HandOver gives leadership to another voter before a planned stop. Not leading is no error.
func (c *Core) HandOver(ctx context.Context) error { return c.handOverTo(ctx, "") }

func (c *Core) handOverTo(ctx context.Context, to task.NodeID) error {
	if c.raft == nil {
		return nil
	}
	c.leader.Rest(ctx)
	err := c.hand.Do(ctx, to)
	if err != nil {
		c.leader.GoOn()
	}
	if errors.Is(err, ErrNotLeading) {
		return nil
	}
	return err
}
