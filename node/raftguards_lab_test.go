package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/task"
	"lanjobs/transport"
	"lanjobs/transport/memnet"
)

// The experiments of raftguards_*_test.go run real hashicorp/raft in virtual time, each twice: as this product uses it, and in a
// control run on the library's own transport (or call), where the fault must show. If a control run no longer fails, the
// library was mended, or the experiment no longer shows what it should.

var silent = slog.New(slog.DiscardHandler)

// lab is a few machines with Raft on a memnet.
type lab struct {
	t       *testing.T
	net     *memnet.Network
	guarded bool // false = control run
	// inFlight is MaxRPCsInFlight of the library's transport; 1 = no pipelines.
	inFlight int
	nodes    map[task.NodeID]*labNode
	// resolve tells which machine really answers when from dials to; nil = to.
	resolve func(from, to task.NodeID) task.NodeID
	admit   func(task.NodeID, transport.Session) error
	// dialer reaches a machine another way than by its name; nil = by name.
	dialer func(ctx context.Context, from, to task.NodeID) (net.Conn, error)
}

// labNode is one machine. What it keeps over a crash is store and snapshots.
type labNode struct {
	lab     *lab
	id      task.NodeID
	cluster string
	host    *memnet.Host
	store   RaftStore
	snaps   raft.SnapshotStore
	tune    func(*raft.Config)

	raft    *raft.Raft
	fsm     *labFSM
	trans   raft.Transport
	layer   *transport.RaftLayer
	serving sync.WaitGroup

	mu       sync.Mutex
	refusals []*transport.Refusal
}

func newLab(t *testing.T, guarded bool, ids ...task.NodeID) *lab {
	l := &lab{t: t, net: memnet.New(), guarded: guarded, nodes: map[task.NodeID]*labNode{}}
	for _, id := range ids {
		l.add(id)
	}
	return l
}

func (l *lab) add(id task.NodeID) *labNode {
	n := &labNode{lab: l, id: id, cluster: "cluster-x", host: l.net.Host(id)}
	n.wipe()
	l.nodes[id] = n
	return n
}

// wipe gives the machine empty disks.
func (n *labNode) wipe() {
	n.store = ramStore{raft.NewInmemStore()}
	n.snaps = raft.NewInmemSnapshotStore()
}

type ramStore struct{ *raft.InmemStore }

func (ramStore) Close() error   { return nil }
func (ramStore) Compact() error { return nil }

func (n *labNode) config() *raft.Config {
	c := RaftConfig(n.id, 1, 0, silent)
	if n.tune != nil {
		n.tune(c)
	}
	return c
}

// bootstrap writes the same first entry on all of the machines.
func (l *lab) bootstrap(voters ...task.NodeID) {
	l.t.Helper()
	var c raft.Configuration
	for _, id := range voters {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id)})
	}
	for _, id := range voters {
		n := l.nodes[id]
		if n == nil {
			continue // a voter that exists in the configuration only
		}
		_, trans := raft.NewInmemTransport("")
		if err := raft.BootstrapCluster(n.config(), n.store, n.store, n.snaps, trans, c); err != nil {
			l.t.Fatal(err)
		}
	}
}

func (l *lab) start(ids ...task.NodeID) {
	l.t.Helper()
	for _, id := range ids {
		l.nodes[id].start()
	}
}

func (n *labNode) start() {
	n.lab.t.Helper()
	n.fsm = &labFSM{}
	n.connect()
	var err error
	if g, ok := n.trans.(*transport.RaftTransport); ok {
		stores := &RaftStores{Store: n.store, Snapshots: n.snaps}
		n.raft, err = OpenRaft(n.config(), n.fsm, stores, g)
	} else {
		n.raft, err = raft.NewRaft(n.config(), n.fsm, n.store, n.store, n.snaps, n.trans)
	}
	if err != nil {
		n.lab.t.Fatal(err)
	}
}

// connect gives the machine its transport: ours, or the library's own.
func (n *labNode) connect() {
	ln := n.host.Listen("raft")
	if !n.lab.guarded {
		n.trans = &plainTransport{NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream: plainStream{ln, n}, MaxPool: 3, Timeout: transport.RaftTimeout, Logger: transport.HCLog(silent),
			MaxRPCsInFlight: n.lab.inFlight,
		})}
		return
	}
	n.layer = transport.NewRaftLayer(transport.RaftLayerConfig{
		Self: n.id, Cluster: n.cluster, Generation: 1,
		Session: func() transport.Session { return transport.Session{Counter: 1} },
		Dial:    n.dial,
		Admit:   n.lab.admit,
		Refused: func(r *transport.Refusal) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.refusals = append(n.refusals, r)
		},
		Clock: memnet.NewClock(), Log: silent,
	})
	n.serving.Go(func() { _ = n.layer.Serve(ln) })
	n.trans = transport.NewRaftTransport(n.layer)
}

// heard tells whether a stream from or to the machine was refused for that reason.
func (n *labNode) heard(reason error) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.refusals, func(r *transport.Refusal) bool { return errors.Is(r, reason) })
}

func (n *labNode) dial(ctx context.Context, id task.NodeID) (net.Conn, error) {
	if n.lab.dialer != nil {
		return n.lab.dialer(ctx, n.id, id)
	}
	if n.lab.resolve != nil {
		id = n.lab.resolve(n.id, id)
	}
	return n.host.Dial(ctx, id, "raft")
}

