package clustertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/fsm"
	"lanjobs/node"
	"lanjobs/node/worker"
	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
	"lanjobs/transport/memnet"
)

// cluster is some machines on one in-memory network.
type cluster struct {
	t        *testing.T
	net      *memnet.Network
	oracle   *oracle
	rand     *rand.Rand
	rough    bool                          // clocks are off by up to a tenth and boot clocks show anything
	pace     int                           // steps of work take so many times longer
	guardLag time.Duration                 // how late guards are after a thaw
	between  func(*process)                // what a process does between two steps
	wrong    map[task.NodeID]time.Duration // how far wall clocks are off from the beginning
	era      time.Time                     // see leader.Config
	logger   *slog.Logger

	mu       sync.Mutex // guards machines, which nodes read while a test may replace one
	machines []*machine
}

// machine is one node with what survives its crash: disk and incarnation.
type machine struct {
	c     *cluster
	id    task.NodeID
	clock *memnet.Clock
	still func() // undoes what stopped the machine, nil while it runs
	host  *memnet.Host

	log   *raft.InmemStore
	snaps *raft.InmemSnapshotStore
	inc   uint64

	core   *node.Core
	runner *fakeRunner
	awake  *inhibitor
	layer  *transport.RaftLayer
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// run gives f a running cluster of n machines in a bubble of virtual time.
func run(t *testing.T, n int, f func(c *cluster)) {
	t.Helper()
	runWith(t, n, func(*cluster) {}, f)
}

// runWith is run for a cluster that prepare changes before its first machine is made.
func runWith(t *testing.T, n int, prepare, f func(c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, pace: 1, guardLag: 150 * time.Millisecond, net: memnet.New(), oracle: newOracle(t), rand: rand.New(rand.NewSource(1)),
			logger: slog.New(slog.NewTextHandler(logOutput(), &slog.HandlerOptions{Level: slog.LevelDebug}))}
		prepare(c)
		for i := range n {
			c.add(task.NodeID(fmt.Sprintf("n%d", i+1)))
		}
		defer c.close() // also after a failure: what is left in the bubble would hide the reason
		for i, m := range c.machines {
			m.start(i == 0)
		}
		c.admitAll()
		f(c)
		c.checkAll()
	})
}

func (c *cluster) close() {
	for _, m := range c.machines {
		m.crash()
	}
	c.net.Close()
	synctest.Wait()
}

// logOutput shows what the nodes log when LANJOBS_TEST_LOG is set.
func logOutput() io.Writer {
	if os.Getenv("LANJOBS_TEST_LOG") != "" {
		return os.Stderr
	}
	return io.Discard
}

func (c *cluster) add(id task.NodeID) *machine {
	rate := 1.0
	if c.rough {
		rate = []float64{0.9, 1.1, 0.9 + 0.2*c.rand.Float64()}[c.rand.Intn(3)] // often as far off as the promise goes
	}
	m := &machine{c: c, id: id, clock: memnet.NewDriftingClock(rate), host: c.net.Host(id), log: raft.NewInmemStore(), snaps: raft.NewInmemSnapshotStore()}
	m.reboot()
	m.clock.Shift(c.wrong[id])
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machines = append(c.machines, m)
	return m
}

// reboot starts the boot clock anew, anywhere: what it showed before means nothing any more (I9).
func (m *machine) reboot() {
	if m.c.rough {
		m.clock.Reboot(time.Duration(m.c.rand.Int63n(int64(2000 * time.Hour))))
	}
}

