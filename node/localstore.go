package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"lanjobs/task"
)

// localStore is what a node keeps for itself: how often it has started, the reports that nobody has acknowledged yet, and
// where its peers were last. The file's lock also keeps a second process out of the data folder.
type localStore struct{ db *bbolt.DB }

var (
	bucketMeta   = []byte("meta")
	bucketOutbox = []byte("outbox")
	bucketBook   = []byte("book")

	keyIncarnation = []byte("incarnation")
)

// openLocalStore opens <dataDir>/node.db. A damaged file is a task.Problem that says what to do.
func openLocalStore(dataDir string) (s *localStore, err error) {
	path := filepath.Join(dataDir, "node.db")
	defer func() {
		if p := recover(); p != nil { // bbolt panics on some kinds of damage
			s, err = nil, damaged(path, fmt.Sprint(p))
		}
	}()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, task.NewProblem(task.ErrConflict, "another lanjobs process is using "+dataDir, "One node per data folder: stop the other one, or give this one its own --data-dir.")
	}
	if err != nil {
		return nil, damaged(path, err.Error())
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, b := range [][]byte{bucketMeta, bucketOutbox, bucketBook} {
			if _, err := tx.CreateBucketIfNotExists(b); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		_ = db.Close()
		return nil, damaged(path, err.Error())
	}
	return &localStore{db}, nil
}

func damaged(path, why string) error {
	return task.NewProblem(task.ErrConflict, fmt.Sprintf("%s cannot be opened: %s", path, why),
		"If the disk is full or read-only, mend that first. If the file is damaged, move it away: it holds unsent reports and peers' last addresses only.")
}

// NextIncarnation counts a start of the agent.
func (s *localStore) NextIncarnation() (n uint64, err error) {
	err = s.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketMeta)
		if v := b.Get(keyIncarnation); len(v) == 8 {
			n = binary.BigEndian.Uint64(v)
		}
		n++
		return b.Put(keyIncarnation, binary.BigEndian.AppendUint64(nil, n))
	})
	return n, err
}

// Close closes the file.
func (s *localStore) Close() error { return s.db.Close() }

// bucketStore is one bucket as a plain key-value store.
type bucketStore struct {
	db     *bbolt.DB
	bucket []byte
}

// PutAll stores all pairs in one transaction.
func (b bucketStore) PutAll(kvs map[string][]byte) error {
	return b.db.Update(func(tx *bbolt.Tx) error {
		for k, v := range kvs {
			if err := tx.Bucket(b.bucket).Put([]byte(k), v); err != nil {
				return err
			}
		}
		return nil
	})
}

// DeleteAll removes keys in one transaction.
func (b bucketStore) DeleteAll(keys []string) error {
	return b.db.Update(func(tx *bbolt.Tx) error {
		for _, k := range keys {
			if err := tx.Bucket(b.bucket).Delete([]byte(k)); err != nil {
				return err
			}
		}
		return nil
	})
}

// All gives every pair.
func (b bucketStore) All() (map[string][]byte, error) {
	out := map[string][]byte{}
	err := b.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(b.bucket).ForEach(func(k, v []byte) error {
			out[string(k)] = append([]byte(nil), v...)
			return nil
		})
	})
	return out, err
}
