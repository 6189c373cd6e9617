package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lanjobs/node"
	"lanjobs/transport"
)

// TestRestoreAsksWhoMayComeBack: only a person knows who was removed after the backup, so at a terminal they see the names before
// anything is changed; whom they name by --without is not among them, and what happened is said.
func TestRestoreAsksWhoMayComeBack(t *testing.T) {
	head := transport.BackupHead{Format: transport.BackupFormat, Cluster: "home", ClusterID: "c1", Created: time.Unix(1e9, 0)}
	file, err := transport.SealBackup([]byte(`{"format":1,"cluster":"home","cluster_id":"c1"}`+"\nstate"), []byte("four words make one"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		typed    string
		code     int
		args     []string
		asked    string
		restored bool
	}{
		{"n\n", exitBad, nil, "Machines that may come back: one, sold.\nOne that was removed", false},
		{"y\n", exitDone, []string{"--without", "sold"}, "Machines that may come back: one.\n", true},
		{"y\n", exitDone, []string{"--keep-clients"}, "Clients that may go on: anna@laptop.\n", true},
		{"", exitDone, []string{"--yes"}, "", true},
	} {
		b := newBench(t)
		b.up = false
		dir := t.TempDir()
		path, pass := filepath.Join(dir, "f"), filepath.Join(dir, "pass")
		if os.WriteFile(path, file, 0o600) != nil || os.WriteFile(pass, []byte("four words make one\n"), 0o600) != nil {
			t.Fatal("no files")
		}
		var how *node.RestoreHow
		b.w.nodes.checkBackup = func([]byte) (*transport.RestoreView, error) {
			return &transport.RestoreView{BackupHead: head, Machines: []string{"one", "sold"}, Clients: []string{"anna@laptop"}}, nil
		}
		b.w.nodes.restore = func(_ context.Context, _ node.Config, _ []byte, h node.RestoreHow) (*transport.RestoreView, error) {
			how = &h
			return &transport.RestoreView{BackupHead: head, Node: "mini-1", NewGeneration: 2, Machines: []string{"one"}, Withdrawn: []string{"sold"}}, nil
		}
		b.w.inTTY, b.w.stdin = true, strings.NewReader(c.typed)
		b.expect(c.code, append([]string{"backup", "restore", path, "--passphrase-file", pass}, c.args...)...)
		if !strings.Contains(b.err.String(), c.asked) || (c.asked == "") == strings.Contains(b.err.String(), "may come back") {
			t.Errorf("%q: asked %s", c.args, b.err)
		}
		if (how != nil) != c.restored || how != nil && slices.Contains(c.args, "--without") != slices.Contains(how.Without, "sold") {
			t.Errorf("%q, %q: restored %+v", c.args, c.typed, how)
		}
		if c.restored {
			for _, words := range []string{"Machines then: one.", "lanjobs node rm NAME, at once", "No longer let in: sold."} {
				b.wants("stdout", b.out.String(), words)
			}
		}
	}
}
