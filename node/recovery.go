package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"lanjobs/fsm"
	"lanjobs/node/observe"
	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

// recovery is what a person decided after a majority of the voters was lost: this machine goes on from what it has, alone.
type recovery struct {
	By     string
	Reason string
	Above  []uint64 // generation numbers that were seen anywhere
}

// begin is the first command of the first leader of a history that this machine knows to be a later one.
func (m *machine) begin() *fsm.NewGeneration {
	n := transport.GenerationNumber(m.identity.Cluster.Generation)
	if n <= 1 {
		return nil
	}
	b := m.settings.Begin
	if b.Reason == "" {
		b.Reason = "recovered"
	}
	return &fsm.NewGeneration{By: b.By, Reason: b.Reason, AtLeast: n}
}

// beginRecovery makes this machine, which is not running, the sole voter of a new history of its cluster: everything in its log
// counts, whether it was known to be committed or not, since what was acknowledged may be among it. Nothing has changed if it
// returns an error; the identity, written last, is what makes the new history count.
func beginRecovery(cfg Config, r *recovery) error {
	store, err := openLocalStore(cfg.DataDir)
	if err != nil {
		return err
	}
	defer store.Close()
	identity, err := transport.LoadIdentity(cfg.DataDir)
	if err != nil {
		return err
	}
	settings, err := store.Settings()
	if err != nil {
		return err
	}
	from := StoreConfig{DataDir: cfg.DataDir, Self: identity.NodeID, Generation: identity.Cluster.Generation, Log: cfg.Log}
	h, err := readHistory(from)
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	if err := h.audit(cfg); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	to := from
	to.Generation = transport.NextGeneration(append(r.Above, h.state.Generation, transport.GenerationNumber(from.Generation))...)
	if err := writeNext(to, &frozen{h.state.Snapshot()}, h.index, h.term+1); err != nil {
		return err
	}
	settings.Begin = Begin{By: r.By, Reason: r.Reason}
	if err := store.SetSettings(settings); err != nil {
		return err
	}
	identity.Cluster.Generation = to.Generation
	cfg.Log.Warn("a lost quorum is recovered: this machine goes on alone from what it has", "cluster", identity.Cluster.Name, "entry", h.index,
		"generation", transport.GenerationNumber(to.Generation), "by", r.By)
	return identity.Save(cfg.DataDir)
}

// history is all that a store has: the newest snapshot and every entry after it.
type history struct {
	state       *fsm.State
	events      [][]task.Event // of the entries after the snapshot
	index, term uint64
}

// readHistory reads it from a store that is not in use.
func readHistory(c StoreConfig) (h *history, err error) {
	stores, err := OpenStores(c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stores.Close()) }()
	if h, err = stores.newestState(); err != nil {
		return nil, err
	}
	last, err := stores.Store.LastIndex()
	if err != nil {
		return nil, err
	}
	for i := h.index + 1; i <= last; i++ {
		var e raft.Log
		if err := stores.Store.GetLog(i, &e); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i, err)
		}
		if e.Type == raft.LogCommand {
			_, events, err := h.state.Apply(e.Index, e.Data)
			if err != nil {
				return nil, fmt.Errorf("entry %d: %w", i, err)
			}
			h.events = append(h.events, events)
		}
		h.index, h.term = e.Index, e.Term
	}
	if h.index == 0 {
		return nil, task.NewProblem(task.ErrConflict, "this machine keeps no copy of the cluster's state", "Recover on one that does, or: lanjobs backup restore FILE")
	}
	return h, nil
}

// newestState reads the newest snapshot that is whole; an empty state without any.
func (s *RaftStores) newestState() (*history, error) {
	list, err := s.Snapshots.List()
	if err != nil {
		return nil, err
	}
	var broken error
	for _, meta := range list {
		_, r, err := s.Snapshots.Open(meta.ID)
		if err != nil {
			broken = err
			continue
		}
		state, err := fsm.Read(r)
		_ = r.Close()
		if err != nil {
			broken = err
			continue
		}
		first, err := s.Store.FirstIndex()
		if err != nil {
			return nil, err
		}
		if broken != nil && (first == 0 || first > meta.Index+1) {
			break // between this snapshot and the log there are entries that only the broken one had
		}
		return &history{state: state, index: meta.Index, term: meta.Term}, nil
	}
	if broken != nil {
		return nil, fmt.Errorf("no snapshot is whole: %w", broken)
	}
	return &history{state: fsm.New()}, nil
}

// audit writes the events of the entries into the audit log, which has not seen those that were not known to be committed.
func (h *history) audit(cfg Config) error {
	clock := cfg.Clock
	if clock == nil {
		clock = runner.SystemClock()
	}
	a, err := observe.Open(observe.DefaultConfig(auditDir(cfg), clock, cfg.Log))
	if err != nil {
		return err
	}
	for i, events := range h.events {
		a.Append(events)
		if i%auditGroup == 0 { // its queue has no writer yet
			if err := a.Sync(); err != nil {
				return err
			}
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	return a.Run(ended) // writes what is left
}

const auditGroup = 1000
