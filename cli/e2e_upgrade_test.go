//go:build e2e && linux

package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// previousBuild is the last commit of the version before this one. Its binary is made from the repository's history.
const previousBuild = "6443f38"

// previous builds the version before this one, once for all tests.
var previous = sync.OnceValues(func() (string, error) {
	exe, err := binary()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(filepath.Dir(exe), "previous")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	archive := exec.Command("git", "archive", previousBuild)
	archive.Dir = ".."
	var diag bytes.Buffer
	archive.Stderr = &diag
	tree, err := archive.Output()
	if err != nil {
		return "", errNoHistory{fmt.Sprintf("the history of this clone does not reach %s, the version before this one (%v: %s); fetch all of it", previousBuild, err, bytes.TrimSpace(diag.Bytes()))}
	}
	unpack := exec.Command("tar", "-x")
	unpack.Dir, unpack.Stdin = dir, bytes.NewReader(tree)
	if out, err := unpack.CombinedOutput(); err != nil {
		return "", fmt.Errorf("tar: %w\n%s", err, out)
	}
	old := filepath.Join(dir, "lanjobs-old")
	build := exec.Command("go", "build", "-o", old, ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", previousBuild, err, out)
	}
	return old, nil
})

type errNoHistory struct{ why string }

func (e errNoHistory) Error() string { return e.why }

// oldBinary gives the previous build. Without the history of the repository there is none, and the test is skipped.
func oldBinary(t *testing.T) string {
	t.Helper()
	old, err := previous()
	if _, shallow := err.(errNoHistory); shallow {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return old
}

// upgraded ends a node's agent and starts another binary on its folder.
func (l *lab) upgraded(n *member, exe string, sig syscall.Signal) {
	l.t.Helper()
	n.kill(sig)
	n.exe = exe
	n.restart()
}

// TestProcRollingUpgrade: three machines go from the version before to this one, one at a time, while jobs with checkpoints run
// all the time. Nothing is lost or run twice, what ran before a restart goes on under the new agent, and what is new can be used
// once the last one is through, and no earlier.
func TestProcRollingUpgrade(t *testing.T) {
	for order, sig := range map[string]syscall.Signal{
		"workers first": syscall.SIGKILL, // what runs stays with the guard of the version before
		"leader first":  syscall.SIGTERM, // it is given back with its last checkpoint
	} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			old := oldBinary(t)
			l := newLab(t)
			now := l.exe
			l.exe = old
			l.found("a", "b", "c")
			l.exe = now // commands are of the new version throughout
			leader := l.leader()
			nodes := append(l.others(leader), leader)
			if order == "leader first" {
				slices.Reverse(nodes)
			}
			load := l.underLoad(nodes)
			for i, n := range nodes {
				l.saved("pinned-"+n.name, 2)
				before := l.ledger.of("pinned-"+n.name, "start")
				l.upgraded(n, now, sig)
				l.readies(n, 3, 90*time.Second)
				saved := l.ledger.count("pinned-"+n.name, "saved")
				l.saved("pinned-"+n.name, saved+2)
				after := l.ledger.of("pinned-"+n.name, "start")
				if sig == syscall.SIGKILL && (!n.logged("attempt found") || len(after) != len(before)) {
					t.Errorf("%s did not take over what the guard of the version before ran: %v", n.name, after)
				}
				if last := after[len(after)-1]; sig == syscall.SIGTERM && (len(after) != len(before)+1 || last.note == "0") {
					t.Errorf("what was given back on %s did not go on from its checkpoint: %v", n.name, after)
				}
				l.mixed(nodes[0], n, i == len(nodes)-1)
			}
			load.end()
			l.checkDowngrade(nodes[0], nodes[2], old)
		})
	}
}

