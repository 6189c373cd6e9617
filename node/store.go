package node

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/task"
	"lanjobs/transport"
)

// RaftStore keeps Raft's log, its term and its vote. The interface is our own so that another store can be tried.
type RaftStore interface {
	raft.LogStore
	raft.StableStore
	io.Closer
	// Compact gives unused space back to the file system; other calls wait meanwhile.
	Compact() error
}

// ErrStoreLocked: another process has the Raft store open.
var ErrStoreLocked = errors.New("the Raft store is in use by another process")

// How the store is kept.
const (
	storeLockTimeout = 2 * time.Second // without it a second process would hang for ever on the file lock
	snapshotsKept    = 2               // if the newest is damaged, the older one and the log (TrailingLogs) serve
	compactMinBytes  = 64 << 20
	compactMinFree   = 0.5
	tailEntries      = 64 // decoded at opening
)

// StoreConfig says where the Raft store of which node is.
type StoreConfig struct {
	DataDir string
	Self    task.NodeID
	// Generation of the cluster that this node is of; 0 and 1 = the first.
	Generation uint64
	Log        *slog.Logger
}

func (c StoreConfig) dir() string  { return filepath.Join(c.DataDir, "raft") }
func (c StoreConfig) file() string { return filepath.Join(c.dir(), "raft.db") }

// RaftStores are all that a node's Raft keeps on disk.
type RaftStores struct {
	StoreConfig
	Store     RaftStore
	Snapshots raft.SnapshotStore
	// Wait is called when term or vote cannot be written since the disk is full; true = try again. nil = Raft panics.
	Wait func(error) (again bool)

	marking sync.Mutex
	mark    storeMark
}

// OpenStores opens the Raft stores, or makes them if this node never had any. It refuses, with an error that wraps ErrAmnesia,
// a store that is damaged or does not hold what this node once had: such a node must not vote again under its name (I15). The
// caller then sets the folder aside (SetAside) and joins again as a new node.
func OpenStores(cfg StoreConfig) (*RaftStores, error) {
	if err := cfg.adoptNext(); err != nil {
		return nil, err
	}
	s, err := openStores(cfg)
	if !errors.Is(err, errEarlier) {
		return s, err
	}
	aside, err := SetAside(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	cfg.Log.Warn("the log of before the cluster was recovered is set aside; the present one comes from the others", "kept", aside)
	return openStores(cfg)
}

func openStores(cfg StoreConfig) (*RaftStores, error) {
	if err := os.MkdirAll(cfg.dir(), 0o700); err != nil {
		return nil, fmt.Errorf("raft store: %w", err)
	}
	mark, err := readMark(cfg)
	if err != nil {
		return nil, err
	}
	fresh, err := checkPresence(cfg, mark)
	if err != nil {
		return nil, err
	}
	var shape storeShape
	if !fresh {
		if shape, err = inspectStore(cfg); err != nil {
			return nil, err
		}
		if shape.bloated() {
			if err := compactFile(cfg.file()); err != nil {
				return nil, fmt.Errorf("compact the raft store: %w", err)
			}
		}
	}
	store, err := openBolt(cfg.file())
	if err != nil {
		return nil, err
	}
	s := &RaftStores{StoreConfig: cfg, Store: store}
	if !fresh {
		err = s.checkGeneration()
	}
	if err == nil {
		err = s.settle(mark, shape.unbroken)
	}
	if err != nil {
		_ = store.Close()
		return nil, err
	}
	return s, nil
}

// settle opens the snapshots and compares everything with the mark.
func (s *RaftStores) settle(mark *storeMark, unbroken uint64) error {
	if err := dropPartSnapshots(filepath.Join(s.dir(), "snapshots")); err != nil {
		return err
	}
	snaps, err := raft.NewFileSnapshotStoreWithLogger(s.dir(), snapshotsKept, transport.HCLog(s.Log))
	if err != nil {
		return fmt.Errorf("open the raft snapshots: %w", err)
	}
	if err := s.setDamagedAside(snaps); err != nil {
		return err
	}
	s.Snapshots = markingSnapshots{snaps, s}
	have, err := readState(s.Store, snaps, unbroken)
	if err != nil {
		return s.amnesia(ReasonDamaged, err.Error())
	}
	return s.checkMark(mark, have)
}

// HasLog tells whether the log or a snapshot holds anything.
func (s *RaftStores) HasLog() bool {
	if last, err := s.Store.LastIndex(); err == nil && last > 0 {
		return true
	}
	list, err := s.Snapshots.List()
	return err == nil && len(list) > 0
}

// Close closes the log. Raft must have ended.
func (s *RaftStores) Close() error { return s.Store.Close() }

// setDamagedAside takes snapshots that do not read back out of Raft's sight: without any that does, Raft would not even start,
// though an older one and the log, or the log alone, may have everything. Whether they have is judged afterwards.
func (s *RaftStores) setDamagedAside(snaps raft.SnapshotStore) error {
	list, err := snaps.List()
	if err != nil {
		return fmt.Errorf("open the raft snapshots: %w", err)
	}
	for _, meta := range list {
		_, r, err := snaps.Open(meta.ID) // compares its checksum
		if err == nil {
			_ = r.Close()
			continue
		}
		aside := filepath.Join(s.dir(), "damaged-"+meta.ID)
		s.Log.Error("a snapshot of the cluster's state is damaged and set aside", "index", meta.Index, "error", err, "kept", aside)
		if err := errors.Join(os.RemoveAll(aside), os.Rename(filepath.Join(s.dir(), "snapshots", meta.ID), aside)); err != nil {
			return fmt.Errorf("set a damaged snapshot aside: %w", err)
		}
	}
	return nil
}

// dropPartSnapshots deletes what a crash left of unfinished snapshots; raft only warns of them.
func dropPartSnapshots(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("open the raft snapshots: %w", err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".tmp") {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return fmt.Errorf("delete an unfinished snapshot: %w", err)
			}
		}
	}
	return nil
}
