package node

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"lanjobs/transport"
	"lanjobs/transport/memnet"
)

// storeAt is a store of node n1 in dir.
func storeAt(dir string) StoreConfig { return StoreConfig{DataDir: dir, Self: "n1", Log: silent} }

func mustOpen(t *testing.T, cfg StoreConfig) *RaftStores {
	t.Helper()
	s, err := OpenStores(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fill writes entries first … last of term 3 in batches, as a follower gets them, and a term.
func fill(t *testing.T, s RaftStore, first, last uint64) {
	t.Helper()
	for i := first; i <= last; i += 10 {
		var batch []*raft.Log
		for k := i; k < i+10 && k <= last; k++ {
			batch = append(batch, &raft.Log{Index: k, Term: 3, Data: fmt.Appendf(nil, "entry %d %s", k, strings.Repeat("x", 200))})
		}
		if err := s.StoreLogs(batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetUint64(keyTerm, 3); err != nil {
		t.Fatal(err)
	}
}

// usedStore makes a data folder with a store of 100 entries that was closed in an orderly way.
func usedStore(t *testing.T) StoreConfig {
	t.Helper()
	cfg := storeAt(t.TempDir())
	s := mustOpen(t, cfg)
	fill(t, s.Store, 1, 100)
	if err := errors.Join(s.Mark(3, 90), s.Close()); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestStoreKeepsWhatItHas(t *testing.T) {
	cfg := usedStore(t)
	s := mustOpen(t, cfg)
	defer s.Close()
	var e raft.Log
	if err := s.Store.GetLog(57, &e); err != nil || e.Term != 3 || !strings.HasPrefix(string(e.Data), "entry 57 ") {
		t.Errorf("%+v, %v", e, err)
	}
	if !s.HasLog() {
		t.Error("a store with entries has no log")
	}
	// Of a range nothing may stay behind: bbolt's cursor once skipped every other entry here.
	if err := s.Store.DeleteRange(1, 70); err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= 100; i++ {
		if err := s.Store.GetLog(i, &e); errors.Is(err, raft.ErrLogNotFound) != (i <= 70) {
			t.Fatalf("entry %d: %v", i, err)
		}
	}
}

func TestEmptyStoreIsNew(t *testing.T) {
	cfg := storeAt(t.TempDir())
	for range 3 { // opened and closed without ever being used
		s := mustOpen(t, cfg)
		if s.HasLog() {
			t.Error("a new store has a log")
		}
		_ = s.Close()
	}
	// A crash between making the store and its mark.
	if err := os.Remove(cfg.markFile()); err != nil {
		t.Fatal(err)
	}
	_ = mustOpen(t, cfg).Close()
	if err := os.Truncate(cfg.file(), 0); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(cfg.markFile())
	_ = mustOpen(t, cfg).Close()
}

// reasonOf gives the reason of an ErrAmnesia, "" for no error.
func reasonOf(t *testing.T, err error) AmnesiaReason {
	t.Helper()
	var a *AmnesiaError
	if err == nil {
		return ""
	}
	if !errors.Is(err, ErrAmnesia) || !errors.As(err, &a) {
		t.Fatalf("not an amnesia: %v", err)
	}
	return a.Reason
}

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

func TestUnfinishedSnapshotsAreDeleted(t *testing.T) {
	cfg := usedStore(t)
	left := filepath.Join(cfg.dir(), "snapshots", "3-50-1.tmp")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	_ = mustOpen(t, cfg).Close()
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}

func TestStoreInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the wait for the lock is virtual
		cfg := usedStore(t)
		s := mustOpen(t, cfg)
		defer s.Close()
		if _, err := OpenStores(cfg); !errors.Is(err, ErrStoreLocked) || errors.Is(err, ErrAmnesia) {
			t.Errorf("%v", err)
		}
	})
}

func TestCompactGivesSpaceBack(t *testing.T) {
	cfg := usedStore(t)
	s := mustOpen(t, cfg)
	fill(t, s.Store, 101, 2000)
	if err := s.Store.DeleteRange(1, 1990); err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(cfg.file())
	if err := s.Store.Compact(); err != nil {
		t.Fatal(err)
	}
	after, _ := os.Stat(cfg.file())
	if after.Size()*4 > before.Size() {
		t.Errorf("%d bytes became %d", before.Size(), after.Size())
	}
	fill(t, s.Store, 2001, 2010) // it goes on
	_ = s.Close()
	cfg.Self = "n1"
	shape, err := inspectStore(cfg)
	if err != nil || shape.unbroken != 1991 {
		t.Errorf("%+v, %v", shape, err)
	}
	for _, c := range []struct {
		used, size int64
		want       bool
	}{{10 << 20, 60 << 20, false}, {40 << 20, 70 << 20, false}, {10 << 20, 70 << 20, true}} {
		if got := (storeShape{used: c.used, size: c.size}).bloated(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestSetAsideKeepsTheLastTwo(t *testing.T) {
	dir := t.TempDir()
	for i := range 4 {
		cfg := storeAt(dir)
		s := mustOpen(t, cfg)
		fill(t, s.Store, 1, 10)
		_ = s.Close()
		to, err := SetAside(dir)
		if err != nil || to != asideDir(dir, i+1) {
			t.Fatalf("%s, %v", to, err)
		}
		if _, err := os.Stat(filepath.Join(to, "raft.mark")); err != nil {
			t.Errorf("the mark did not go with it: %v", err)
		}
	}
	if left, _ := asideNumbers(dir); fmt.Sprint(left) != "[3 4]" {
		t.Errorf("kept %v", left)
	}
	if _, err := SetAside(dir); err != nil { // nothing there but the mark, or not even that
		t.Errorf("%v", err)
	}
}

func TestRaftOnRealStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		clock := memnet.NewClock()
		cfg := storeAt(t.TempDir())
		worst, err := MeasureFsync(cfg.DataDir, clock)
		if err != nil {
			t.Fatal(err)
		}
		run := func(first bool) (*labFSM, error) {
			layer := transport.NewRaftLayer(transport.RaftLayerConfig{
				Self: "n1", Session: func() transport.Session { return transport.Session{} }, Clock: clock, Log: silent,
			})
			defer layer.Close()
			trans := transport.NewRaftTransport(layer)
			stores := mustOpen(t, cfg)
			defer stores.Close()
			conf := RaftConfig("n1", 1, worst, silent)
			if err := Genesis(conf, stores, trans); (err == nil) != first {
				t.Errorf("genesis, the first time: %v: %v", first, err)
			}
			machine := &labFSM{}
			r, err := OpenRaft(conf, machine, stores, trans)
			if err != nil {
				return nil, err
			}
			until(10*time.Second, func() bool { _, leads := leadership(r); return leads })
			err = waitFuture(t.Context(), clock, r.Apply([]byte("x"), time.Second), 5*time.Second)
			return machine, errors.Join(err, CloseRaft(t.Context(), r, stores, trans, clock))
		}
		for i := range 3 {
			machine, err := run(i == 0)
			if err != nil || len(machine.applied) != i+1 {
				t.Errorf("run %d: %s, %v", i, machine.state(), err)
			}
			mark, err := readMark(cfg)
			if err != nil || mark.Index < uint64(3+2*i) || mark.Term == 0 {
				t.Errorf("mark %+v, %v", mark, err)
			}
		}
		time.Sleep(time.Minute)
	})
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

func TestRaftConfigFollowsTempoAndDisk(t *testing.T) {
	for _, c := range []struct {
		tempo     float64
		worst     time.Duration
		heartbeat time.Duration
		lease     time.Duration
	}{
		{1, 0, 500 * time.Millisecond, 400 * time.Millisecond},
		{1, 200 * time.Millisecond, 500 * time.Millisecond, 400 * time.Millisecond},
		{3, 200 * time.Millisecond, 1500 * time.Millisecond, 1200 * time.Millisecond},
		{1, 400 * time.Millisecond, time.Second, 800 * time.Millisecond},
		{0, 0, 500 * time.Millisecond, 400 * time.Millisecond},
	} {
		got := RaftConfig("n1", c.tempo, c.worst, silent)
		if got.HeartbeatTimeout != c.heartbeat || got.ElectionTimeout != c.heartbeat || got.LeaderLeaseTimeout != c.lease {
			t.Errorf("%+v: %s, %s, %s", c, got.HeartbeatTimeout, got.ElectionTimeout, got.LeaderLeaseTimeout)
		}
		if got.LeaderLeaseTimeout < 2*c.worst || got.TrailingLogs < 10_240 || got.ShutdownOnRemove || got.PreVoteDisabled {
			t.Errorf("%+v: %+v", c, got)
		}
		if err := raft.ValidateConfig(got); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
