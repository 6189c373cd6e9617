package runner

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"lanjobs/task"
)

// guard is the process whose children all commands are (R14). It obeys deadlines by itself, keeps output and ends on disk, and
// leaves when it has nothing to do and nobody talks to it.
//
// mu guards all fields below it. Never held over a fork, a wait or a write to a log; the journal's short writes are made under
// it, so that the order on disk is the order of events.
type guard struct {
	cfg    guardConfig
	clock  task.Clock
	log    *slog.Logger
	queue  chan *guarded // waiting for a spawner; bounded: when full the agent's messages wait in the socket
	null   *os.File
	pack   *logPack
	cgroup *cgroupPool // nil where the system does not allow it

	// forking is held for reading from before a fork until its pid is known, and for writing while all processes are listed:
	// a search must not take a child that is about to become a command for an orphan.
	forking sync.RWMutex

	changed chan struct{} // nudges waitIdle
	wake    chan struct{} // nudges poll
	stale   chan struct{} // nudges flushLogs
	born    chan struct{} // nudges the reaper: there is a child again

	mu       sync.Mutex
	held     map[task.ExecutionID]*guarded
	mains    map[int]*guarded         // by pid of the command's own process
	forks    uint64                   // begun so far
	inflight map[uint64]bool          // those under way
	early    map[int]earlyEnd         // ends of children whose fork has not returned yet
	orphans  map[int]task.ExecutionID // children by adoption that a search found to be another attempt's
	running  int                      // not ended
	watching bool                     // watch looks at the clock already
	hunting  int                      // goroutines that go on killing what would not die
	journal  *journal
	out      *outbox // to the agent, nil while there is none
	met      bool    // an agent was here
	bye      bool    // the agent left on purpose
	closing  bool    // told to end: take nothing new
	oom      [2]uint64
}

// guardConfig is the guard's command line.
type guardConfig struct {
	dir, id, build, socket string
	idle                   time.Duration
	cgroups                bool
	cgroupBase             string // where its control groups go; "" = the guard's own group
}

func (c guardConfig) args() []string {
	return []string{"--dir", c.dir, "--id", c.id, "--build", c.build, "--socket", c.socket,
		"--idle", c.idle.String(), fmt.Sprintf("--cgroups=%t", c.cgroups), "--cgroup-base", c.cgroupBase}
}

// GuardMain is the hidden subcommand `lanjobs guard`; it returns the process's exit code. Only an agent starts it (see
// startGuard); "ready" on its standard output says that its socket answers.
func GuardMain(args []string) int {
	var c guardConfig
	flags := flag.NewFlagSet("guard", flag.ContinueOnError)
	flags.StringVar(&c.dir, "dir", "", "the runner's folder")
	flags.StringVar(&c.id, "id", "", "name of this guard")
	flags.StringVar(&c.build, "build", "", "mark of the binary")
	flags.StringVar(&c.socket, "socket", "", "path of the socket to make")
	flags.DurationVar(&c.idle, "idle", time.Minute, "leave after so long without work and agent")
	flags.BoolVar(&c.cgroups, "cgroups", true, "use control groups where allowed")
	flags.StringVar(&c.cgroupBase, "cgroup-base", "", "make control groups in this one")
	if err := flags.Parse(args); err != nil || c.dir == "" || c.id == "" || c.socket == "" {
		fmt.Fprintln(os.Stderr, "lanjobs guard is started by the node itself; it is of no use by hand.")
		return 2
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("guard", c.id)
	if err := runGuard(c, log); err != nil {
		log.Error("guard failed", "error", err)
		return 1
	}
	return 0
}

func runGuard(c guardConfig, log *slog.Logger) error {
	g := &guard{
		cfg: c, clock: SystemClock(), log: log,
		queue:   make(chan *guarded, 4*task.MaxSlots),
		changed: make(chan struct{}, 1), wake: make(chan struct{}, 1), stale: make(chan struct{}, 1), born: make(chan struct{}, 1),
		held: map[task.ExecutionID]*guarded{}, mains: map[int]*guarded{}, inflight: map[uint64]bool{}, early: map[int]earlyEnd{},
		orphans: map[int]task.ExecutionID{},
		pack:    &logPack{dir: logDir(c.dir), guard: c.id},
	}
	debug.SetGCPercent(400) // its heap is tiny, its work is all short-lived garbage
	if err := g.settle(); err != nil {
		return err
	}
	card := &hello{ID: c.id, Build: c.build, Pid: os.Getpid()}
	if c.cgroups {
		if g.cgroup = openCgroups(c.cgroupBase, c.id); g.cgroup != nil {
			card.Cgroup = g.cgroup.dir
			defer g.cgroup.close(func() { <-g.clock.After(5 * time.Millisecond) })
		}
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer closeQuietly(null)
	g.null = null
	if g.journal, err = createJournal(journalPath(c.dir, c.id), card); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	listener, err := listenUnix(c.socket)
	if err != nil {
		return err
	}
	// The process ends with this function and takes the goroutines along; what they keep is on disk by then.
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	g.begin(ctx)
	go g.accept(listener, card)
	fmt.Println("ready")
	g.waitIdle()
	return g.leave(listener)
}

// leave closes the door first: an agent that connects too late finds nobody, reads the journal, and starts a new guard.
func (g *guard) leave(listener net.Listener) error {
	err := listener.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	return errors.Join(err, g.journal.close())
}

// waitIdle returns when nothing runs and either the agent said goodbye or none has come for a while. It looks only when
// something changed: an idle guard under a living agent does nothing at all.
func (g *guard) waitIdle() {
	for {
		g.mu.Lock()
		idle := g.running == 0 && g.hunting == 0 && (g.out == nil || g.closing)
		// Ended attempts that nobody has asked for yet are in the journal; whoever comes later reads them there.
		now := g.closing || g.bye
		patience := g.cfg.idle
		if !g.met {
			patience = max(patience, guardReady) // the one that started us is on its way
		}
		g.mu.Unlock()
		switch {
		case idle && now:
			return
		case !idle:
			<-g.changed
			continue
		}
		select {
		case <-g.changed:
		case <-g.clock.After(patience):
			g.mu.Lock()
			g.bye = g.bye || g.out == nil
			g.mu.Unlock()
		}
	}
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func closeQuietly(f *os.File) { _ = f.Close() }

func guardDir(dir string) string { return filepath.Join(dir, "guard") }

func journalPath(dir, id string) string { return filepath.Join(guardDir(dir), id+".journal") }
