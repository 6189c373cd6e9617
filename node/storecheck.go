package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"

	"lanjobs/transport"
)

var errDamagedStore = errors.New("damaged store")

// guarded turns a panic into an error: bbolt panics on pages that are not what they should be, and a file that was cut short
// faults in memory.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errDamagedStore, p)
		}
	}()
	return f()
}

// storeShape is what reading a file through tells.
type storeShape struct {
	unbroken uint64 // where the last unbroken run of entries starts; 0 = no entries
	used     int64  // bytes
	size     int64
}

// bloated tells whether the file is worth compacting: it never shrinks by itself.
func (s storeShape) bloated() bool {
	return s.size > compactMinBytes && float64(s.used) < (1-compactMinFree)*float64(s.size)
}

// inspectStore reads the file through before it is opened for writing: bbolt then rebuilds its list of free pages in a
// goroutine of its own, where a panic could not be caught.
func inspectStore(cfg StoreConfig) (shape storeShape, err error) {
	info, err := os.Stat(cfg.file())
	if err != nil {
		return shape, fmt.Errorf("raft store: %w", err)
	}
	shape.size = info.Size()
	if err := checkMetas(cfg.file()); err != nil {
		return shape, cfg.amnesia(ReasonDamaged, err.Error())
	}
	opts := boltOptions()
	opts.ReadOnly = true
	var db *bbolt.DB
	if err := guarded(func() (err error) {
		db, err = bbolt.Open(cfg.file(), 0o600, opts)
		return err
	}); err != nil {
		err = explainOpen(err)
		if errors.Is(err, ErrStoreLocked) || errors.Is(err, os.ErrPermission) {
			return shape, err
		}
		return shape, cfg.amnesia(ReasonDamaged, err.Error())
	}
	defer db.Close()
	if err := guarded(func() error { return db.View(shape.walk) }); err != nil {
		return shape, cfg.amnesia(ReasonDamaged, err.Error())
	}
	return shape, nil
}

// walk reads all keys.
func (s *storeShape) walk(tx *bbolt.Tx) error {
	if tx.Size() > s.size {
		return fmt.Errorf("%w: the file should have %d bytes and has %d", errDamagedStore, tx.Size(), s.size)
	}
	logs, conf := tx.Bucket([]byte("logs")), tx.Bucket([]byte("conf"))
	if logs == nil || conf == nil {
		return fmt.Errorf("%w: it is no Raft store", errDamagedStore)
	}
	var prev uint64
	if err := logs.ForEach(func(k, v []byte) error {
		if len(k) != 8 || v == nil {
			return fmt.Errorf("%w: an entry without a number", errDamagedStore)
		}
		index := binary.BigEndian.Uint64(k)
		if prev == 0 || index != prev+1 {
			s.unbroken = index
		}
		prev = index
		return nil
	}); err != nil {
		return err
	}
	if err := conf.ForEach(func(k, v []byte) error { return nil }); err != nil {
		return err
	}
	for _, b := range []*bbolt.Bucket{logs, conf} {
		stats := b.Stats()
		s.used += int64(stats.BranchInuse + stats.LeafInuse)
	}
	return nil
}

// checkMetas wants both of bbolt's meta pages whole, with consecutive transactions. With one lost, bbolt would open as of the
// transaction before without a word: an acknowledged entry or a vote is gone. (A meta lies within one sector, so that a power
// cut does not tear it.)
func checkMetas(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	first, size, err := readMeta(f, 0)
	if err != nil {
		return err
	}
	second, _, err := readMeta(f, int64(size))
	if err != nil {
		return err
	}
	if first+1 != second && second+1 != first {
		return fmt.Errorf("%w: transactions %d and %d in its heads", errDamagedStore, first, second)
	}
	return nil
}

