package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/fsm"
	"lanjobs/node/api"
	"lanjobs/node/doctor"
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
	incarnation uint64 // this start of the agent
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
	restart  chan struct{} // closed by init: build anew
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
		Generation: m.identity.Cluster.Generation, OtherGeneration: m.heard.hear, Diverged: m.tellDiverged, Begin: m.begin(), Replaces: m.settings.Begin.Replaces,
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

// openFolder locks the data folder and reads who this node is, or makes it a new one.
func (m *machine) openFolder() error {
	dir := m.cfg.DataDir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		if p, is := errors.AsType[*task.Problem](diskProblem(dir, err)); is {
			return p
		}
		return task.NewProblem(task.ErrNotAllowed, fmt.Sprintf("the data folder cannot be made: %v", err), "Choose another one with --data-dir.")
	}
	if system := doctor.FileSystem(dir); doctor.IsNetwork(system) {
		return task.NewProblem(task.ErrConflict, fmt.Sprintf("%s is on a network share (%s): the log of the cluster needs memory maps and locks, which are not safe there.", dir, system),
			"Choose a folder on a disk of this machine: --data-dir DIR")
	}
	store, err := openLocalStore(dir)
	if newer, is := errors.AsType[*formatError](err); is {
		return newerData(m.cfg.Version, dir, newer.by, fmt.Sprintf("node.db is of form %d, and %s knows %d", newer.format, m.cfg.Version, storeFormat))
	}
	if errors.Is(err, errStoreDamaged) {
		m.log.Error("the node's own store is damaged: it is set aside and a new one begun", "error", err)
		m.trouble.note(aboutStore, fmt.Sprintf("This machine's own store was damaged and is begun anew; what was left is in %s.", filepath.Join(dir, localFile+".damaged")))
		store, err = replaceLocal(dir, m.clock)
	}
	if err != nil {
		return err
	}
	m.store = store
	m.later(store.Close)
	m.identity, err = transport.LoadIdentity(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if m.identity, err = transport.NewIdentity(m.cfg.Name); err == nil {
			err = m.identity.Save(dir)
		}
	}
	if newer, is := errors.AsType[*transport.IdentityFormatError](err); is {
		return newerData(m.cfg.Version, dir, store.writtenBy(), newer.Error())
	}
	if err != nil {
		return identityProblem(dir, err)
	}
	if err := m.checkForms(); err != nil {
		return err
	}
	if err := store.sign(m.cfg.Version); err != nil {
		return err
	}
	if m.settings, err = store.Settings(); err == nil {
		err = m.keepRules()
	}
	m.about = sync.OnceValue(m.readInfo)
	return err
}

func auditDir(cfg Config) string { return filepath.Join(cfg.DataDir, "audit") }

// identityProblem tells what to do where a machine no longer knows who it is.
func identityProblem(dir string, err error) error {
	if _, is := errors.AsType[*task.Problem](err); is {
		return err
	}
	if p, is := errors.AsType[*task.Problem](diskProblem(dir, err)); is {
		return p
	}
	return task.NewProblem(task.ErrConflict, fmt.Sprintf("this machine no longer knows which node it is: %v, in %s.", err, dir), asideHint)
}

// asideHint is the cure where what a folder holds is of no use any more.
const asideHint = "Come back as a new member: lanjobs join MACHINE --replace. If it was the only machine of its cluster: lanjobs backup restore FILE --replace, or without a backup lanjobs leave --force, which puts the data aside."

// openAudit opens the audit log and starts its writer: Raft replays into it before anything else runs.
func (m *machine) openAudit(ctx context.Context) error {
	a, err := observe.Open(observe.DefaultConfig(auditDir(m.cfg), m.clock, m.log))
	if err != nil {
		return err
	}
	m.audit = a
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	m.later(func() error {
		stop()
		return <-done
	})
	return nil
}

