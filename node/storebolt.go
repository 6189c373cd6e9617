package node

import (
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// boltOptions: the free list is rebuilt at opening instead of being written with every entry.
func boltOptions() *bbolt.Options {
	return &bbolt.Options{Timeout: storeLockTimeout, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType}
}

// boltStore is a RaftStore of raft-boltdb.
type boltStore struct {
	path string

	mu   sync.RWMutex // held for writing while the file is exchanged
	bolt *raftboltdb.BoltStore
}

var _ RaftStore = (*boltStore)(nil)

func openBolt(path string) (*boltStore, error) {
	b := &boltStore{path: path}
	return b, b.open()
}

func (b *boltStore) open() error {
	err := guarded(func() (err error) {
		b.bolt, err = raftboltdb.New(raftboltdb.Options{Path: b.path, BoltOptions: boltOptions(), MsgpackUseNewTimeFormat: true})
		return err
	})
	return explainOpen(err)
}

// explainOpen names the one error of opening that is nobody's damage.
func explainOpen(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("open the raft store: %w", ErrStoreLocked)
	}
	return fmt.Errorf("open the raft store: %w", err)
}

// Compact rewrites the file without its free pages.
func (b *boltStore) Compact() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.bolt.Close(); err != nil {
		return fmt.Errorf("compact the raft store: %w", err)
	}
	err := compactFile(b.path)
	// Whether that worked or not: the file at the path is whole, and Raft needs it.
	return errors.Join(err, b.open())
}

// Close closes the file.
func (b *boltStore) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bolt.Close()
}

// FirstIndex of the log, 0 if empty.
func (b *boltStore) FirstIndex() (uint64, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.bolt.FirstIndex()
}

// LastIndex of the log, 0 if empty.
func (b *boltStore) LastIndex() (uint64, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.bolt.LastIndex()
}

// GetLog reads an entry.
func (b *boltStore) GetLog(index uint64, log *raft.Log) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.bolt.GetLog(index, log)
}

// StoreLog writes an entry.
func (b *boltStore) StoreLog(log *raft.Log) error { return b.StoreLogs([]*raft.Log{log}) }

// StoreLogs writes entries at once.
func (b *boltStore) StoreLogs(logs []*raft.Log) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.bolt.StoreLogs(logs)
}

// DeleteRange deletes entries, both ends included.
func (b *boltStore) DeleteRange(first, last uint64) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.bolt.DeleteRange(first, last)
}

// Set writes a value that is not of the log.
func (b *boltStore) Set(key, value []byte) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.bolt.Set(key, value)
}

// Get reads it. Raft compares the text of the error for a missing one with "not found".
func (b *boltStore) Get(key []byte) ([]byte, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.bolt.Get(key)
}

// SetUint64 writes a number.
func (b *boltStore) SetUint64(key []byte, value uint64) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.bolt.SetUint64(key, value)
}

// GetUint64 reads it.
func (b *boltStore) GetUint64(key []byte) (uint64, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.bolt.GetUint64(key)
}
