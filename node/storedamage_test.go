package node

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"lanjobs/transport"
	"lanjobs/transport/memnet"
)

func TestLostMemoryIsNoticed(t *testing.T) {
	write := func(path string, b []byte) error { return os.WriteFile(path, b, 0o600) }
	for _, c := range []struct {
		name string
		do   func(StoreConfig) error
		want AmnesiaReason
	}{
		{"nothing happened", func(StoreConfig) error { return nil }, ""},
		{"file gone", func(c StoreConfig) error { return os.Remove(c.file()) }, ReasonMissing},
		{"folder gone", func(c StoreConfig) error { return os.RemoveAll(c.dir()) }, ReasonMissing},
		{"file empty", func(c StoreConfig) error { return os.Truncate(c.file(), 0) }, ReasonMissing},
		{"file and mark gone, snapshots stay", func(c StoreConfig) error {
			snap := filepath.Join(c.dir(), "snapshots", "3-90-1")
			return errors.Join(os.Remove(c.file()), os.Remove(c.markFile()), os.MkdirAll(snap, 0o700), write(filepath.Join(snap, "meta.json"), []byte("{}")))
		}, ReasonMissing},
		{"mark gone", func(c StoreConfig) error { return os.Remove(c.markFile()) }, ReasonNoMark},
		{"mark empty", func(c StoreConfig) error { return write(c.markFile(), nil) }, ReasonNoMark},
		{"made anew by hand", func(c StoreConfig) error {
			_ = os.Remove(c.file())
			s, err := raftboltdb.NewBoltStore(c.file())
			return errors.Join(err, s.Close())
		}, ReasonOther},
		{"no Raft store at all", func(c StoreConfig) error { return write(c.file(), make([]byte, 100_000)) }, ReasonDamaged},
		{"both heads broken", func(c StoreConfig) error { return errors.Join(zero(c.file(), 0), zero(c.file(), 1)) }, ReasonDamaged},
		{"first head broken", func(c StoreConfig) error { return zero(c.file(), 0) }, ReasonDamaged},
		{"second head broken", func(c StoreConfig) error { return zero(c.file(), 1) }, ReasonDamaged},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := usedStore(t)
			if err := c.do(cfg); err != nil {
				t.Fatal(err)
			}
			s, err := OpenStores(cfg)
			if got := reasonOf(t, err); got != c.want {
				t.Errorf("%q, not %q: %v", got, c.want, err)
			}
			if s != nil {
				_ = s.Close()
			}
		})
	}
}

func TestStoreOfAnotherTimeOrNode(t *testing.T) {
	cfg := storeAt(t.TempDir())
	s := mustOpen(t, cfg)
	fill(t, s.Store, 1, 50)
	_ = s.Close()
	old, err := os.ReadFile(cfg.file())
	if err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, cfg)
	fill(t, s.Store, 51, 100)
	_ = errors.Join(s.Mark(3, 90), s.Close())
	if err := os.WriteFile(cfg.file(), old, 0o600); err != nil { // a copy is put back
		t.Fatal(err)
	}
	_, err = OpenStores(cfg)
	if got := reasonOf(t, err); got != ReasonBehind {
		t.Errorf("an older copy: %v", err)
	}

	cfg = usedStore(t)
	cfg.Self = "n2"
	_, err = OpenStores(cfg)
	if got := reasonOf(t, err); got != ReasonOther {
		t.Errorf("the store of n1 under the name n2: %v", err)
	}
}

// What a new leader rolls back in the log was never committed, and is no amnesia.
func TestRolledBackLogIsNoAmnesia(t *testing.T) {
	cfg := usedStore(t)
	s := mustOpen(t, cfg)
	_ = errors.Join(s.Store.DeleteRange(91, 100), s.Store.SetUint64(keyTerm, 4), s.Close())
	_ = mustOpen(t, cfg).Close()
}

// zero overwrites a page of a file.
func zero(path string, page int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, 4096), 4096*page)
	return errors.Join(err, f.Close())
}

// Whichever page of the file is zeroed: either the damage is noticed at opening, or it was in a page without use and everything
// can be read. Nothing panics.
func TestAnyZeroedPage(t *testing.T) {
	cfg := usedStore(t)
	whole, err := os.ReadFile(cfg.file())
	if err != nil {
		t.Fatal(err)
	}
	noticed := 0
	for page := range int64(len(whole) / 4096) {
		if err := errors.Join(os.WriteFile(cfg.file(), whole, 0o600), zero(cfg.file(), page)); err != nil {
			t.Fatal(err)
		}
		s, err := OpenStores(cfg)
		if err != nil {
			if got := reasonOf(t, err); got != ReasonDamaged && got != ReasonOther && got != ReasonBehind {
				t.Errorf("page %d: %v", page, err)
			}
			noticed++
			continue
		}
		if err := readAll(s); err != nil {
			t.Errorf("page %d was not noticed: %v", page, err)
		}
		_ = s.Close()
	}
	if noticed < 5 {
		t.Errorf("only %d of %d pages matter", noticed, len(whole)/4096)
	}
}

