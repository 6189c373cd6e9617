package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// lonely is the configuration of a founder of a cluster of one on loopback.
func lonely(t *testing.T, dir, listen string) Config {
	t.Helper()
	cfg := DefaultConfig()
	cfg.DataDir, cfg.Name, cfg.Listen, cfg.Version, cfg.NoopRunner = dir, "here", listen, "0.1.0", true
	cfg.Log = slog.New(slog.DiscardHandler)
	return cfg
}

// loopbackPort gives a port that is free, and below the range from which outgoing connections are given theirs: it stays free while a
// test opens a node on it again and again.
func loopbackPort(t *testing.T) string {
	t.Helper()
	for port := 10_000 + os.Getpid()%10_000; port < 30_000; port++ {
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}

// usedFolder makes the data folder of a node that has led a cluster, taken a snapshot and stopped.
func usedFolder(t *testing.T, listen string) string {
	t.Helper()
	dir := t.TempDir()
	cfg := lonely(t, dir, listen)
	if _, err := CreateCluster(cfg, "home"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	n, err := Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	<-n.current().ready
	if err := n.current().core.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	given := dir + "-moved" // beside the folder that it was made in, any other would be refused as its copy
	if err := os.Rename(dir, given); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(given) })
	return given
}

// copyFolder copies what a stopped node left.
func copyFolder(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, filesOf{os.DirFS(from)}); err != nil {
		t.Fatal(err)
	}
	return to
}

func theOne(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("no %s", pattern)
	}
	return found[len(found)-1]
}

// TestDamagedFilesAreToldPlainly: whatever a power cut or a bad disk makes of a file in the data folder, a start either goes on as
// before or ends with one message that names what is wrong and what to type. It neither panics nor hangs, and it never begins
// anew as if nothing had been.
func TestDamagedFilesAreToldPlainly(t *testing.T) {
	if testing.Short() {
		t.Skip("opens a node about sixty times")
	}
	listen := loopbackPort(t)
	whole := usedFolder(t, listen)
	files := map[string]string{"identity": "identity.json", "key": "node.key", "store": "node.db", "log": "raft/raft.db", "mark": "raft.mark",
		"snapshot": "raft/snapshots/*/state.bin", "snapshot's head": "raft/snapshots/*/meta.json", "audit": "audit/audit.jsonl"}
	damage := map[string]func(b []byte) []byte{
		"as it was": func(b []byte) []byte { return b }, "gone": nil, "empty": func([]byte) []byte { return nil },
		"cut to a half": func(b []byte) []byte { return b[:len(b)/2] }, "cut by a byte": func(b []byte) []byte { return b[:len(b)-1] },
		"zeroed":         func(b []byte) []byte { return make([]byte, len(b)) },
		"zeroed at head": func(b []byte) []byte { clear(b[:min(512, len(b))]); return b },
		"garbage":        func(b []byte) []byte { return []byte(strings.Repeat("garbage ", len(b)/8+1)) },
	}
	for what, pattern := range files {
		for how, change := range damage {
			t.Run(what+" "+how, func(t *testing.T) {
				dir := copyFolder(t, whole)
				path := theOne(t, filepath.Join(dir, pattern))
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				if change != nil {
					if err := os.WriteFile(path, change(b), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
				defer cancel()
				n, err := Open(ctx, lonely(t, dir, listen))
				if err == nil {
					checkSame(t, n, whole)
					return
				}
				p, ok := errors.AsType[*task.Problem](err)
				if !ok || how == "as it was" {
					t.Fatalf("not a message for a person: %v", err)
				}
				if p.Hint == "" || !strings.Contains(p.Detail+p.Hint, dir) || strings.Contains(p.Detail, "panic") {
					t.Errorf("not a message for a person: %s\n  %s", p.Detail, p.Hint)
				}
				t.Logf("%s\n  %s", p.Detail, p.Hint)
			})
		}
	}
}

// checkSame wants a node that opened to be the one it was.
func checkSame(t *testing.T, n *Node, whole string) {
	t.Helper()
	defer func() {
		if err := n.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	}()
	was, err := transport.LoadIdentity(whole)
	if err != nil {
		t.Fatal(err)
	}
	if now := n.current().identity; now.NodeID != was.NodeID || now.Cluster.ID != was.Cluster.ID {
		t.Errorf("it began anew as %s of %q", now.NodeID, now.Cluster.Name)
	}
	if !n.current().core.HasCopy() {
		t.Error("its log is gone, and it said nothing")
	}
}

// filesOf leaves sockets out.
type filesOf struct{ fs.FS }

func (f filesOf) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(f.FS, name)
	return slices.DeleteFunc(all, func(e fs.DirEntry) bool { return !e.IsDir() && !e.Type().IsRegular() }), err
}

// TestALostStoreCountsOn: the starts of a machine are counted in node.db. One that is begun anew must not count below the old
// one, or the cluster would take the machine for a copy of its former self (I13).
func TestALostStoreCountsOn(t *testing.T) {
	listen := loopbackPort(t)
	dir := usedFolder(t, listen)
	if err := os.WriteFile(filepath.Join(dir, localFile), []byte("no store at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := Open(t.Context(), lonely(t, dir, listen))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if m := n.current(); m.incarnation < 1_000_000 || !strings.Contains(strings.Join(m.trouble.sentences(), " "), "begun anew") {
		t.Errorf("start %d; it says %q", m.incarnation, m.trouble.sentences())
	}
	if _, err := os.Stat(filepath.Join(dir, localFile+".damaged")); err != nil {
		t.Error("what was left is not kept")
	}
}
