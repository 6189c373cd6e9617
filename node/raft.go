package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/task"
	"lanjobs/transport"
)

// The tempo of Raft (DESIGN 5): as fast as the guard against #695 allows. RaftConfig slows all of it down together.
const (
	raftHeartbeat = 500 * time.Millisecond
	raftElection  = 500 * time.Millisecond
	raftLease     = 400 * time.Millisecond
	raftCommit    = 100 * time.Millisecond

	raftMaxAppend    = 512 // 64 collapses with more waiting appliers; bytes are bounded by the transport
	raftLogCache     = 512
	raftTrailing     = 10_240 // less lets a snapshot be installed for ever on a node with more uncommitted entries (#697)
	raftSnapshotAt   = 8192
	raftSnapshotEach = 2 * time.Minute
)

// RaftConfig makes Raft's settings for this machine: the default time-outs times tempo, and slower still if its disk asks for
// it. Heartbeats wait behind the follower's disk writes here (see transport.RaftTransport), so a leader's lease shorter than
// twice the worst sync would run out while all is well.
func RaftConfig(self task.NodeID, tempo float64, worstSync time.Duration, log *slog.Logger) *raft.Config {
	if tempo <= 0 {
		tempo = 1
	}
	if slow := float64(2*worstSync) / float64(raftLease); slow > tempo {
		tempo = slow
	}
	scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) * tempo) }
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(self)
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = scaled(raftHeartbeat), scaled(raftElection), scaled(raftLease)
	c.CommitTimeout = raftCommit
	c.MaxAppendEntries = raftMaxAppend
	c.TrailingLogs, c.SnapshotThreshold, c.SnapshotInterval = raftTrailing, raftSnapshotAt, raftSnapshotEach
	c.ShutdownOnRemove = false // the node decides what being removed means
	c.NoLegacyTelemetry = true
	c.Logger = transport.HCLog(log)
	return c
}

// syncTries is how often MeasureFsync writes: the worst of so few is about the 95th percentile.
const syncTries = 20

// MeasureFsync gives the worst time that a small synced write takes in a folder, out of a few.
func MeasureFsync(dir string, clock task.Clock) (worst time.Duration, err error) {
	f, err := os.CreateTemp(dir, "sync-*.tmp")
	if err != nil {
		return 0, fmt.Errorf("measure the disk: %w", err)
	}
	defer func() {
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}()
	page := make([]byte, 4096)
	for range syncTries {
		start := clock.Awake()
		if _, err := f.Write(page); err != nil {
			return 0, fmt.Errorf("measure the disk in %s: %w", filepath.Clean(dir), err)
		}
		if err := f.Sync(); err != nil {
			return 0, fmt.Errorf("measure the disk in %s: %w", filepath.Clean(dir), err)
		}
		worst = max(worst, clock.Awake()-start)
	}
	return worst, nil
}

// Genesis writes the first entry of a new cluster, with this node as its one voter. It is the only way a cluster comes to be:
// nothing ever bootstraps by itself. A store that holds anything refuses it.
func Genesis(cfg *raft.Config, stores *RaftStores, trans raft.Transport) error {
	first := raft.Configuration{Servers: []raft.Server{{
		Suffrage: raft.Voter, ID: cfg.LocalID, Address: raft.ServerAddress(cfg.LocalID),
	}}}
	if err := raft.BootstrapCluster(cfg, stores.Store, stores.Store, stores.Snapshots, trans, first); err != nil {
		return fmt.Errorf("begin the cluster: %w", err)
	}
	return nil
}

// OpenRaft starts Raft on the stores. It panics for no state of them: what raft panics at becomes an error that wraps ErrAmnesia.
func OpenRaft(cfg *raft.Config, machine raft.FSM, stores *RaftStores, trans *transport.RaftTransport) (r *raft.Raft, err error) {
	cached, err := raft.NewLogCache(raftLogCache, stores.Store)
	if err != nil {
		return nil, err
	}
	trans.Guard(func() task.NodeID { return "" }, stores.HasLog, func(task.NodeID) bool { return false })
	err = guarded(func() (err error) {
		var stable raft.StableStore = stores.Store
		if stores.Wait != nil {
			stable = patientStore{stores.Store, stores.Wait}
		}
		r, err = raft.NewRaft(cfg, machine, cached, stable, stores.Snapshots, trans)
		return err
	})
	if errors.Is(err, errDamagedStore) {
		return nil, stores.amnesia(ReasonDamaged, err.Error())
	}
	if err != nil {
		return nil, fmt.Errorf("start raft: %w", err)
	}
	trans.Guard(func() task.NodeID {
		_, id := r.LeaderWithID()
		return task.NodeID(id)
	}, stores.HasLog, func(id task.NodeID) bool { return StandsBy(r, id) })
	return r, nil
}

// StandsBy tells whether a node is in the newest configuration that this node's log holds, without a vote.
func StandsBy(r *raft.Raft, id task.NodeID) bool {
	f := r.GetConfiguration()
	return f.Error() == nil && slices.ContainsFunc(f.Configuration().Servers, func(s raft.Server) bool {
		return s.ID == raft.ServerID(id) && s.Suffrage != raft.Voter
	})
}

// shutdownTimeout bounds the end of Raft: it waits for its goroutines, of which one may hang in a disk that does not answer.
const shutdownTimeout = 5 * time.Second

// CloseRaft ends Raft and marks how far it came. The streams go first, so that no request holds it up until its time-out.
func CloseRaft(ctx context.Context, r *raft.Raft, stores *RaftStores, trans *transport.RaftTransport, clock task.Clock) error {
	err := trans.Close()
	err = errors.Join(err, waitFuture(ctx, clock, r.Shutdown(), shutdownTimeout))
	return errors.Join(err, stores.Mark(r.CurrentTerm(), r.AppliedIndex()))
}

// settleTimeout is how long a change of the configuration may take before it gets an entry behind it.
const settleTimeout = 500 * time.Millisecond

// waitChange is waitFuture for a change of the configuration. Raft sends its entry to the stand-by that it promotes before it counts
// that one's vote; an acknowledgement that comes back between the two is forgotten, and where it was needed the change never
// commits, until another entry is acknowledged. So a change that takes long gets one.
func waitChange(ctx context.Context, clock task.Clock, r *raft.Raft, f raft.Future, timeout time.Duration) error {
	done := make(chan error, 1)
	go func() { done <- waitFuture(ctx, clock, f, timeout) }()
	timer := clock.NewTimer(settleTimeout)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C():
		r.Barrier(timeout)
		return <-done
	}
}

// waitFuture waits for one of Raft's futures, but never longer than timeout: some never end (raft#498). An error of ctx or of
// time says nothing about the outcome of what was asked.
func waitFuture(ctx context.Context, clock task.Clock, f raft.Future, timeout time.Duration) error {
	done := make(chan error, 1)
	go func() { done <- f.Error() }()
	timer := clock.NewTimer(timeout)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C():
		return fmt.Errorf("no answer of raft within %s: %w", timeout, context.DeadlineExceeded)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
