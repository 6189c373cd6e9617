package leader

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

// Sizes and times of a term.
const (
	maxInFlight   = 1         // batches proposed and not yet applied
	maxBatchBytes = 128 << 10 // soft: a batch holds at least one command
	sameJobBytes  = 128       // about what a job takes whose spec is in the batch already
	maxQueue      = 16384     // waiting commands; beyond it callers are told to come again
	keepAlive     = 5 * time.Second
	collectEvery  = time.Minute
	collectAgain  = 50 * time.Millisecond // where one collection left something: as fast as jobs may end
	splitEvery    = time.Second
	moreEvery     = 20 * time.Millisecond // between plans that go on where the last one stopped
)

// request is one queued command.
type request struct {
	cmd  fsm.Command
	done chan outcome // buffered: the writer never waits for a caller
}

type outcome struct {
	result fsm.Result
	err    error
}

// term is the office of one term: a queue, the sessions, and the writer.
type term struct {
	cfg      Config
	number   uint64
	sessions *sessions
	wake     chan struct{} // something may have to be written

	mu       sync.Mutex // guards the queue, flight, lacks and inFlight
	queue    []*request
	closed   bool
	flight   *plan.Flight
	lacks    plan.Lacks
	shown    atomic.Pointer[plan.Lacks] // a copy of lacks, for explanations
	inFlight int
	quiet    chan struct{} // not nil: nothing is proposed any more; closed when nothing is in flight

	// Owned by the writer.
	measured    time.Duration // Awake() up to which time has been given to the cluster clock
	started     time.Duration
	lastCollect time.Duration
	lastSplit   time.Duration
	timetable   *plan.Timetable
	wakeDue     time.Duration // Awake() by which schedules may want machines woken; 0 = none does
	batches     sync.WaitGroup
}

func newTerm(cfg Config, number uint64) *term {
	now := cfg.Clock.Awake()
	t := &term{cfg: cfg, number: number, wake: make(chan struct{}, 1), flight: plan.NewFlight(), measured: now, started: now, lastCollect: now,
		timetable: plan.NewTimetable(cfg.NewJobID)}
	t.sessions = newSessions(cfg, t.nudge)
	return t
}

// nudge wakes the writer; it never blocks.
func (t *term) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// propose queues a command and waits for its result.
func (t *term) propose(ctx context.Context, c fsm.Command) (fsm.Result, error) {
	if err := t.tooNew(c); err != nil {
		return fsm.Result{}, err
	}
	t.mu.Lock()
	r, err := t.push(c)
	t.mu.Unlock()
	if err != nil {
		return fsm.Result{}, err
	}
	t.nudge()
	return r.wait(ctx)
}

// push puts a command at the end of the queue, if there is room. The caller holds mu.
func (t *term) push(c fsm.Command) (*request, error) {
	switch {
	case len(t.queue) >= maxQueue:
		return nil, errQueueFull()
	case t.closed:
		return nil, errTermOver()
	}
	r := &request{cmd: c, done: make(chan outcome, 1)}
	t.queue = append(t.queue, r)
	return r, nil
}

// TooNew refuses a command that a member could not apply (R47), as Propose would.
func (l *Leader) TooNew(c fsm.Command) error { return tooNew(l.cfg.Log, c) }

// tooNew refuses a command that a member could not apply (R47): it would stop there for good.
func (t *term) tooNew(c fsm.Command) error { return tooNew(t.cfg.Log, c) }

func tooNew(log Log, c fsm.Command) (err error) {
	log.Read(func(s *fsm.State) {
		for _, n := range s.Nodes() {
			if n.Gone != "" || n.Incarnation == 0 || n.Info.Level >= fsm.Level || max(n.Info.Level, 1) >= fsm.LevelOf(c) {
				continue
			}
			err = task.NewProblem(task.ErrConflict, fmt.Sprintf("this needs a newer lanjobs on every machine; %s runs %s", n.Info.Name, n.Info.Version),
				"Copy the new binary to "+n.Info.Name+" and start it again.")
			return
		}
	})
	return err
}

func errTermOver() error {
	return task.NewProblem(task.ErrNoLeader, "leadership has ended here: its fate is unknown, repeat it", "")
}

