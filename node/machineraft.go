package node

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/node/worker"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

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

// aloneTimeout is Raft's tempo on a this-machine-only node.
const aloneTimeout = 30 * time.Millisecond
