package node

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/fsm"
	"lanjobs/node/leader"
	"lanjobs/task"
)

// ledger is the applied state of this member: raft.FSM on one side, leader.Log on the other. It keeps writer and readers
// apart and hands events on; it holds no rule.
type ledger struct {
	log    *slog.Logger
	events func([]task.Event)
	sync   func() error // audit events on disk, before a snapshot makes their entries unrepeatable
	jumped func(index uint64)
	clock  task.Clock

	mu      sync.RWMutex // guards state and broken
	state   *fsm.State
	broken  error         // an entry that this binary cannot apply: nothing after it may be applied either (R47)
	applied time.Duration // Awake() of the last entry
	changed chan struct{} // closed and renewed at each entry

	digests digests

	raft *raft.Raft // set once, before the first Propose
}

func newLedger(log *slog.Logger, clock task.Clock, events func([]task.Event), sync func() error, jumped func(uint64)) *ledger {
	return &ledger{log: log, clock: clock, events: events, sync: sync, jumped: jumped, state: fsm.New(), changed: make(chan struct{})}
}

// Apply applies one committed entry. What it returns reaches the leader's Future.
func (l *ledger) Apply(e *raft.Log) any {
	if e.Type != raft.LogCommand {
		return nil
	}
	l.mu.Lock()
	if l.broken != nil {
		l.mu.Unlock()
		return l.broken
	}
	results, events, err := l.state.Apply(e.Index, e.Data)
	if err != nil {
		l.broken = err
		l.mu.Unlock()
		l.log.Error("cannot apply a committed entry: this machine stops taking part until it runs a newer version", "index", e.Index, "error", err)
		return err
	}
	l.applied = l.clock.Awake()
	l.digests.passed(l.state)
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	if len(events) > 0 {
		l.events(events)
	}
	return results
}

// Read gives the applied state for reading.
func (l *ledger) Read(f func(*fsm.State)) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	f(l.state)
}

// Changed is closed at the next applied entry.
func (l *ledger) Changed() <-chan struct{} {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.changed
}

// Broken is why this member can no longer apply entries, nil if it can.
func (l *ledger) Broken() error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.broken
}

// Snapshot freezes the state; Persist writes it while entries go on being applied.
func (l *ledger) Snapshot() (raft.FSMSnapshot, error) {
	if err := l.sync(); err != nil {
		return nil, fmt.Errorf("audit log before snapshot: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return nil, l.broken
	}
	return &frozen{l.state.Snapshot()}, nil
}

// freeze gives the state as of the last applied entry; writing it out takes no lock.
func (l *ledger) freeze() *fsm.Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.Snapshot()
}

// Restore replaces the state whole, or leaves it as it is and returns the error.
func (l *ledger) Restore(r io.ReadCloser) error {
	defer r.Close()
	s, err := fsm.Read(r)
	if err != nil {
		return err
	}
	l.jumped(s.Index)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = s
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

type frozen struct{ snapshot *fsm.Snapshot }

func (f *frozen) Persist(sink raft.SnapshotSink) error {
	if err := f.snapshot.Write(sink); err != nil {
		_ = sink.Cancel() // the write error is the one to tell
		return err
	}
	return sink.Close()
}

func (f *frozen) Release() {}

// proposeTimeout bounds how long an entry may wait to be taken up by Raft, applyTimeout how long for its result: Raft's
// futures can hang for ever (hashicorp/raft#498).
const (
	proposeTimeout = 2 * time.Second
	applyTimeout   = 10 * time.Second
)

// Propose hands an entry to Raft.
func (l *ledger) Propose(entry []byte) leader.Future {
	return &applyFuture{l.raft.Apply(entry, proposeTimeout), l.clock}
}

type applyFuture struct {
	raft  raft.ApplyFuture
	clock task.Clock
}

func (f *applyFuture) Wait(ctx context.Context) ([]fsm.Result, error) {
	if err := waitFuture(ctx, f.clock, f.raft, applyTimeout); err != nil {
		return nil, err
	}
	switch r := f.raft.Response().(type) {
	case []fsm.Result:
		return r, nil
	case error:
		return nil, r
	default:
		return nil, fmt.Errorf("entry gave %T", r)
	}
}
