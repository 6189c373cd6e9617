package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"lanjobs/node/bell"
	"lanjobs/task"
)

// EventGap stands where events are missing on this member: its Reason says which and why.
const EventGap task.EventKind = "audit.gap"

// Position names an event for good.
type Position struct {
	Index uint64
	N     int
}

// At is an event's position.
func At(e *task.Event) Position { return Position{e.Index, e.N} }

// Less orders positions.
func (p Position) Less(q Position) bool {
	return p.Index < q.Index || p.Index == q.Index && p.N < q.N
}

func (p Position) String() string { return fmt.Sprintf("%d.%d", p.Index, p.N) }

// Config is what an audit log is opened from.
type Config struct {
	Dir      string // made if it is not there
	Clock    task.Clock
	Log      *slog.Logger
	MaxBytes int64         // of one file
	MaxAge   time.Duration // of one file, by this machine's wall clock
	Keep     int           // old files beside the one being written
}

// DefaultConfig keeps half a gigabyte at most.
func DefaultConfig(dir string, clock task.Clock, log *slog.Logger) Config {
	return Config{Dir: dir, Clock: clock, Log: log, MaxBytes: 32 << 20, MaxAge: 7 * 24 * time.Hour, Keep: 15}
}

// Validate returns all faults at once.
func (c Config) Validate() error {
	var faults []error
	for _, f := range []struct {
		bad  bool
		what string
	}{
		{c.Dir == "", "Dir"}, {c.Clock == nil, "Clock"}, {c.Log == nil, "Log"},
		{c.MaxBytes < 1, "MaxBytes"}, {c.MaxAge <= 0, "MaxAge"}, {c.Keep < 1, "Keep"},
	} {
		if f.bad {
			faults = append(faults, fmt.Errorf("audit log: %s is missing", f.what))
		}
	}
	return errors.Join(faults...)
}

// Sizes and times of the writer.
const (
	maxQueued  = 1 << 16     // events; beyond it Append waits
	flushBytes = 256 << 10   // lines gathered before a write, when there is no pause to write in
	flushEvery = time.Second // the longest that a line waits for its write
	maxPending = 4 << 20     // bytes of lines kept while the disk refuses them
)

// Audit is one member's audit log.
type Audit struct {
	cfg  Config
	wake chan struct{} // something is queued
	bell bell.Bell     // rung when lines can be read

	mu     sync.Mutex // guards the queue
	room   *sync.Cond
	queue  [][]task.Event
	queued int
	closed bool

	writing sync.Mutex // held while events move from the queue to the file; guards all below
	file    *file
	last    Position // of the last event that was taken; what is not above it is a replay
}

// Open reads where the log ended. Nothing is written to disk before Run, Sync or a full buffer.
func Open(c Config) (*Audit, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	f, last, err := openFile(c)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	a := &Audit{cfg: c, wake: make(chan struct{}, 1), file: f, last: last}
	a.room = sync.NewCond(&a.mu)
	return a, nil
}

// Append takes the events of one entry, in order of the entries. It costs Apply a lock and an append; only when the queue
// is full does it wait, since an event that was dropped here would be missing for good. After Run has ended it does
// nothing: the events come again at the next start.
func (a *Audit) Append(events []task.Event) {
	if len(events) == 0 {
		return
	}
	a.mu.Lock()
	for !a.closed && a.queued > 0 && a.queued+len(events) > maxQueued {
		a.room.Wait()
	}
	if !a.closed {
		a.queue = append(a.queue, events)
		a.queued += len(events)
	}
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Jumped notes that the state came whole from elsewhere, as of the entry index (a snapshot from the leader): entries since
// the last event were not applied here one by one. Call it before the next Append, and not for the member's own
// snapshot at its start.
func (a *Audit) Jumped(index uint64) {
	a.writing.Lock()
	defer a.writing.Unlock()
	a.take()
	if index <= a.last.Index {
		return
	}
	a.accept(&task.Event{Index: index, Kind: EventGap, Wall: a.cfg.Clock.Wall().UnixMilli(),
		Reason: fmt.Sprintf("entries after %d up to %d came as a snapshot: their events are in the audit logs of other members", a.last.Index, index)})
	a.flush()
}

// Run writes until ctx ends, then writes what is left.
func (a *Audit) Run(ctx context.Context) error {
	timer := a.cfg.Clock.NewTimer(flushEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return a.close()
		case <-a.wake:
		case <-timer.C():
		}
		if a.pump() {
			timer.Stop()
			timer.Reset(flushEvery) // the disk refuses: try again later, without a wake
		}
	}
}

// pump moves everything queued to the file, and then, in the pause, to the disk. It tells whether the disk refuses lines.
func (a *Audit) pump() (again bool) {
	for {
		a.writing.Lock()
		more := a.take()
		ok := true
		if !more || a.file.stale() {
			ok = a.flush()
		}
		a.writing.Unlock()
		if !more {
			return !ok
		}
	}
}

// take moves what is queued into the file's buffer, false if there was nothing. The caller holds writing, so that groups
// stay in order.
func (a *Audit) take() bool {
	a.mu.Lock()
	groups := a.queue
	a.queue, a.queued = nil, 0
	a.room.Broadcast()
	a.mu.Unlock()
	for _, g := range groups {
		for i := range g {
			a.accept(&g[i])
		}
	}
	return len(groups) > 0
}

// accept writes one event, unless it was written before the restart that made it come again.
func (a *Audit) accept(e *task.Event) {
	at := At(e)
	if !a.last.Less(at) {
		return
	}
	a.last = at
	a.file.add(e)
	say(a.cfg.Log, e)
}

// flush makes lines readable. False: the disk refuses them.
func (a *Audit) flush() bool {
	wrote, err := a.file.flush()
	if wrote {
		a.bell.Ring()
	}
	return err == nil
}

// Sync returns once every event that was appended before is on disk to stay. Call it before a snapshot of the state is
// kept: the entries in it are not replayed. An error means that lines are still in memory only.
func (a *Audit) Sync() error {
	a.writing.Lock()
	defer a.writing.Unlock()
	a.take()
	wrote, err := a.file.flush()
	if wrote {
		a.bell.Ring()
	}
	if err == nil {
		err = a.file.sync()
	}
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

// Last is the position of the newest event taken.
func (a *Audit) Last() Position {
	a.writing.Lock()
	defer a.writing.Unlock()
	return a.last
}

func (a *Audit) close() error {
	a.mu.Lock()
	a.closed = true
	a.room.Broadcast()
	a.mu.Unlock()
	err := a.Sync()
	a.writing.Lock()
	defer a.writing.Unlock()
	return errors.Join(err, a.file.close())
}
