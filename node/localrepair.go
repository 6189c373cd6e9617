package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/bbolt"

	"lanjobs/task"
	"lanjobs/transport"
)

// What node.db holds can be made again, except for unsent reports: their leases run out instead. So a damaged one does not
// keep a machine from its cluster: it is set aside and a new one begun.

// errStoreDamaged: node.db cannot be read, and neither its lock nor the disk's state is the reason.
var errStoreDamaged = errors.New("node.db is damaged")

// inspectLocal reads node.db through before it is opened for writing, as inspectStore does with Raft's. A folder without a node
// has none yet.
func inspectLocal(dataDir string) error {
	path := filepath.Join(dataDir, localFile)
	_, identity := os.Stat(filepath.Join(dataDir, "identity.json"))
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0:
		if identity != nil {
			return nil
		}
		return fmt.Errorf("%w: it is gone or empty", errStoreDamaged)
	case err != nil:
		return nil // opening it says why
	}
	if err := checkMetas(path); err != nil {
		if errors.Is(err, errDamagedStore) {
			return fmt.Errorf("%w: %w", errStoreDamaged, err)
		}
		return nil
	}
	opts := boltOptions()
	opts.ReadOnly = true
	err = guarded(func() error {
		db, err := bbolt.Open(path, 0o600, opts)
		if err != nil {
			return err
		}
		defer db.Close()
		return db.View(func(tx *bbolt.Tx) error {
			if tx.Size() > info.Size() {
				return fmt.Errorf("%w: it was cut", errDamagedStore)
			}
			return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error { return b.ForEach(func(_, _ []byte) error { return nil }) })
		})
	})
	if errors.Is(err, errDamagedStore) {
		return fmt.Errorf("%w: %w", errStoreDamaged, err)
	}
	return nil
}

// replaceLocal sets a damaged node.db aside and begins a new one. Its counters must stay above those of the old one, which
// nobody knows any more: they go on from the wall clock, which counts faster than starts.
func replaceLocal(dataDir string, clock task.Clock) (*localStore, error) {
	path := filepath.Join(dataDir, localFile)
	if err := os.Rename(path, path+".damaged"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, diskProblem(dataDir, err)
	}
	s, err := openStore(dataDir)
	if err != nil {
		return nil, err
	}
	from := binary.BigEndian.AppendUint64(nil, eraSeconds(clock))
	err = s.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketMeta)
		return errors.Join(b.Put([]byte("incarnation"), from), b.Put([]byte("session"), from))
	})
	if err != nil {
		return nil, errors.Join(diskProblem(dataDir, err), s.Close())
	}
	return s, transport.SyncDir(dataDir)
}

// diskProblem tells what a person can do about a disk that does not take what it is given; nil stays nil.
func diskProblem(dir string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, errQuota):
		return task.NewProblem(task.ErrConflict, "the disk that holds "+dir+" is full.", "Make room there and start again; nothing is lost. lanjobs needs some 100 MB.")
	case errors.Is(err, syscall.EROFS):
		return task.NewProblem(task.ErrConflict, "the disk that holds "+dir+" is read-only: it was mounted so, or the system made it so after errors.", "Look at the system's log, mend or mount it anew, then start again. Another folder: --data-dir")
	case errors.Is(err, fs.ErrPermission):
		return task.NewProblem(task.ErrNotAllowed, fmt.Sprintf("%s may not be written: %v.", dir, err), "Start as the user who owns it, or choose another folder: --data-dir")
	}
	return err
}