// readMeta reads one meta page of the bbolt format: a page header of 16 bytes; then magic, version, page size, flags (4 bytes
// each), root, sequence, free list, pages, transaction, checksum (8 each), in the machine's own byte order.
func readMeta(f *os.File, at int64) (tx uint64, pageSize uint32, err error) {
	const header, sum = 16, 56
	var page [header + sum + 8]byte
	if _, err := f.ReadAt(page[:], at); err != nil {
		return 0, 0, fmt.Errorf("%w: no head at %d: %w", errDamagedStore, at, err)
	}
	meta := page[header:]
	h := fnv.New64a()
	_, _ = h.Write(meta[:sum])
	order := binary.NativeEndian
	if order.Uint32(meta) != 0xED0CDAED || order.Uint64(meta[sum:]) != h.Sum64() {
		return 0, 0, fmt.Errorf("%w: the head at %d is broken", errDamagedStore, at)
	}
	return order.Uint64(meta[48:]), order.Uint32(meta[8:]), nil
}

// storeState is how far a store has come.
type storeState struct {
	term     uint64 // current term
	last     uint64 // last index, of the log or the newest snapshot
	snapshot uint64 // index of the newest snapshot
	node, id string // as written into it; "" = nothing yet
}

// readState reads it, decoding the last entries, and wants log and snapshots to fit together: an installed snapshot may leave a
// gap below it in the log, but above it there must be none.
func readState(store RaftStore, snaps raft.SnapshotStore, unbroken uint64) (s storeState, err error) {
	err = guarded(func() error {
		if s.term, err = optional(store.GetUint64(keyTerm)); err != nil {
			return err
		}
		node, err := optional(store.Get(keyNode))
		if err != nil {
			return err
		}
		id, err := optional(store.Get(keyStore))
		if err != nil {
			return err
		}
		s.node, s.id = string(node), string(id)
		list, err := snaps.List()
		if err != nil {
			return err
		}
		if len(list) > 0 {
			s.snapshot = list[0].Index
		}
		last, err := readTail(store, unbroken)
		if err != nil {
			return err
		}
		if unbroken > s.snapshot+1 {
			return fmt.Errorf("%w: the log starts at %d, the newest snapshot is of %d", errDamagedStore, unbroken, s.snapshot)
		}
		s.last = max(last, s.snapshot)
		return nil
	})
	return s, err
}

// readTail decodes the last entries and gives the last index.
func readTail(store RaftStore, unbroken uint64) (last uint64, err error) {
	if last, err = store.LastIndex(); err != nil {
		return 0, err
	}
	from := unbroken
	if last > unbroken+tailEntries {
		from = last - tailEntries
	}
	for i := max(from, 1); i <= last; i++ {
		var entry raft.Log
		if err := store.GetLog(i, &entry); err != nil {
			return 0, fmt.Errorf("%w: entry %d: %w", errDamagedStore, i, err)
		}
		if entry.Index != i {
			return 0, fmt.Errorf("%w: entry %d calls itself %d", errDamagedStore, i, entry.Index)
		}
	}
	return last, nil
}

// optional takes a missing value for a zero one.
func optional[T any](v T, err error) (T, error) {
	if err != nil && err.Error() == "not found" {
		err = nil
	}
	return v, err
}

// compactFile copies the live pages of a closed store into a new file that then takes its place.
func compactFile(path string) (err error) {
	temp := path + ".compact"
	if err := os.Remove(temp); err != nil && !os.IsNotExist(err) {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp)
		}
	}()
	if err := guarded(func() error { return copyStore(temp, path) }); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return transport.SyncDir(filepath.Dir(path))
}

func copyStore(to, from string) error {
	src, err := bbolt.Open(from, 0o600, &bbolt.Options{ReadOnly: true, Timeout: storeLockTimeout})
	if err != nil {
		return explainOpen(err)
	}
	defer src.Close()
	opts := boltOptions()
	opts.NoSync = true // one sync at the end
	dst, err := bbolt.Open(to, 0o600, opts)
	if err != nil {
		return err
	}
	err = bbolt.Compact(dst, src, 1<<20)
	return errors.Join(err, dst.Sync(), dst.Close())
}
