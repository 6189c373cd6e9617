//go:build e2e && linux

package cli_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
)

// TestProcSources runs the example as a newcomer does and compares its result with a count of our own.
func TestProcSources(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"sha256sum", "xargs", "awk"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the example needs %s", tool)
		}
	}
	l := newLab(t)
	n := &member{lab: l, name: "alone", dir: filepath.Join(l.dir, "alone")}
	out := l.want(n, 0, "", "run", l.example("sources.yaml"))
	if want := countSources(t); !strings.Contains(out, want) {
		t.Errorf("counted %q, not %q", strings.TrimSpace(out), want)
	}
}

func (l *lab) example(name string) string {
	l.t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "testdata", "jobs", name))
	if err != nil {
		l.t.Fatal(err)
	}
	return path
}

// countSources counts the files and lines of the toolchain's sources. What a word is depends on wc and on the locale.
func countSources(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, lines := 0, 0
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(root)), "src"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		lines += bytes.Count(text, []byte("\n"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("files=%d lines=%d", files, lines)
}

// TestProcTaskProtocol: the three examples of the task protocol work as they are, each in the language it is written in.
func TestProcTaskProtocol(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	for name, tool := range map[string]string{"sh": "curl", "python": "python3", "go": "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Logf("checkpoint-%s needs %s, which is not here", name, tool)
			continue
		}
		id := strings.TrimSpace(l.want(l.nodes[1], 0, "", "submit", "-q", l.example("checkpoint-"+name+".yaml")))
		l.ends(l.nodes[2], id, task.JobSucceeded, 5*time.Minute) // one of them is compiled
		for _, s := range l.shards(l.nodes[2], id) {
			if s.CheckpointSeq != 5 {
				t.Errorf("checkpoint-%s/%d: %d checkpoints, want 5", name, s.Shard, s.CheckpointSeq)
			}
		}
	}
}

// TestProcSourcesMoves is the same work on three nodes, one of which is switched off in the middle of it: what its shards had
// finished is not done again, and the sum is right.
func TestProcSourcesMoves(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	text, err := os.ReadFile(l.example("sources.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := strings.Replace(string(text), "version: 1\n", "version: 1\n"+lease(shortLease)+"\n", 1)
	id := l.submit(l.nodes[0], file)
	var off *member
	l.waitFor(120*time.Second, "a worker has saved something", func() bool {
		for _, s := range l.shards(l.nodes[0], id) {
			if s.Stage == "count" && s.State == "running" && s.CheckpointSeq > 1 && s.CheckpointSeq < 6 { // of 10
				off = l.node(s.NodeName)
				return true
			}
		}
		return false
	})
	off.poweroff()
	rest := l.others(off)[0]
	l.ends(rest, id, task.JobSucceeded, 5*time.Minute)
	out := l.want(rest, 0, "", "logs", id+"/merge")
	if want := countSources(t); !strings.Contains(out, want) {
		t.Errorf("counted %q, not %q", strings.TrimSpace(out), want)
	}
	moved := 0
	for _, a := range l.attempts(rest, id) {
		if a.Stage == "count" && a.Attempt > 1 {
			moved++
		}
	}
	if moved == 0 {
		t.Error("no shard moved: the machine was switched off too late to show anything")
	}
	for line := range strings.Lines(l.want(rest, 0, "", "logs", id+"/count")) {
		if _, part, ok := strings.Cut(line, "starts at part "); ok {
			t.Logf("%s", strings.TrimSpace(part))
		}
	}
}