// run is the writer. The first entry of a term says who leads.
func (t *term) run(ctx context.Context) error {
	defer t.close()
	t.mu.Lock()
	for _, c := range t.first() {
		t.queue = append(t.queue, &request{cmd: c, done: make(chan outcome, 1)})
	}
	t.mu.Unlock()
	t.nudge()
	timer := t.cfg.Clock.NewTimer(keepAlive)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.wake:
		case <-timer.C():
		}
		for t.step(ctx) {
		}
		t.rouse(ctx)
		timer.Stop()
		timer.Reset(t.delay())
	}
}

// first are the commands of a term before which nothing is granted or answered. A history that was begun from an older state
// raises the generation of tokens: nothing that was issued before, by whatever was lost, may ever be taken for current (I3).
func (t *term) first() []fsm.Command {
	out := []fsm.Command{&fsm.Elected{Node: t.cfg.Self, Term: t.number}}
	if b := t.cfg.Begin; b != nil {
		t.cfg.Log.Read(func(s *fsm.State) {
			if s.Generation < b.AtLeast {
				out = append(out, b)
			}
		})
	}
	return out
}

// rest stops proposing and waits until all that was proposed is settled: a successor then needs nothing more (DESIGN 4).
func (t *term) rest(ctx context.Context) {
	t.mu.Lock()
	if t.quiet == nil {
		t.quiet = make(chan struct{})
		t.settled()
	}
	quiet := t.quiet
	t.mu.Unlock()
	select {
	case <-quiet:
	case <-ctx.Done():
	}
}

// settled tells who waits in rest when nothing is in flight. The caller holds mu.
func (t *term) settled() {
	if t.quiet == nil || t.inFlight > 0 {
		return
	}
	select {
	case <-t.quiet:
	default:
		close(t.quiet)
	}
}

// goOn is the end of rest: nobody took over.
func (t *term) goOn() {
	t.mu.Lock()
	t.quiet = nil
	t.mu.Unlock()
	t.nudge()
}

// close ends the term: nobody waits for it any longer, and no goroutine of it is left.
func (t *term) close() {
	t.mu.Lock()
	t.closed = true
	queue := t.queue
	t.queue = nil
	t.mu.Unlock()
	for _, r := range queue {
		r.done <- outcome{err: errTermOver()}
	}
	t.sessions.close()
	t.batches.Wait()
}

// now is the cluster clock as a batch built at this moment would set it.
func (t *term) now(s *fsm.State) task.Instant {
	return s.Clock.Add(min(task.MillisOf(t.cfg.Clock.Awake()-t.measured), fsm.MaxElapsed))
}

// led is the time led as a batch built at this moment would set it.
func (t *term) led(s *fsm.State) task.Millis {
	return s.Led + task.MillisOf(t.cfg.Clock.Awake()-t.measured)
}

// delay is how long the writer may sleep when nothing arrives.
func (t *term) delay() time.Duration {
	wait := time.Hour
	since := t.cfg.Clock.Awake() - t.measured
	t.cfg.Log.Read(func(s *fsm.State) {
		if at, ok := t.due(s); ok {
			wait = min(keepAlive-since, at.Sub(t.now(s)).Duration()+time.Millisecond)
		}
		if at, ok := s.DueLed(); ok {
			wait = min(wait, (at-t.led(s)).Duration()+time.Millisecond)
		}
		wait = min(wait, t.sessions.untilSilent(s))
		if due, ok := t.timetable.Next(s, t.wall(s)); ok {
			wait = min(wait, due)
		}
		if t.wakeDue > 0 {
			wait = min(wait, t.wakeDue-t.cfg.Clock.Awake())
		}
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	wait = min(wait, t.untilMore())
	if t.inFlight > 0 {
		wait = max(wait, time.Second) // its completion wakes the writer
	}
	return max(wait, time.Millisecond)
}

// due is the earliest thing that happens by itself.
func (t *term) due(s *fsm.State) (task.Instant, bool) {
	at, ok := s.Due()
	if d, has := plan.NextDrain(s, s.Clock); has && (!ok || d < at) {
		at, ok = d, true
	}
	return at, ok
}