// start begins a new life of the agent on what the disk holds.
func (m *machine) start(found bool) {
	m.inc++
	m.runner = newFakeRunner(m)
	m.awake = &inhibitor{}
	awake := runner.NewAwake(runner.AwakeConfig{Policy: runner.InhibitMains, Inhibitor: m.awake, Clock: m.clock, Log: m.c.logger.With("node", m.id)})
	m.layer = transport.NewRaftLayer(transport.RaftLayerConfig{
		Self: m.id, Cluster: "virtual", Session: func() transport.Session { return transport.Session{} },
		Dial:  func(ctx context.Context, id task.NodeID) (conn, error) { return m.host.Dial(ctx, id, "raft") },
		Clock: m.clock, Log: m.c.logger,
	})
	parts := node.Parts{
		Self: m.id, Incarnation: m.inc, Clock: m.clock, Log: m.c.logger.With("node", m.id),
		Info: func() task.NodeInfo {
			return task.NodeInfo{ID: m.id, Name: string(m.id), Slots: 2, CPUs: 2, OS: "linux", Arch: "amd64", Voter: true, Level: fsm.Level, Host: string(m.id)}
		},
		Caller: m.c.net.Caller(m.id), Members: m.c.ids, NewJobID: newJobID(),
		OpenRaft: func(f raft.FSM) (*raft.Raft, func() error, error) { return m.openRaft(f, found) },
		Awake:    awake, Era: m.c.era,
		Events: m.tell, SyncEvents: func() error { return nil }, Restored: func(uint64) {}, Founded: func() {}, Stuck: func(error) {},
		Runner: func(w *worker.Worker) (worker.Runner, error) { m.runner.worker = w; return m.runner, nil },
	}
	if found && m.inc == 1 {
		parts.Founding = &fsm.InitCluster{ID: "virtual", Name: "virtual"}
	}
	core, err := node.NewCore(parts)
	if err != nil {
		m.c.t.Fatal(err)
	}
	m.core = core
	m.c.net.Serve(m.id, core)
	ln := m.host.Listen("raft")
	ctx, stop := context.WithCancel(context.Background())
	m.stop = func() { stop(); _ = ln.Close() }
	m.done.Go(func() { _ = m.layer.Serve(ln) })
	m.done.Go(func() { _ = core.Run(ctx) })
	m.done.Go(func() { _ = awake.Run(ctx) })
	m.runner.begin()
}

// tell passes on what committed entries did here.
func (m *machine) tell(events []task.Event) { m.c.oracle.audit(m.id, events) }

// openRaft opens Raft on the stores that outlive a crash.
func (m *machine) openRaft(f raft.FSM, found bool) (*raft.Raft, func() error, error) {
	cfg := node.RaftConfig(m.id, 1, 0, m.c.logger.With("node", m.id))
	trans := transport.NewRaftTransport(m.layer)
	if found && m.inc == 1 {
		first := raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Voter, ID: cfg.LocalID, Address: raft.ServerAddress(cfg.LocalID)}}}
		if err := raft.BootstrapCluster(cfg, m.log, m.log, m.snaps, trans, first); err != nil {
			return nil, nil, err
		}
	}
	r, err := raft.NewRaft(cfg, f, m.log, m.log, m.snaps, trans)
	if err != nil {
		return nil, nil, err
	}
	trans.Guard(func() task.NodeID { _, id := r.LeaderWithID(); return task.NodeID(id) },
		func() bool { last, _ := m.log.LastIndex(); return last > 0 }, func(id task.NodeID) bool { return node.StandsBy(r, id) })
	return r, func() error { err := trans.Close(); _ = r.Shutdown().Error(); return err }, nil
}

// crash is a power cut: processes, agent and connections end at once. The disk stays.
func (m *machine) crash() {
	if m.core == nil {
		return
	}
	if m.still != nil {
		m.still()
	}
	m.runner.powerOff()
	m.stop()
	m.layer.Close()
	m.c.net.Kill(m.id)
	m.done.Wait()
	if err := m.core.Close(); err != nil {
		m.c.t.Errorf("%s: %v", m.id, err)
	}
	m.core = nil
	m.reboot()
}

func (c *cluster) ids() []task.NodeID {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]task.NodeID, len(c.machines))
	for i, m := range c.machines {
		out[i] = m.id
	}
	return out
}

// admitAll lets all machines in and waits until the voters are as many as they should be.
func (c *cluster) admitAll() {
	c.until(time.Minute, "a founded cluster", func() bool {
		l := c.leader()
		has := false
		if l != nil {
			l.core.Read(func(s *fsm.State) { has = s.Cluster.ID != "" })
		}
		return has
	})
	for _, m := range c.machines[1:] {
		c.admit(m)
	}
	c.untilVoters()
}

// admit lets a machine in under a token of its own.
func (c *cluster) admit(m *machine) {
	c.propose(&fsm.CreateToken{ID: string(m.id), Hash: []byte(m.id), TTL: task.Hour, Uses: 1})
	c.propose(&fsm.AdmitNode{TokenHash: []byte(m.id), Node: m.id, Name: string(m.id)})
}

// untilVoters waits until as many machines vote as should, all of them here.
func (c *cluster) untilVoters() {
	want := map[int]int{1: 1, 2: 1, 3: 3, 4: 3, 5: 3}[len(c.machines)]
	c.until(2*time.Minute, "all voters", func() bool {
		l := c.leader()
		if l == nil {
			return false
		}
		voters := 0
		for _, s := range l.core.Servers() {
			if s.Suffrage == raft.Voter {
				voters++
			}
			if !slices.Contains(c.ids(), task.NodeID(s.ID)) {
				return false
			}
		}
		return voters == want
	})
}

