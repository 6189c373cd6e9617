package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"lanjobs/task"
)

// TestRulesAreKept: what is said anew counts, what is not said stays, and an empty word takes back.
func TestRulesAreKept(t *testing.T) {
	store, err := openLocalStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	anna, nobody := "anna", ""
	r := Rules{}
	for i, c := range []struct {
		told Rules
		want string
	}{
		{Rules{}, "[] \"\" []"},
		{Rules{Refuses: []string{"heavy"}, RunAs: &anna, AllowUsers: []string{"ben"}}, `["heavy"] "anna" ["ben"]`},
		{Rules{}, `["heavy"] "anna" ["ben"]`},
		{Rules{Refuses: []string{"night", "day"}}, `["night" "day"] "anna" ["ben"]`},
		{Rules{RunAs: &nobody}, `["night" "day"] "" ["ben"]`},
		{Rules{Refuses: []string{}, AllowUsers: []string{}}, `[] "" []`},
		{Rules{}, `[] "" []`},
	} {
		r = c.told.over(r)
		if err := store.SetSettings(Settings{Listen: "x", Rules: r}); err != nil {
			t.Fatal(err)
		}
		s, err := store.Settings()
		if err != nil {
			t.Fatal(err)
		}
		r = s.Rules
		if got := fmt.Sprintf("%q %q %q", r.Refuses, r.runAs(), r.AllowUsers); got != c.want {
			t.Errorf("step %d: %s, want %s", i, got, c.want)
		}
	}
}

// TestLabelsAreKept: a machine that is started again without a word about its labels still has them: jobs wait for them.
func TestLabelsAreKept(t *testing.T) {
	gpu, disk := []task.KV{{Name: "gpu", Value: "true"}}, []task.KV{{Name: "disk", Value: "big"}}
	cfg := DefaultConfig()
	cfg.DataDir, cfg.Listen = t.TempDir(), "127.0.0.1:0"
	for i, c := range []struct{ told, want []task.KV }{{gpu, gpu}, {nil, gpu}, {disk, disk}, {nil, disk}, {[]task.KV{}, nil}, {nil, nil}} {
		store, err := openLocalStore(cfg.DataDir)
		if err != nil {
			t.Fatal(err)
		}
		m := &machine{cfg: cfg, store: store}
		m.cfg.Labels = c.told
		if m.settings, err = store.Settings(); err == nil {
			err = m.keepRules()
		}
		if err = errors.Join(err, store.Close()); err != nil {
			t.Fatal(err)
		}
		if got := m.cfg.Labels; fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("start %d: %v, want %v", i, got, c.want)
		}
	}
}

func TestRulesAreChecked(t *testing.T) {
	anna, blank := "anna", "an na"
	for want, r := range map[bool]Rules{true: {Refuses: []string{"heavy"}, RunAs: &anna, AllowUsers: []string{}}, false: {RunAs: &blank}} {
		cfg := DefaultConfig()
		cfg.Rules = r
		if err := cfg.Validate(); (err == nil) != want {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if err := (Rules{Refuses: make([]string, maxRules+1)}).fault(); err == nil {
		t.Error("too many are taken")
	}
}

// TestRulesOutliveTheMembership: a machine that joins another cluster still obeys its owner.
func TestRulesOutliveTheMembership(t *testing.T) {
	dir := t.TempDir()
	if r, err := keptRules(dir); err != nil || r.told() {
		t.Errorf("of an empty folder: %+v, %v", r, err)
	}
	store, err := openLocalStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	anna := "anna"
	if err := errors.Join(store.SetSettings(Settings{Rules: Rules{RunAs: &anna}}), store.Close()); err != nil {
		t.Fatal(err)
	}
	if r, err := keptRules(dir); err != nil || r.runAs() != "anna" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestRulesAreWhatTheMachineSaysOfItself(t *testing.T) {
	anna := "anna"
	i := task.NodeInfo{Labels: []task.KV{{Name: "gpu", Value: "true"}}}
	Rules{Refuses: []string{"night", "day"}, RunAs: &anna, AllowUsers: []string{"ben", "anna"}, Inhibit: "never"}.describe(&i)
	if got := fmt.Sprintf("%v %v %s %s", i.Refuses, i.Labels, i.RunAs, i.Inhibit); got != "[day night] [{gpu true} {user.anna true} {user.ben true}] anna never" {
		t.Error(got)
	}
}

// TestDataFolderLetsThroughToTheRunnerAlone: whatever the modes were, other users may pass through the folder and open nothing in it.
func TestDataFolderLetsThroughToTheRunnerAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	dir := t.TempDir()
	for _, name := range []string{"raft", "runner", "audit"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(t.TempDir(), "outside")
	for _, path := range []string{filepath.Join(dir, "node.key"), outside} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := letThrough(dir); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{"": 0o711, "raft": 0o700, "audit": 0o700, "runner": 0o755, "node.key": 0o600, "link": 0o644} {
		if info, err := os.Stat(filepath.Join(dir, path)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
}

// TestRulesOutliveTheData: leaving puts the data aside before anybody joins again, and a damaged store keeps nobody from it.
func TestRulesOutliveTheData(t *testing.T) {
	dir := t.TempDir()
	store, err := openLocalStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	anna := "anna"
	if err := errors.Join(store.SetSettings(Settings{Listen: "x", Worker: true, Rules: Rules{RunAs: &anna}}), store.Close()); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := setAside(dir); err != nil {
			t.Fatal(err)
		}
		if r, err := keptRules(dir); err != nil || r.runAs() != "anna" {
			t.Errorf("aside %d: %+v, %v", i, r, err)
		}
	}
	if store, err = openLocalStore(dir); err != nil {
		t.Fatal(err)
	}
	s, err := store.Settings()
	if err = errors.Join(err, store.Close()); err != nil || s.Listen != "" || s.Worker {
		t.Errorf("more than the rules is kept: %+v, %v", s, err)
	}
	path := filepath.Join(dir, localFile)
	if err := os.WriteFile(path, make([]byte, 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := keptRules(dir); err != nil || r.told() {
		t.Errorf("of a damaged store: %+v, %v", r, err)
	}
	if err := setAside(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the damaged store is still there: %v", err)
	}
}