// mixed checks what a cluster in the middle of an upgrade says and refuses; last: it is through.
func (l *lab) mixed(any, n *member, last bool) {
	l.t.Helper()
	code, text := l.submitNew(any, n)
	if !last {
		if code != 409 && code != 400 || !strings.Contains(string(text), "a newer") {
			l.t.Errorf("a job of the new version in a mixed cluster: %d %s", code, text)
		}
		if v := l.status(any); v.Level > 0 && (v.Level != 2 || len(v.HeldBackBy) == 0) { // a leader of before does not say

			l.t.Errorf("status of a mixed cluster: level %d, held back by %v", v.Level, v.HeldBackBy)
		}
		return
	}
	var reply task.SubmitReply
	if code != 201 || json.Unmarshal(text, &reply) != nil {
		l.t.Errorf("a job of the new version in an upgraded cluster: %d %s", code, text)
		return
	}
	l.ends(any, string(reply.ID), task.JobSucceeded, 60*time.Second)
	if v := l.status(any); v.Level != 3 || len(v.HeldBackBy) != 0 {
		l.t.Errorf("status of an upgraded cluster: level %d, held back by %v", v.Level, v.HeldBackBy)
	}
}

// submitNew hands in a job that uses what the version before does not know.
func (l *lab) submitNew(via, n *member) (status int, answer []byte) {
	l.t.Helper()
	id := l.submit(via, l.file("plain-"+n.name, "", "say start"))
	_, text := l.http(via, "GET", "/v1/jobs/"+id+"/spec?format=json", nil, nil)
	var spec task.Spec
	if err := json.Unmarshal(text, &spec); err != nil {
		l.t.Fatalf("%v in %s", err, text)
	}
	spec.Name, spec.Stages[0].OnSleep = "new-"+n.name, task.OnSleepKeep
	body, err := json.Marshal(spec)
	if err != nil {
		l.t.Fatal(err)
	}
	return l.http(via, "POST", "/v1/jobs", http.Header{"Content-Type": {transport.ContentTypeSpec}}, body)
}

// workload is what runs during an upgrade.
type workload struct {
	l      *lab
	pinned map[string]string
	small  []string
	stop   chan struct{}
	done   chan struct{}
	via    *member
}

// underLoad starts one job with checkpoints on each machine, and hands in small ones all the time.
func (l *lab) underLoad(nodes []*member) *workload {
	l.t.Helper()
	w := &workload{l: l, pinned: map[string]string{}, stop: make(chan struct{}), done: make(chan struct{}), via: nodes[2]}
	for _, n := range nodes {
		name := "pinned-" + n.name
		w.pinned[name] = l.submit(n, l.file(name, lease(60*time.Second)+"\nplacement: {require: [node="+n.name+"]}", steps))
	}
	go func() {
		defer close(w.done)
		for i := 0; ; i++ {
			select {
			case <-w.stop:
				return
			case <-time.After(300 * time.Millisecond):
			}
			via := nodes[i%len(nodes)]
			out, _, code := l.cli(via, l.file(fmt.Sprintf("small-%d", i), lease(60*time.Second)+"\nretry: {attempts: 5}", "say start\nsay end\n"), "submit", "-", "-q", "--timeout", "60s", "--no-start") // else it would start a node itself while one is exchanged
			if code == 0 {                                                                                                                                                                                // acknowledged: from now on it must not be lost (I15)
				w.small = append(w.small, strings.TrimSpace(out))
			}
		}
	}()
	return w
}

// end lets all of it finish and looks at what became of it.
func (w *workload) end() {
	l := w.l
	l.t.Helper()
	close(w.stop)
	<-w.done
	if len(w.small) < 10 {
		l.t.Errorf("only %d small jobs were accepted during the upgrade", len(w.small))
	}
	for name, id := range w.pinned {
		l.open(name)
		l.ends(w.via, id, task.JobSucceeded, 60*time.Second)
		l.ledger.noOverlap(l.t, name)
	}
	for _, id := range w.small {
		l.ends(w.via, id, task.JobSucceeded, 60*time.Second)
	}
	for i := range 10_000 {
		name := fmt.Sprintf("small-%d", i)
		if len(l.ledger.of(name)) == 0 && i > len(w.small)+20 {
			break
		}
		l.ledger.noOverlap(l.t, name)
	}
}

// checkDowngrade puts the version before on a machine of a cluster that is through: it must not take part.
func (l *lab) checkDowngrade(stay, n *member, old string) {
	l.t.Helper()
	l.upgraded(n, old, syscall.SIGTERM)
	l.waitFor(60*time.Second, "the old version is refused", func() bool {
		return n.logged("only neighbouring versions work together") || n.logged("cannot apply a committed entry") || n.logged("snapshot format")
	})
	n.kill(syscall.SIGTERM)
	n.exe = l.exe
	n.restart()
	l.readies(stay, 3, 90*time.Second)
}
