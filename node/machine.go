package node

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"lanjobs/node/api"
	"lanjobs/node/observe"
	"lanjobs/node/worker"
	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

// machine is one life of a node on one machine: every real part, built in one straight line by buildMachine and taken down in
// reverse by close.
type machine struct {
	cfg         Config
	log         *slog.Logger
	clock       task.Clock
	identity    *transport.Identity
	settings    Settings
	incarnation uint64        // this start of the agent
	started     task.Boot     // of this life
	clockSeen   time.Duration // Awake() of the last look at the others' wall clocks; used by watchPlace alone
	about       func() task.NodeInfo
	meter       loadMeter
	power       power
	awake       *runner.Awake
	store       *localStore
	audit       *observe.Audit
	wire        *wire // nil on a this-machine-only node
	layer       *transport.RaftLayer
	caller      *transport.Client
	core        *Core
	built       atomic.Pointer[Core] // core, for connections that are made before it is there
	runner      *runner.Runner
	limits      atomic.Pointer[string] // what the runner says of them, once it is open
	pairs       *pairDesk
	api         *api.API
	socket      socketDoor
	trouble     trouble
	heard       heardHistories
	over        atomic.Pointer[errOver]  // with restart: to a later history
	recovery    atomic.Pointer[recovery] // with restart: this machine begins one
	outed       chan struct{}            // closed by putOut
	ended       chan struct{}            // closed when Raft is to end
	ending      sync.Once

	ready    chan struct{} // closed once clients are answered
	once     sync.Once     // the first of init and leave counts
	restart  chan struct{} // closed by init, a recovery, a later history: build anew
	departed chan struct{} // closed by leave
	stopped  chan struct{} // closed by stop
	left     atomic.Bool
	cleanups []func() error
}

// later registers a clean-up right after the thing exists; they run in reverse.
func (m *machine) later(f func() error) { m.cleanups = append(m.cleanups, f) }

// close takes down what was built. The parts started by run must have ended.
func (m *machine) close() error {
	var errs []error
	for i := len(m.cleanups) - 1; i >= 0; i-- {
		errs = append(errs, m.cleanups[i]())
	}
	m.cleanups = nil
	return errors.Join(errs...)
}

// buildMachine builds a node on its data folder. The order is one of need: the folder's lock first, so that nothing is touched
// under another process; the audit log before the ledger that fills it; Raft before the worker that calls the leader.
func buildMachine(ctx context.Context, cfg Config) (m *machine, err error) {
	m = &machine{cfg: cfg, log: cfg.Log, clock: cfg.Clock, ready: make(chan struct{}), restart: make(chan struct{}), departed: make(chan struct{}), stopped: make(chan struct{}), outed: make(chan struct{}), ended: make(chan struct{})}
	if m.clock == nil {
		m.clock = runner.SystemClock()
	}
	m.started = m.clock.Boot()
	if m.cfg.Inhibitor == nil {
		m.cfg.Inhibitor = runner.SystemInhibitor()
	}
	if m.cfg.Sleeps == nil {
		m.cfg.Sleeps = runner.WatchSleep
	}
	defer func() {
		if err != nil {
			m.endLife()
			err = errors.Join(err, m.close())
			m = nil
		}
	}()
	if err := m.openFolder(); err != nil {
		return m, err
	}
	if err := m.beginLife(); err != nil {
		return m, err
	}
	if m.incarnation, err = m.store.NextIncarnation(); err != nil {
		return m, err
	}
	if err := m.openAudit(ctx); err != nil {
		return m, err
	}
	if err := m.openNetwork(); err != nil {
		return m, err
	}
	if err := m.askAround(ctx); err != nil {
		return m, err
	}
	founding, err := m.founding()
	if err != nil {
		return m, err
	}
	m.awake = runner.NewAwake(runner.AwakeConfig{Policy: m.settings.Rules.inhibit(), Inhibitor: m.cfg.Inhibitor, OnBattery: m.onBattery, Clock: m.clock, Log: m.log})
	m.core, err = NewCore(Parts{
		Self: m.identity.NodeID, Info: m.info, Incarnation: m.incarnation, Clock: m.clock, Log: m.log, Caller: m.caller, Members: m.members,
		NewJobID: newJobID, Out: m.outError, OpenRaft: m.openRaft, Founding: founding, Founded: m.founded, Events: m.events, SyncEvents: m.audit.Sync, Restored: m.audit.Jumped,
		Stuck: func(err error) {
			m.log.Error("this node leads and can commit nothing; if this stays, start it again", "error", err)
		},
		Runner:     func(w *worker.Worker) (worker.Runner, error) { return m.openRunner(ctx, w) },
		Generation: m.identity.Cluster.Generation, OtherGeneration: m.heard.hear, Diverged: m.tellDiverged, Begin: m.begin(), Era: era, Replaces: m.settings.Begin.Replaces,
		Outbox: outboxStore{m.store}, Crashes: m.store, Load: m.load, Awake: m.awake, Local: &local{m},
	})
	if err != nil {
		return m, err
	}
	m.built.Store(m.core)
	m.later(m.core.Close)
	m.pairs = newPairDesk(m)
	if m.api, err = m.newAPI(); err != nil {
		return m, err
	}
	if !cfg.Embedded {
		if m.socket, err = openSocketDoor(ctx, cfg.DataDir, m.api, m.clock); err != nil {
			return m, err
		}
		m.later(m.socket.close)
	}
	return m, nil
}

// askAround asks the other members what this machine must know before its Raft starts: both questions at once, as machines that
// sleep do not answer. A copy goes over to nothing.
func (m *machine) askAround(ctx context.Context) error {
	over := make(chan error, 1)
	go func() { over <- m.askHistories(ctx) }()
	err, later := m.onlyOne(ctx), <-over
	if err != nil {
		return err
	}
	return later
}

// events takes what committed entries did: the audit log, and what concerns connections.
func (m *machine) events(es []task.Event) {
	m.audit.Append(es)
	for i := range es {
		e := &es[i]
		if m.wire != nil && e.Kind == task.EventClientRemove { // after it was applied: it is no client any more
			m.wire.trust.CloseClients(m.noClient)
		}
		switch {
		case m.wire == nil || e.Kind != task.EventNodeRemove: // who leaves by itself still wants its answer
		case e.Node == m.identity.NodeID:
			m.putOut(m.removedProblem(""))
		default:
			m.wire.trust.CloseNode(e.Node)
		}
	}
}

// members is whom to ask for the leader.
func (m *machine) members() []task.NodeID {
	if m.wire == nil {
		return nil
	}
	return m.wire.book.IDs()
}

// jobIDChars are Crockford's base 32 in lower case: no i, l, o or u to misread.
const jobIDChars = "0123456789abcdefghjkmnpqrstvwxyz"

// newJobID draws a job's id: "j" and six characters.
func newJobID() task.JobID {
	id := make([]byte, 7)
	_, _ = rand.Read(id) // never fails
	for i, b := range id {
		id[i] = jobIDChars[int(b)%len(jobIDChars)] // 32 of them: each as likely as the others
	}
	id[0] = 'j'
	return task.JobID(id)
}

// orderlyTimeout bounds an orderly end beyond the grace of what runs.
const orderlyTimeout = 5 * time.Second
