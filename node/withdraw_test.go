package node

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// backedUp is a cluster of three machines with two clients and two tokens, as a backup has it.
func backedUp(t *testing.T) *fsm.State {
	t.Helper()
	info, ca, err := transport.NewCluster("home")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ca.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	s := fsm.New()
	commands := []fsm.Command{&fsm.InitCluster{ID: info.ID, Name: "home", CACert: []byte(info.CACert), CAKey: key, GossipKey: info.GossipKey}}
	for _, id := range []task.NodeID{"one", "two", "sold"} {
		commands = append(commands, &fsm.AdmitNode{Node: id, Name: string(id)})
	}
	for _, name := range []string{"anna@laptop", "ci"} {
		commands = append(commands, &fsm.CreateToken{ID: "t-" + name, Hash: []byte(name), TTL: task.Hour, Uses: 2, Role: fsm.RoleAdmin},
			&fsm.AdmitClient{TokenHash: []byte(name), ID: "c-" + name, Name: name, Key: []byte("key of " + name)})
	}
	commands = append(commands, &fsm.CreateToken{ID: "machines", Hash: []byte("m"), TTL: task.Hour, Uses: 2})
	results, _ := s.ApplyBatch(40, &fsm.Batch{Commands: commands})
	for i, r := range results {
		if r.Err != nil {
			t.Fatalf("%T: %v", commands[i], r.Err)
		}
	}
	return s
}

// TestARestoreLetsNobodyInUnseen: tokens never, clients only if they are kept, machines not if they are named or a survivor knows
// better.
func TestARestoreLetsNobodyInUnseen(t *testing.T) {
	all := []string{"one", "sold", "two"}
	for name, c := range map[string]struct {
		how               RestoreHow
		gone              []task.NodeID
		machines, clients []string
		names             []string
	}{
		"by itself":          {RestoreHow{}, nil, all, []string{}, []string{"anna@laptop", "ci"}},
		"clients kept":       {RestoreHow{KeepClients: true}, nil, all, []string{"anna@laptop", "ci"}, nil},
		"but one":            {RestoreHow{KeepClients: true, Without: []string{"ci", "sold"}}, nil, []string{"one", "two"}, []string{"anna@laptop"}, []string{"ci", "sold"}},
		"a survivor knows":   {RestoreHow{KeepClients: true}, []task.NodeID{"sold", "later"}, []string{"one", "two"}, []string{"anna@laptop", "ci"}, []string{"sold"}},
		"named and survivor": {RestoreHow{KeepClients: true, Without: []string{"sold"}}, []task.NodeID{"sold"}, []string{"one", "two"}, []string{"anna@laptop", "ci"}, []string{"sold"}},
	} {
		s := backedUp(t)
		names, events, err := withdraw(s, c.how, c.gone, 7000)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := membersOf(s); !slices.Equal(got, c.machines) {
			t.Errorf("%s: machines %v", name, got)
		}
		if got := clientsOf(s); !slices.Equal(got, c.clients) {
			t.Errorf("%s: clients %v", name, got)
		}
		if !slices.Equal(names, c.names) {
			t.Errorf("%s: told %v", name, names)
		}
		if len(s.JoinTokens()) != 0 {
			t.Errorf("%s: a token of the backup still lets in", name)
		}
		if len(events) != 3+len(c.names) || events[0].Wall != 7000 || events[0].Index != 41 || s.Index != 41 {
			t.Errorf("%s: at entry %d, events %+v", name, s.Index, events)
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
	s := backedUp(t)
	if _, _, err := withdraw(s, RestoreHow{Without: []string{"slod"}}, nil, 0); !errors.Is(err, task.ErrNotFound) || !strings.Contains(err.Error(), "slod") || len(s.JoinTokens()) != 3 {
		t.Errorf("a slip in a name: %v", err)
	}
}

// TestARestoredFolderHasTheWithdrawals: in the snapshot that begins the history, so that no member ever sees the state before, and
// in the audit log.
func TestARestoredFolderHasTheWithdrawals(t *testing.T) {
	s := backedUp(t)
	plain, err := packBackup(transport.BackupHead{Format: transport.BackupFormat, Cluster: "home", ClusterID: s.Cluster.ID}, s.Snapshot(), 1)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{DataDir: t.TempDir(), Name: "new", Listen: "127.0.0.1:7420", Version: "0.1.0", Log: slog.New(slog.DiscardHandler), Slots: 1}
	v, err := RestoreBackup(t.Context(), cfg, plain, RestoreHow{Without: []string{"sold"}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(v.Machines, []string{"one", "two"}) || len(v.Clients) != 0 || v.Tokens != 0 || !slices.Equal(v.Withdrawn, []string{"anna@laptop", "ci", "sold"}) {
		t.Errorf("told %+v", v)
	}
	id, err := transport.LoadIdentity(cfg.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	h, err := readHistory(StoreConfig{DataDir: cfg.DataDir, Self: id.NodeID, Generation: id.Cluster.Generation, Log: cfg.Log})
	if err != nil {
		t.Fatal(err)
	}
	if h.index != 41 || len(h.state.JoinTokens())+len(h.state.Clients()) != 0 || h.state.Node("sold").Gone != fsm.NodeRemove || h.state.Node("two").Gone != "" {
		t.Errorf("at entry %d: %d tokens, %d clients, sold %q", h.index, len(h.state.JoinTokens()), len(h.state.Clients()), h.state.Node("sold").Gone)
	}
	text, err := os.ReadFile(filepath.Join(auditDir(cfg), "audit.jsonl"))
	for _, kind := range []task.EventKind{task.EventTokenRemove, task.EventClientRemove, task.EventNodeRemove} {
		if !strings.Contains(string(text), `"`+string(kind)+`"`) {
			t.Errorf("the audit log does not have %s (%v):\n%s", kind, err, text)
		}
	}
}
