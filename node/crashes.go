package node

import (
	"context"
	"encoding/binary"

	"go.etcd.io/bbolt"

	"lanjobs/transport"
)

// A node counts its own crashes (R45): it notes in its data folder that it runs, and when it is told to end, that it was told. A
// start that finds the first note without the second follows a crash: SIGKILL, a panic, too little memory, a power cut, or a part
// of the node that failed. The note of the end is written as the end begins, so that a machine which loses its power while the node
// stops in order counts nothing; nor does a start that was refused, as by a port in use.

var (
	keyRuns    = []byte("runs")
	keyCrashes = []byte("crashes")
)

// BeginLife notes that the node runs, and counts a crash if its last life was never told to end.
func (s *localStore) BeginLife() error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketMeta)
		if b.Get(keyRuns) != nil {
			if err := b.Put(keyCrashes, binary.BigEndian.AppendUint64(nil, crashesIn(b)+1)); err != nil {
				return err
			}
		}
		return b.Put(keyRuns, []byte{1})
	})
}

// EndLife notes that the node was told to end.
func (s *localStore) EndLife() error {
	return s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta).Delete(keyRuns) })
}

// Crashes is how often the node has crashed since a registration told of it.
func (s *localStore) Crashes() (n int, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		n = int(crashesIn(tx.Bucket(bucketMeta)))
		return nil
	})
	return n, err
}

// Forgive forgets the crashes: a registration told of them and was accepted.
func (s *localStore) Forgive() error {
	return s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta).Delete(keyCrashes) })
}

func crashesIn(b *bbolt.Bucket) uint64 {
	if v := b.Get(keyCrashes); len(v) == 8 {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

// beginLife does so for a node that lives by itself. One inside `lanjobs run` does not count: killing that command is an ordinary
// way to end it, and its next run must not find its only machine unstable.
func (m *machine) beginLife() error {
	if m.cfg.Embedded {
		return nil
	}
	return m.store.BeginLife()
}

// endLife is called as soon as the node is told to end.
func (m *machine) endLife() {
	if m.store == nil || m.cfg.Embedded {
		return
	}
	if err := m.store.EndLife(); err != nil {
		m.log.Warn("the end of this node is not noted: its next start counts as one after a crash", "error", err)
	}
}

// Crashes is where a node keeps the number of its crashes; *localStore is one.
type Crashes interface {
	Crashes() (int, error)
	Forgive() error
}

// Register is worker.Control. It tells the leader how often this node has crashed, until a registration with it is accepted: a
// later one of the same life is a repeat, of which the ledger counts none. A store that cannot be read or written, on a full disk say,
// costs this count and nothing more: a node that does not register loses its leases.
func (c *control) Register(ctx context.Context, r *transport.RegisterRequest) (*transport.RegisterReply, error) {
	told := *r
	if c.crashes != nil {
		if n, err := c.crashes.Crashes(); err == nil {
			told.Crashes = n
		}
	}
	reply, err := do[transport.RegisterReply](c, ctx, transport.MethodRegister, &told)
	if err != nil {
		return nil, err
	}
	if told.Crashes > 0 {
		_ = c.crashes.Forgive() // they are told again, at worst
	}
	return reply, nil
}