// founding is what the first leader commits: the keys of the cluster that this node was told to found.
func (m *machine) founding() (*fsm.InitCluster, error) {
	if m.settings.Begin.Admit { // the restored state has its keys; what it lacks is this machine
		return &fsm.InitCluster{ID: m.identity.Cluster.ID, Name: m.identity.Cluster.Name, By: owner()}, nil
	}
	ca, err := transport.LoadCA(m.cfg.DataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	key, err := ca.Marshal()
	if err != nil {
		return nil, err
	}
	c := m.identity.Cluster
	return &fsm.InitCluster{ID: c.ID, Name: c.Name, CACert: []byte(c.CACert), CAKey: key, GossipKey: c.GossipKey, By: owner()}, nil
}

// founds tells whether this node was told to found its cluster and has not done so yet.
func (m *machine) founds() bool {
	_, err := transport.LoadCA(m.cfg.DataDir)
	return err == nil
}

// founded forgets the authority's key on disk, once the cluster keeps it: with it, this folder could found the cluster anew.
func (m *machine) founded() {
	if m.settings.Begin.Admit {
		s := m.settings
		s.Begin = Begin{}
		if err := m.store.SetSettings(s); err != nil {
			m.log.Error("the settings could not be written", "error", err)
		}
	}
	if err := transport.ForgetCA(m.cfg.DataDir); err != nil {
		m.log.Error("the authority's key could not be deleted from the data folder", "error", err)
	}
}

// openRaft starts Raft on the ledger. Only a this-machine-only node or a founder begins a log of its own; a member without
// one waits until a leader gives it one.
func (m *machine) openRaft(f raft.FSM) (*raft.Raft, func() error, error) {
	stores, err := OpenStores(m.storeConfig())
	if err != nil {
		return nil, nil, err
	}
	stores.Wait = m.awaitDisk
	worst, err := MeasureFsync(m.cfg.DataDir, m.clock)
	if err != nil {
		return nil, nil, errors.Join(err, stores.Close())
	}
	cfg := RaftConfig(m.identity.NodeID, m.cfg.Tempo, worst, m.log)
	if m.wire == nil { // one voter for good: nobody to wait for
		cfg.HeartbeatTimeout, cfg.ElectionTimeout, cfg.LeaderLeaseTimeout = aloneTimeout, aloneTimeout, aloneTimeout
	}
	trans := transport.NewRaftTransport(m.layer)
	if !stores.HasLog() && (!m.identity.Member() || m.founds()) {
		if err := Genesis(cfg, stores, trans); err != nil {
			return nil, nil, errors.Join(err, trans.Close(), stores.Close())
		}
	}
	r, err := OpenRaft(cfg, f, stores, trans)
	if err != nil {
		return nil, nil, errors.Join(err, trans.Close(), stores.Close())
	}
	end := func() error {
		m.ending.Do(func() { close(m.ended) }) // what waits for the disk
		// Its own context: ending must not be cut short by what ended the node.
		return errors.Join(CloseRaft(context.Background(), r, stores, trans, m.clock), stores.Close())
	}
	return r, end, nil
}

// storeConfig is where this node's Raft store is, and of which history it must be.
func (m *machine) storeConfig() StoreConfig {
	return StoreConfig{DataDir: m.cfg.DataDir, Self: m.identity.NodeID, Generation: m.identity.Cluster.Generation, Log: m.log}
}

// openRunner opens what runs attempts. Its folder must be absolute, as commands run elsewhere.
func (m *machine) openRunner(ctx context.Context, w *worker.Worker) (worker.Runner, error) {
	dir, err := filepath.Abs(filepath.Join(m.cfg.DataDir, "runner"))
	if err != nil {
		return nil, err
	}
	r, err := runner.Open(context.WithoutCancel(ctx), runner.Config{Dir: dir, Exe: m.cfg.Exe, NodeName: m.identity.Name, NodeID: m.identity.NodeID,
		Clock: m.clock, Log: m.log, Backend: w, RunAs: m.settings.Rules.runAs(), AllowUsers: m.settings.Rules.AllowUsers})
	if err != nil {
		return nil, err
	}
	m.runner = r
	limits := r.Limits()
	m.limits.Store(&limits)
	m.later(r.Close)
	if m.cfg.NoopRunner {
		return newNoopRunner(), nil
	}
	return r, nil
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
	id := []byte("j000000")
	for i := 1; i < len(id); i++ {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(jobIDChars))))
		if err != nil {
			panic(err) // crypto/rand does not fail
		}
		id[i] = jobIDChars[n.Int64()]
	}
	return task.JobID(id)
}

// aloneTimeout is Raft's tempo on a this-machine-only node.
const aloneTimeout = 30 * time.Millisecond

// orderlyTimeout bounds an orderly end beyond the grace of what runs.
const orderlyTimeout = 5 * time.Second
