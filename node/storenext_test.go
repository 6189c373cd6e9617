package node

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"

	"lanjobs/fsm"
	"lanjobs/transport"
)

// stateOf is a frozen state with a cluster.
func stateOf(t *testing.T) *frozen {
	t.Helper()
	s := fsm.New()
	if r, _ := s.ApplyBatch(40, &fsm.Batch{Commands: []fsm.Command{&fsm.InitCluster{ID: "c1", Name: "home"}}}); r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	return &frozen{s.Snapshot()}
}

// TestANewHistoryCountsOnceTheIdentitySaysSo: prepared beside the old store, it is thrown away under the old generation, and takes
// the place of the old store under its own, wherever the changing over was cut.
func TestANewHistoryCountsOnceTheIdentitySaysSo(t *testing.T) {
	later := transport.NextGeneration(1)
	prepared := func(t *testing.T) (was, now StoreConfig) {
		was = usedStore(t)
		now = was
		now.Generation = later
		if err := writeNext(now, stateOf(t), 40, 5); err != nil {
			t.Fatal(err)
		}
		return was, now
	}
	check := func(t *testing.T, now StoreConfig) {
		t.Helper()
		for range 2 { // again after a restart
			s := mustOpen(t, now)
			h, err := s.newestState()
			if err != nil || h.index != 40 || h.term != 5 || h.state.Cluster.Name != "home" {
				t.Errorf("%+v, %v", h, err)
			}
			if last, _ := s.Store.LastIndex(); last != 0 {
				t.Errorf("entries up to %d of the old history are in the new one", last)
			}
			list, _ := s.Snapshots.List()
			if c := list[0].Configuration.Servers; len(c) != 1 || c[0].ID != "n1" || c[0].Suffrage != raft.Voter {
				t.Errorf("voters %v", c)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := os.Stat(filepath.Join(now.DataDir, "raft.lost-1", "raft.db")); err != nil {
			t.Error("the old log is not kept")
		}
		if _, err := os.Stat(now.nextDir()); !errors.Is(err, os.ErrNotExist) {
			t.Error("something is left beside the store")
		}
	}
	t.Run("never begun", func(t *testing.T) {
		was, now := prepared(t)
		s := mustOpen(t, was)
		defer s.Close()
		if last, _ := s.Store.LastIndex(); last != 100 {
			t.Errorf("the old log ends at %d", last)
		}
		if _, err := os.Stat(now.nextDir()); !errors.Is(err, os.ErrNotExist) {
			t.Error("it is still there")
		}
	})
	t.Run("begun", func(t *testing.T) { _, now := prepared(t); check(t, now) })
	t.Run("cut before it was whole", func(t *testing.T) {
		_, now := prepared(t)
		if err := os.Remove(filepath.Join(now.nextDir(), readyFile)); err != nil {
			t.Fatal(err)
		}
		// The identity is never written then; if it were, nothing of the old log may be taken for the new history.
		s := mustOpen(t, now)
		defer s.Close()
		if s.HasLog() {
			t.Error("it has a log of another history")
		}
	})
	for cut := range 3 {
		t.Run("cut while it took its place", func(t *testing.T) {
			was, now := prepared(t)
			steps := []func() error{
				func() error { _, err := SetAside(was.DataDir); return err },
				func() error { return os.Rename(filepath.Join(now.nextDir(), "raft"), now.dir()) },
				func() error { return os.Rename(filepath.Join(now.nextDir(), "raft.mark"), now.markFile()) },
			}
			for _, step := range steps[:cut+1] {
				if err := step(); err != nil {
					t.Fatal(err)
				}
			}
			check(t, now)
		})
	}
}

// TestAnEarlierLogIsSetAside: a machine that has gone over to a later history begins with an empty log, and one whose identity is
// of before its log is no better than one without a memory.
func TestAnEarlierLogIsSetAside(t *testing.T) {
	cfg := usedStore(t)
	cfg.Generation = transport.NextGeneration(1)
	s := mustOpen(t, cfg)
	if s.HasLog() {
		t.Error("the log of an earlier history is in use")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(cfg.DataDir, "raft.lost-1", "raft.db")); err != nil {
		t.Error("the old log is not kept")
	}
	cfg.Generation = 1
	_, err := OpenStores(cfg)
	if got := reasonOf(t, err); got != ReasonOther {
		t.Errorf("a later store under an earlier identity: %v", err)
	}
	cfg.Generation = transport.NextGeneration(1) // another recovery of the same number
	s, err = OpenStores(cfg)
	if err == nil {
		defer s.Close()
		if s.HasLog() {
			t.Error("a log of another recovery is in use")
		}
	}
}