// leader is the machine that leads now, nil if none does.
func (c *cluster) leader() *machine {
	for _, m := range c.machines {
		if m.core != nil && m.core.Leads() && m.clock.Runs() {
			return m
		}
	}
	return nil
}

// until waits in virtual time for a condition.
func (c *cluster) until(limit time.Duration, what string, ok func() bool) {
	c.t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("%s: not within %s", what, limit)
		}
	}
}

// propose commits a command on whoever leads, repeating it until it is answered.
func (c *cluster) propose(cmd fsm.Command) fsm.Result {
	c.t.Helper()
	var r fsm.Result
	c.until(2*time.Minute, fmt.Sprintf("%T", cmd), func() bool {
		l := c.leader()
		if l == nil {
			return false
		}
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		var err error
		r, err = l.core.Propose(ctx, cmd)
		return err == nil
	})
	return r
}

// submit stores a job and gives its id.
func (c *cluster) submit(name string, stages ...task.StageSpec) task.JobID {
	c.t.Helper()
	spec := task.Spec{Name: name, Queue: "default", Retain: task.Day, Stages: stages}
	data, err := json.Marshal(spec)
	if err != nil {
		c.t.Fatal(err)
	}
	r := c.propose(&fsm.SubmitJob{RequestID: task.RequestID("r-" + name), Job: task.JobID(name), Spec: data, Digest: data})
	if r.Err != nil {
		c.t.Fatal(r.Err)
	}
	return r.Job
}

// state reads the leader's state of a job.
func (c *cluster) state(id task.JobID) (st task.JobState) {
	if l := c.leader(); l != nil {
		l.core.Read(func(s *fsm.State) {
			if j := s.Job(id); j != nil {
				st = j.State
			}
		})
	}
	return st
}

func (c *cluster) untilDone(id task.JobID, limit time.Duration) {
	c.t.Helper()
	var st task.JobState
	defer func() {
		if c.t.Failed() {
			c.dump()
		}
	}()
	c.until(limit, "job "+string(id)+" done", func() bool { st = c.state(id); return st != "" && st.Final() })
	if st != task.JobSucceeded {
		c.t.Fatalf("job %s is %s", id, st)
	}
}

// dump tells what every machine knows, for a test that failed.
func (c *cluster) dump() {
	for _, m := range c.machines {
		if m.core == nil {
			c.t.Logf("%s is off", m.id)
			continue
		}
		c.t.Logf("%s leads=%v leader=%q worker=%+v", m.id, m.core.Leads(), m.core.LeaderID(), m.core.Worker().Status())
		m.core.Read(func(s *fsm.State) {
			c.t.Logf("   index %d term %d clock %d leases %d", s.Index, s.Term, s.Clock, s.LeaseCount())
			for _, n := range s.Nodes() {
				c.t.Logf("   node %s incarnation %d online %v held %d", n.Info.ID, n.Incarnation, n.Online, s.Held(n.Info.ID))
			}
			for seq := range s.JobSeqs() {
				if j := s.JobBySeq(seq); j != nil {
					for i := range j.Stages {
						c.t.Logf("   %s stage %d %s %v", j.ID, i, j.Stages[i].State, j.Stages[i].Counts)
					}
				}
			}
		})
	}
}

// checkAll waits until every live machine has applied the same and compares (I10), with the laws of the ledger.
func (c *cluster) checkAll() {
	c.t.Helper()
	c.net.Heal()
	c.untilAllMaySleep()
	type seen struct {
		index  uint64
		digest [32]byte
	}
	c.until(time.Minute, "equal states on all machines", func() bool {
		var all []seen
		for _, m := range c.machines {
			if m.core == nil || m.core.Servers() == nil {
				continue
			}
			m.core.Read(func(s *fsm.State) {
				if err := s.Check(); err != nil {
					c.t.Errorf("%s: %v", m.id, err)
				}
				all = append(all, seen{s.Index, s.Digest()})
			})
		}
		return len(slices.Compact(all)) == 1
	})
}

func newJobID() func() task.JobID {
	r := rand.New(rand.NewSource(1))
	return func() task.JobID { return task.JobID("j" + strconv.FormatInt(r.Int63n(1<<30), 36)) }
}

func stage(name string, shards int, ttl task.Millis, needs ...string) task.StageSpec {
	r := task.DefaultRetry()
	r.Initial, r.LeaseLosses = task.Second, 1000
	return task.StageSpec{Name: name, Shards: shards, Needs: needs, When: task.WhenSuccess, Run: "x", Lease: task.DefaultLease(ttl), Retry: r}
}