func TestFileCutAnywhere(t *testing.T) {
	cfg := usedStore(t)
	whole, err := os.ReadFile(cfg.file())
	if err != nil {
		t.Fatal(err)
	}
	noticed := 0
	for size := 4096; size < len(whole); size += 4096 * 3 {
		if err := os.WriteFile(cfg.file(), whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := OpenStores(cfg)
		if got := reasonOf(t, err); got != ReasonDamaged && got != "" {
			t.Errorf("cut at %d of %d: %v", size, len(whole), err)
		}
		if s == nil {
			noticed++
			continue
		}
		if err := readAll(s); err != nil {
			t.Errorf("cut at %d of %d and not noticed: %v", size, len(whole), err)
		}
		_ = s.Close()
	}
	if noticed < 5 {
		t.Errorf("only %d cuts matter", noticed)
	}
}

// readAll reads the entries of usedStore.
func readAll(s *RaftStores) error {
	for i := uint64(1); i <= 100; i++ {
		var e raft.Log
		if err := s.Store.GetLog(i, &e); err != nil || e.Index != i {
			return fmt.Errorf("entry %d is %+v: %w", i, e, err)
		}
	}
	return nil
}

// The control runs for the checks before opening: what raft-boltdb makes of the same files without a word.
func TestPlainStoreForgetsSilently(t *testing.T) {
	lastOf := func(path string) uint64 {
		s, err := raftboltdb.NewBoltStore(path)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		last, err := s.LastIndex()
		if err != nil {
			t.Fatal(err)
		}
		return last
	}
	empty := usedStore(t)
	if err := os.Truncate(empty.file(), 0); err != nil {
		t.Fatal(err)
	}
	if last := lastOf(empty.file()); last != 0 {
		t.Errorf("control: an empty file has entries up to %d", last)
	}

	// The newest transaction, which wrote entry 101, was acknowledged; then its head is lost.
	stale := usedStore(t)
	s := mustOpen(t, stale)
	if err := errors.Join(s.Store.StoreLog(&raft.Log{Index: 101, Term: 3}), s.Close()); err != nil {
		t.Fatal(err)
	}
	first, second := headOf(t, stale.file(), 0), headOf(t, stale.file(), 4096)
	page := int64(0)
	if second > first {
		page = 1
	}
	if err := zero(stale.file(), page); err != nil {
		t.Fatal(err)
	}
	if last := lastOf(stale.file()); last != 100 {
		t.Errorf("control: without its newest head the file has entries up to %d", last)
	}
}

func headOf(t *testing.T, path string, at int64) uint64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tx, _, err := readMeta(f, at)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// snapshotOf writes a snapshot at an index.
func snapshotOf(t *testing.T, s *RaftStores, index uint64) {
	t.Helper()
	_, trans := raft.NewInmemTransport("")
	sink, err := s.Snapshots.Create(1, index, 3, raft.Configuration{}, 1, trans)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(sink, "[]"); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLogAndSnapshotsMustMeet(t *testing.T) {
	cfg := usedStore(t)
	s := mustOpen(t, cfg)
	snapshotOf(t, s, 120) // installed on a follower whose log ended at 100: a gap below it is fine
	if m, err := readMark(cfg); err != nil || m.Index != 120 {
		t.Errorf("marked %+v, %v", m, err)
	}
	fill(t, s.Store, 121, 130)
	_ = s.Close()
	s = mustOpen(t, cfg)
	if err := s.Store.DeleteRange(1, 125); err != nil { // above it there must be none
		t.Fatal(err)
	}
	_ = s.Close()
	_, err := OpenStores(cfg)
	if got := reasonOf(t, err); got != ReasonDamaged {
		t.Errorf("entries 121 to 125 are missing: %v", err)
	}
}

// badStore has a log whose entries make bbolt panic.
type badStore struct{ RaftStore }

func (badStore) LastIndex() (uint64, error)     { return 5, nil }
func (badStore) GetLog(uint64, *raft.Log) error { panic("page 7: invalid page type") }

func TestWhatRaftPanicsAtIsAmnesia(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		layer := transport.NewRaftLayer(transport.RaftLayerConfig{Self: "n1", Clock: memnet.NewClock(), Log: silent})
		defer layer.Close()
		trans := transport.NewRaftTransport(layer)
		defer trans.Close()
		stores := &RaftStores{Store: badStore{ramStore{raft.NewInmemStore()}}, Snapshots: raft.NewInmemSnapshotStore()}
		_, err := OpenRaft(RaftConfig("n1", 1, 0, silent), &labFSM{}, stores, trans)
		if got := reasonOf(t, err); got != ReasonDamaged {
			t.Errorf("%v", err)
		}
	})
}
