package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"lanjobs/task"
)

// Config is what a runner is told.
type Config struct {
	Dir      string // its folder; one runner at a time, the node's lock on its data folder sees to that
	Exe      string // this binary: the guard, and first in the PATH of commands
	NodeName string
	NodeID   task.NodeID
	Clock    task.Clock // SystemClock if nil; guards use that in any case
	Log      *slog.Logger
	Backend  Backend // who answers its tasks
	// GuardArgs is the hidden subcommand that leads to GuardMain; "guard" if empty.
	GuardArgs []string
	// GuardIdle is how long a guard without work waits for its agent before it leaves; a minute if 0.
	GuardIdle time.Duration
	// RunAs is the user that attempts run as which ask for none, "" = the node's own; AllowUsers are those that they may ask for. See
	// CheckUsers, which must have found nothing.
	RunAs      string
	AllowUsers []string
	// NoCgroups leaves control groups alone even where they are allowed.
	NoCgroups bool
	// LogKeepBytes and LogKeepAge bound the logs of ended attempts; 1 GiB and 30 days if 0.
	LogKeepBytes int64
	LogKeepAge   time.Duration
}

// Validate returns all faults at once.
func (c Config) Validate() error {
	var errs []error
	if !filepath.IsAbs(c.Dir) {
		errs = append(errs, fmt.Errorf("runner folder %q is not an absolute path", c.Dir))
	}
	if !filepath.IsAbs(c.Exe) {
		errs = append(errs, fmt.Errorf("binary %q is not an absolute path", c.Exe))
	}
	if c.LogKeepBytes < 0 || c.LogKeepAge < 0 || c.GuardIdle < 0 {
		errs = append(errs, errors.New("log limits and guard idle time cannot be negative"))
	}
	return errors.Join(errs...)
}

// Runner runs attempts on this machine; it implements worker.Runner. See doc.go for its states and what it does when things fail.
type Runner struct {
	cfg     Config
	clock   task.Clock
	log     *slog.Logger
	base    []task.KV // environment passed on to every command
	sockets string    // folder of sockets
	httpLog *log.Logger
	doors   doors
	spares  *spareDirs
	probes  probes
	cgroups cgroupBase

	reception *reception
	exits     chan Exit // bounded: whoever is slow to take them makes the deliverer wait, not the guard
	held      []Held

	ctx    context.Context // ends with Close; the parent of all goroutines
	cancel context.CancelFunc
	wg     sync.WaitGroup

	starting sync.Mutex    // one new guard at a time; taken before mu
	wakeW    chan struct{} // nudges watch: something runs
	wakeD    chan struct{} // nudges deliver: something ended
	wakeC    chan struct{} // nudges clean

	mu       sync.Mutex
	backend  Backend
	attempts map[task.ExecutionID]*attempt
	links    map[string]*link // to living guards, by guard id
	ended    []*attempt       // to be delivered; no longer than attempts
	trash    []paths          // to be removed
	closed   bool
}

// exitsWaiting is how many ended attempts the channel holds.
const exitsWaiting = 64

// Open takes over what an earlier agent left: it reattaches to running attempts, kills what nobody guards any more, and
// prepares ended ones for Exits (R14, I13). When it returns no process of an earlier life runs that Held does not list.
func Open(ctx context.Context, cfg Config) (*Runner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	ctx, cancel := context.WithCancel(ctx)
	r := &Runner{
		cfg: cfg, clock: cfg.Clock, log: cfg.Log, base: baseEnv(os.Getenv), backend: cfg.Backend,
		exits: make(chan Exit, exitsWaiting), ctx: ctx, cancel: cancel,
		httpLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
		wakeW:   make(chan struct{}, 1), wakeD: make(chan struct{}, 1), wakeC: make(chan struct{}, 1),
		attempts: map[task.ExecutionID]*attempt{}, links: map[string]*link{},
	}
	if err := r.open(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = SystemClock()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if len(c.GuardArgs) == 0 {
		c.GuardArgs = []string{"guard"}
	}
	c.GuardIdle = cmp.Or(c.GuardIdle, time.Minute)
	c.LogKeepBytes = cmp.Or(c.LogKeepBytes, 1<<30)
	c.LogKeepAge = cmp.Or(c.LogKeepAge, 30*24*time.Hour)
	return c
}

func (r *Runner) open() error {
	for _, d := range []string{r.cfg.Dir, filepath.Join(r.cfg.Dir, "attempt"), r.logDir(), guardDir(r.cfg.Dir)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	var err error
	if r.spares, err = openSpares(filepath.Join(r.cfg.Dir, "spare")); err != nil {
		return err
	}
	if r.sockets, err = socketDir(r.cfg.Dir); err != nil {
		return err
	}
	r.doors.dir = r.sockets
	if r.switches() {
		if err := r.openToUsers(); err != nil {
			return err
		}
	}
	r.openCgroups()
	r.reception = newReception(r)
	r.wg.Go(func() { _ = r.reception.server.Serve(r.reception) }) // ends with Close
	if err := r.adopt(); err != nil {
		return err
	}
	r.killStrays()
	r.cgroups.sweep()
	if err := r.findTrash(); err != nil {
		return err
	}
	r.mu.Lock()
	for _, a := range r.attempts {
		r.held = append(r.held, Held{Assignment: a.assignment, Deadlines: a.deadlines, Running: !a.ended})
		if !a.ended {
			r.serveEndpoint(a)
		}
	}
	r.mu.Unlock()
	for _, run := range []func(){r.deliver, r.watch, r.clean} {
		r.wg.Go(run)
	}
	nudge(r.wakeW)
	return nil
}

// Exits delivers each ended attempt once per life of the agent, until Forget.
func (r *Runner) Exits() <-chan Exit { return r.exits }

// Held lists what an earlier agent left, as found by Open.
func (r *Runner) Held() []Held { return r.held }

func (r *Runner) isRunning(x task.ExecutionID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.attempts[x]
	return a != nil && !a.ended
}

// KillAll ends everything at once, without grace.
func (r *Runner) KillAll() {
	r.mu.Lock()
	var running []task.ExecutionID
	for x, a := range r.attempts {
		if !a.ended {
			running = append(running, x)
		}
	}
	r.mu.Unlock()
	for _, x := range running {
		r.Stop(x, task.StopShutdown, 0)
	}
}

// Close leaves without touching what runs: the guard goes on, and a guard with nothing to do leaves too.
func (r *Runner) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	var ends []*endpoint
	for _, a := range r.attempts {
		if a.endpoint != nil {
			ends = append(ends, a.endpoint)
		}
	}
	for _, l := range r.links {
		r.leave(l)
	}
	r.mu.Unlock()
	r.cancel()
	for _, e := range ends {
		e.close()
	}
	r.doors.close()
	if r.reception != nil {
		_ = r.reception.server.Close() // connections are closed already
	}
	r.wg.Wait()
	return nil
}
