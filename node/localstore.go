package node

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"lanjobs/node/worker"
	"lanjobs/task"
	"lanjobs/transport"
)

// localStore is what a node keeps for itself: how often it has started, the reports that nobody has acknowledged yet, and
// where its peers were last. The file's lock also keeps a second process out of the data folder.
type localStore struct{ db *bbolt.DB }

var (
	bucketMeta   = []byte("meta")
	bucketOutbox = []byte("outbox")
	bucketBook   = []byte("book")
)

// localFile is the file's name in the data folder.
const localFile = "node.db"

// openLocalStore opens <dataDir>/node.db. The error wraps errStoreDamaged if it cannot be read, see replaceLocal; otherwise it is a
// task.Problem that says what to do.
func openLocalStore(dataDir string) (*localStore, error) {
	if err := inspectLocal(dataDir); err != nil {
		return nil, err
	}
	return openStore(dataDir)
}

func openStore(dataDir string) (s *localStore, err error) {
	path := filepath.Join(dataDir, localFile)
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
		return nil, openProblem(path, err)
	}
	if err := db.View(checkFormat); err != nil {
		_ = db.Close()
		return nil, err
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
		return nil, openProblem(path, err)
	}
	return &localStore{db}, nil
}

// storeFormat is the form of node.db that this binary writes, and the newest that it reads. Stores of before it was kept are of
// the first.
const storeFormat = 1

var (
	keyFormat  = []byte("format")
	keyVersion = []byte("version")
)

// checkFormat refuses a file of a later form, before anything is written to it.
func checkFormat(tx *bbolt.Tx) error {
	meta := tx.Bucket(bucketMeta)
	if meta == nil {
		return nil
	}
	if v := meta.Get(keyFormat); len(v) == 8 && binary.BigEndian.Uint64(v) > storeFormat {
		return &formatError{binary.BigEndian.Uint64(v), string(meta.Get(keyVersion))}
	}
	return nil
}

// formatError is an errNewer that knows who wrote the file.
type formatError struct {
	format uint64
	by     string
}

func (e *formatError) Error() string {
	return fmt.Sprintf("node.db is of form %d, %v", e.format, errNewer)
}
func (e *formatError) Unwrap() error { return errNewer }

// sign notes which version has this folder now, for the words of one that cannot read it.
func (s *localStore) sign(version string) error {
	if s.writtenBy() == version {
		return nil
	}
	return s.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketMeta)
		return errors.Join(b.Put(keyFormat, binary.BigEndian.AppendUint64(nil, storeFormat)), b.Put(keyVersion, []byte(version)))
	})
}

// writtenBy is the version that had this folder last, "" = it did not say.
func (s *localStore) writtenBy() (version string) {
	_ = s.db.View(func(tx *bbolt.Tx) error { version = string(tx.Bucket(bucketMeta).Get(keyVersion)); return nil })
	return version
}

func damaged(path, why string) error {
	return task.NewProblem(task.ErrConflict, fmt.Sprintf("%s cannot be opened: %s", path, why), "Mend the disk, then start again. Another folder: --data-dir")
}

// openProblem tells why the file could not be opened.
func openProblem(path string, err error) error {
	p := diskProblem(filepath.Dir(path), err)
	if _, is := errors.AsType[*task.Problem](p); is {
		return p
	}
	return damaged(path, err.Error())
}

// NextIncarnation counts a start of the agent.
func (s *localStore) NextIncarnation() (uint64, error) { return s.count("incarnation") }

// NextSession counts a session of gossip.
func (s *localStore) NextSession() (uint64, error) { return s.count("session") }

// count raises a counter, on disk before it is used.
func (s *localStore) count(name string) (n uint64, err error) {
	err = s.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketMeta)
		if v := b.Get([]byte(name)); len(v) == 8 {
			n = binary.BigEndian.Uint64(v)
		}
		n++
		return b.Put([]byte(name), binary.BigEndian.AppendUint64(nil, n))
	})
	return n, err
}

// Close closes the file.
func (s *localStore) Close() error { return s.db.Close() }

// outboxStore keeps the worker's unsent notes.
type outboxStore struct{ *localStore }

var _ worker.Store = outboxStore{}

// Put stores all records in one transaction.
func (s outboxStore) Put(records map[string][]byte) error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		for k, v := range records {
			if err := tx.Bucket(bucketOutbox).Put([]byte(k), v); err != nil {
				return err
			}
		}
		return nil
	})
}

// Delete removes keys in one transaction.
func (s outboxStore) Delete(keys []string) error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		for _, k := range keys {
			if err := tx.Bucket(bucketOutbox).Delete([]byte(k)); err != nil {
				return err
			}
		}
		return nil
	})
}

// All gives every record.
func (s outboxStore) All() (map[string][]byte, error) {
	out := map[string][]byte{}
	err := s.each(bucketOutbox, func(k, v []byte) error {
		out[string(k)] = bytes.Clone(v)
		return nil
	})
	return out, err
}

func (s *localStore) each(bucket []byte, f func(k, v []byte) error) error {
	return s.db.View(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).ForEach(f) })
}

// bookStore keeps the phone book.
type bookStore struct{ *localStore }

var _ transport.BookStore = bookStore{}

// Load reads the whole book.
func (s bookStore) Load() (map[task.NodeID]transport.Peer, error) {
	out := map[task.NodeID]transport.Peer{}
	err := s.each(bucketBook, func(k, v []byte) error {
		var p transport.Peer
		if err := json.Unmarshal(v, &p); err != nil {
			return err
		}
		out[task.NodeID(k)] = p
		return nil
	})
	return out, err
}

// Save stores one entry.
func (s bookStore) Save(id task.NodeID, p transport.Peer) error {
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketBook).Put([]byte(id), b) })
}

// Delete removes one.
func (s bookStore) Delete(id task.NodeID) error {
	return s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketBook).Delete([]byte(id)) })
}
