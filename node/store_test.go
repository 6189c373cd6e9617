package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

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