// plainTransport is the library's transport. Its pipelines may never end by themselves (see TestPipelineStuck), so the lab
// remembers them.
type plainTransport struct {
	*raft.NetworkTransport
	mu    sync.Mutex
	pipes []raft.AppendPipeline
}

func (p *plainTransport) AppendEntriesPipeline(id raft.ServerID, addr raft.ServerAddress) (raft.AppendPipeline, error) {
	pipe, err := p.NetworkTransport.AppendEntriesPipeline(id, addr)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.pipes = append(p.pipes, pipe)
	}
	return pipe, err
}

func (p *plainTransport) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pipe := range p.pipes {
		_ = pipe.Close()
	}
}

// plainStream is a stream layer as the library's users write it.
type plainStream struct {
	net.Listener
	node *labNode
}

func (s plainStream) Dial(id raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.node.dial(ctx, task.NodeID(id))
}

// crash ends the machine's process; its disks stay.
func (n *labNode) crash() {
	n.lab.net.Kill(n.id)
	if p, ok := n.trans.(*plainTransport); ok {
		p.free()
	}
	if n.raft != nil {
		_ = n.raft.Shutdown().Error() // closes the transport too
		n.raft = nil
	} else if c, ok := n.trans.(raft.WithClose); ok {
		_ = c.Close()
	}
	if n.layer != nil {
		n.layer.Close()
	}
	n.serving.Wait()
}

// close ends everything; the bubble fails if a goroutine stays.
func (l *lab) close() {
	l.net.Heal()
	for id := range l.nodes {
		l.net.Thaw(id)
		l.net.Restore(id)
	}
	for _, n := range l.nodes {
		if n.trans != nil {
			n.crash()
		}
	}
	l.net.Close()
	time.Sleep(time.Minute) // the library's accept loops end at their next look
}

// until lets virtual time run until ok; it reports whether that came within limit.
func until(limit time.Duration, ok func() bool) bool {
	for start := time.Now(); time.Since(start) < limit; time.Sleep(10 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return ok()
}

// leader gives the one that leads in the highest term, waiting up to 10 s; without gives one that is not that node.
func (l *lab) leader(without ...task.NodeID) *labNode {
	l.t.Helper()
	var best *labNode
	if !until(10*time.Second, func() bool { best = l.leads(without...); return best != nil }) {
		l.t.Fatal("no leader within 10 s")
	}
	return best
}

func (l *lab) leads(without ...task.NodeID) (best *labNode) {
	for _, n := range l.nodes {
		if n.raft == nil || slices.Contains(without, n.id) {
			continue
		}
		if _, leads := leadership(n.raft); leads && (best == nil || n.raft.CurrentTerm() > best.raft.CurrentTerm()) {
			best = n
		}
	}
	return best
}

// leadBy makes a machine lead, by the library's own transfer between healthy machines.
func (l *lab) leadBy(id task.NodeID) *labNode {
	l.t.Helper()
	moved := until(20*time.Second, func() bool {
		now := l.leads()
		if now == nil || now.id == id {
			return now != nil
		}
		_ = now.raft.LeadershipTransferToServer(raft.ServerID(id), raft.ServerAddress(id)).Error()
		return false
	})
	if !moved {
		l.t.Fatalf("%s does not lead", id)
	}
	return l.nodes[id]
}

// apply commits a command within d.
func (n *labNode) apply(command string, d time.Duration) error {
	return waitFuture(context.Background(), memnet.NewClock(), n.raft.Apply([]byte(command), d), d)
}

func (n *labNode) mustApply(command string) {
	n.lab.t.Helper()
	if err := n.apply(command, 5*time.Second); err != nil {
		n.lab.t.Fatalf("apply %q on %s: %v", command, n.id, err)
	}
}

// level waits until all running machines have applied as much as the furthest.
func (l *lab) level(limit time.Duration) bool {
	return until(limit, func() bool {
		var most uint64
		for _, n := range l.nodes {
			if n.raft != nil {
				most = max(most, n.raft.LastIndex())
			}
		}
		for _, n := range l.nodes {
			if n.raft != nil && n.raft.AppliedIndex() < most {
				return false
			}
		}
		return true
	})
}

// header is the sender of a request written by hand.
func header(id task.NodeID) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: []byte(id)}
}

// labFSM remembers the commands it applied, with their indices.
type labFSM struct {
	mu       sync.Mutex
	applied  []string
	restores int
}

func (f *labFSM) Apply(e *raft.Log) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applied = append(f.applied, fmt.Sprintf("%d=%s", e.Index, e.Data))
	return nil
}

func (f *labFSM) has(command string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.applied, func(a string) bool {
		_, c, _ := strings.Cut(a, "=")
		return c == command
	})
}

func (f *labFSM) state() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprint(f.applied)
}

func (f *labFSM) restored() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.restores
}

func (f *labFSM) Snapshot() (raft.FSMSnapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, err := json.Marshal(f.applied)
	return labSnapshot(b), err
}

func (f *labFSM) Restore(r io.ReadCloser) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.restores++
	f.applied = nil
	return json.NewDecoder(r).Decode(&f.applied)
}

type labSnapshot []byte

func (s labSnapshot) Persist(sink raft.SnapshotSink) error {
	if _, err := sink.Write(s); err != nil {
		return err
	}
	return sink.Close()
}

func (labSnapshot) Release() {}
