package node

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"

	"lanjobs/fsm"
	"lanjobs/node/observe"
	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

// oldFolder is a copy of what a node of an older version left.
func oldFolder(t *testing.T, name string) string {
	t.Helper()
	t.Setenv("LANJOBS_MACHINE_ID", "compat")
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "testdata", "compat", "v2", name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestFoldersOfAnOlderVersionOpen: identity, settings, counters, address book, unsent notes, log and audit log (R47).
func TestFoldersOfAnOlderVersionOpen(t *testing.T) {
	for _, name := range []string{"node-one", "node-two"} {
		dir := oldFolder(t, name)
		s, err := openLocalStore(dir)
		if err != nil {
			t.Fatal(err)
		}
		set, err := s.Settings()
		if err != nil || !strings.HasPrefix(set.Listen, "127.0.0.") || set.Worker != (name == "node-two") {
			t.Errorf("%s: settings %+v, %v", name, set, err)
		}
		if n, err := s.NextIncarnation(); err != nil || n != 2 {
			t.Errorf("%s: incarnation %d, %v", name, n, err)
		}
		book, err := (bookStore{s}).Load()
		if err != nil || len(book) != 1 {
			t.Errorf("%s: book %v, %v", name, book, err)
		}
		notes, err := outboxStore{s}.All()
		if wait, has := notes["defer/1"]; err != nil || has != (name == "node-two") || has && string(wait) != "60000" {
			t.Errorf("%s: notes %q, %v", name, notes, err)
		}
		if err := errors.Join(s.sign("0.2.0"), s.Close()); err != nil {
			t.Error(err)
		}
		id, err := transport.LoadIdentity(dir)
		if err != nil || !id.Member() || id.Cluster.Name != "home" || id.Cluster.Generation != 1 {
			t.Fatalf("%s: %+v, %v", name, id, err)
		}
		c := StoreConfig{DataDir: dir, Self: id.NodeID, Generation: id.Cluster.Generation, Log: silent}
		if err := checkReadable(c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		stores, err := OpenStores(c)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if stores.HasLog() != (name == "node-one") {
			t.Errorf("%s: a log: %v", name, stores.HasLog())
		}
		if err := stores.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestALogOfAnOlderVersionIsRecovered: what it holds is all in the new history.
func TestALogOfAnOlderVersionIsRecovered(t *testing.T) {
	dir := oldFolder(t, "node-one")
	cfg := Config{DataDir: dir, Log: slog.New(slog.DiscardHandler)}
	if err := beginRecovery(cfg, &recovery{By: "anna", Reason: "a test", Above: []uint64{6}}); err != nil {
		t.Fatal(err)
	}
	id, err := transport.LoadIdentity(dir)
	if err != nil || transport.GenerationNumber(id.Cluster.Generation) != 7 {
		t.Fatalf("generation %d, %v", id.Cluster.Generation, err)
	}
	h, err := readHistory(StoreConfig{DataDir: dir, Self: id.NodeID, Generation: id.Cluster.Generation, Log: silent})
	if err != nil {
		t.Fatal(err)
	}
	queues := 0
	for _, q := range h.state.Queues() {
		if q.Name == "video" {
			queues++
		}
	}
	if h.state.Cluster.Name != "home" || queues != 1 || h.state.Live() != 1 || len(h.events) != 0 {
		t.Errorf("the new history has %q, %d queues, %d jobs, %d entries after its beginning", h.state.Cluster.Name, queues, h.state.Live(), len(h.events))
	}
	a, err := observe.Open(observe.DefaultConfig(auditDir(cfg), runner.SystemClock(), cfg.Log))
	if err != nil || a.Last().Index < 8 {
		t.Errorf("the audit log ends at %s, %v", a.Last(), err)
	}
	if old, _ := filepath.Glob(filepath.Join(dir, "raft.lost-*", "raft.db")); len(old) != 1 {
		t.Errorf("the old log is not kept: %v", old)
	}
}

// TestALaterFormIsRefusedBeforeAnythingChanges: node.db, identity.json, the log and its snapshot (R47).
func TestALaterFormIsRefusedBeforeAnythingChanges(t *testing.T) {
	for name, later := range map[string]func(t *testing.T, dir string){
		"node.db": func(t *testing.T, dir string) {
			s, err := openStore(dir)
			if err != nil {
				t.Fatal(err)
			}
			err = s.db.Update(func(tx *bbolt.Tx) error {
				return errors.Join(tx.Bucket(bucketMeta).Put(keyFormat, []byte{0, 0, 0, 0, 0, 0, 0, storeFormat + 1}), tx.Bucket(bucketMeta).Put(keyVersion, []byte("9.9.9")))
			})
			if err := errors.Join(err, s.Close()); err != nil {
				t.Fatal(err)
			}
		},
		"identity.json": func(t *testing.T, dir string) {
			path := filepath.Join(dir, "identity.json")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(strings.Replace(string(b), "{", `{"format": 99,`, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"log": func(t *testing.T, dir string) {
			b, err := openBolt(filepath.Join(dir, "raft", "raft.db"))
			if err != nil {
				t.Fatal(err)
			}
			last, err := b.LastIndex()
			if err == nil {
				err = b.StoreLog(laterEntry(last + 1))
			}
			if err := errors.Join(err, b.Close()); err != nil {
				t.Fatal(err)
			}
		},
		"snapshot": func(t *testing.T, dir string) {
			folder := filepath.Join(dir, "raft", "snapshots", "2-900-1")
			err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "meta.json"), []byte(`{"Index": 900}`), 0o600),
				os.WriteFile(filepath.Join(folder, "state.bin"), []byte("LANJOBS\x01\x63and what follows"), 0o600))
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := oldFolder(t, "node-one")
			later(t, dir)
			before := contents(t, dir)
			cfg := lonely(t, dir, "127.0.0.1:0")
			_, err := Open(t.Context(), cfg)
			p, ok := errors.AsType[*task.Problem](err)
			if !ok || !errors.Is(err, task.ErrConflict) || !strings.Contains(p.Detail, "this is lanjobs 0.1.0") || !strings.Contains(p.Detail, "Nothing was changed") || !strings.Contains(p.Hint, "lanjobs help upgrade") {
				t.Fatalf("%v", err)
			}
			if name == "node.db" && !strings.Contains(p.Detail, "lanjobs 9.9.9") {
				t.Errorf("it does not say by whom: %s", p.Detail)
			}
			after := contents(t, dir)
			for f, b := range before {
				if after[f] != b && f != "node.db" { // bbolt may lay pages anew without a change of what is in them
					t.Errorf("%s was changed", f)
				}
			}
			if len(after) != len(before) {
				t.Errorf("there were %d files, now %d", len(before), len(after))
			}
		})
	}
}

// contents are the files of a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			out[strings.TrimPrefix(path, dir+"/")] = string(b)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// laterEntry is one in a form of a later version.
func laterEntry(index uint64) *raft.Log {
	data := (&fsm.Batch{}).Encode()
	data[0]++
	return &raft.Log{Index: index, Term: 2, Type: raft.LogCommand, Data: data}
}
