package leader

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// Log is Raft as the leader sees it.
type Log interface {
	// Propose hands an entry to Raft in order of the calls and returns at once.
	Propose(entry []byte) Future
	// Read gives the applied state to f for reading; f must be quick and keep nothing.
	Read(f func(*fsm.State))
}

// Future is the fate of one entry.
type Future interface {
	// Wait gives the results once the entry was committed and applied here. Any error means that its fate is unknown.
	Wait(ctx context.Context) ([]fsm.Result, error)
}

// Config is what a leader is built from.
type Config struct {
	Self     task.NodeID
	Log      Log
	Clock    task.Clock
	Slog     *slog.Logger
	NewJobID func() task.JobID // random; taken ids are drawn again
	// Elected tells that this node has been elected, though its term may not have begun: callers then wait for it. May be nil.
	Elected func() bool
	// Caller has other machines send the packets that wake one (Schedule.Wake); nil = nobody does.
	Caller transport.Caller
	// Begin is the first command of a term whose state is of an earlier generation than it says; nil = none.
	Begin *fsm.NewGeneration
	// Era is a time that is surely past: a wall clock that shows less is wrong. Zero = none is.
	Era time.Time
}

// electedWait is how long a caller waits for the term of a node that has just been elected: until what was committed before
// is applied.
const electedWait = time.Second

// Leader answers for a node whether it leads or not; at most one term runs at a time.
type Leader struct {
	cfg Config

	mu    sync.Mutex
	term  *term         // nil = not leading
	began chan struct{} // closed and renewed when a term begins
}

// New is a leader that does not lead yet.
func New(cfg Config) *Leader { return &Leader{cfg: cfg, began: make(chan struct{})} }

// Lead works for one term until ctx ends. Everything committed in earlier terms must have been applied before.
func (l *Leader) Lead(ctx context.Context, number uint64) error {
	t := newTerm(l.cfg, number)
	l.mu.Lock()
	l.term = t
	close(l.began)
	l.began = make(chan struct{})
	l.mu.Unlock()
	err := t.run(ctx)
	l.mu.Lock()
	l.term = nil
	l.mu.Unlock()
	return err
}

// current gives the running term, or the refusal.
func (l *Leader) current() (*term, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == nil {
		return nil, task.NewProblem(task.ErrNoLeader, "this machine does not lead now", "")
	}
	return l.term, nil
}

// soon is current, after a short wait if this node has been elected and its term is about to begin.
func (l *Leader) soon(ctx context.Context) (*term, error) {
	l.mu.Lock()
	began := l.began
	l.mu.Unlock()
	t, err := l.current()
	if err == nil || l.cfg.Elected == nil || !l.cfg.Elected() {
		return t, err
	}
	timer := l.cfg.Clock.NewTimer(electedWait)
	defer timer.Stop()
	select {
	case <-began:
	case <-timer.C():
	case <-ctx.Done():
	}
	return l.current()
}

// Propose commits one command and gives its result. An error means that its fate is unknown or that it was never sent;
// a refusal is in the result.
func (l *Leader) Propose(ctx context.Context, c fsm.Command) (fsm.Result, error) {
	t, err := l.soon(ctx)
	if err != nil {
		return fsm.Result{}, err
	}
	return t.propose(ctx, c)
}

// Rest stops proposing before leadership is handed over, until GoOn or the end of the term; it returns when all that was
// proposed is settled, or with ctx. What arrives meanwhile waits.
func (l *Leader) Rest(ctx context.Context) {
	if t, err := l.current(); err == nil {
		t.rest(ctx)
	}
}

// GoOn takes Rest back: nobody took over.
func (l *Leader) GoOn() {
	if t, err := l.current(); err == nil {
		t.goOn()
	}
}

// Seen is what the running term knows of a node; ok is false when this node does not lead.
func (l *Leader) Seen(id task.NodeID) (s Seen, ok bool) {
	t, err := l.current()
	if err != nil {
		return Seen{}, false
	}
	return t.sessions.seen(id)
}

// Progress is the last progress text of a running attempt, "" if none.
func (l *Leader) Progress(tok task.Token) string {
	t, err := l.current()
	if err != nil {
		return ""
	}
	return t.sessions.progressOf(tok)
}

// Leading tells whether a term runs here.
func (l *Leader) Leading() bool {
	_, err := l.current()
	return err == nil
}
