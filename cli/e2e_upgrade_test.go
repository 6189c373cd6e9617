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

// TestProcUpgradeWorkersFirst: the leader last, and each agent is killed: what runs stays with the guard of the version before.
func TestProcUpgradeWorkersFirst(t *testing.T) { t.Parallel(); rollingUpgrade(t, syscall.SIGKILL) }

// TestProcUpgradeLeaderFirst: the leader first, and each agent ends in order: what runs is given back with its last checkpoint.
func TestProcUpgradeLeaderFirst(t *testing.T) { t.Parallel(); rollingUpgrade(t, syscall.SIGTERM) }

// rollingUpgrade: three machines go from the version before to this one, one at a time, while jobs with checkpoints run all the
// time. Nothing is lost or run twice, what ran before a restart goes on under the new agent, and what is new can be used once the
// last one is through, and no earlier.
func rollingUpgrade(t *testing.T, sig syscall.Signal) {
	old := oldBinary(t)
	l := newLab(t)
	now := l.exe
	l.exe = old
	l.found("a", "b", "c")
	l.exe = now // commands are of the new version throughout
	leader := l.leader()
	nodes := append(l.others(leader), leader)
	if sig == syscall.SIGTERM {
		slices.Reverse(nodes)
	}
	load := l.underLoad(nodes, sig)
	for i, n := range nodes {
		load.more(2) // in each phase
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
	load.more(2)
	load.end()
	l.checkDowngrade(nodes[0], nodes[2], old)
}

// mixed checks what a cluster in the middle of an upgrade says and refuses; last: it is through.
func (l *lab) mixed(any, n *member, last bool) {
	l.t.Helper()
	if last { // the leader has heard of it
		v := &task.ClusterView{}
		l.waitFor(60*time.Second, "the cluster is upgraded", func() bool { v = l.status(any); return v.Level == 3 })
		if len(v.HeldBackBy) != 0 {
			l.t.Errorf("status of an upgraded cluster: level %d, held back by %v", v.Level, v.HeldBackBy)
		}
	}
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
}

// submitNew hands in a job that uses what the version before does not know, until somebody leads who can answer.
func (l *lab) submitNew(via, n *member) (status int, answer []byte) {
	l.t.Helper()
	id := l.submit(via, l.file("plain-"+n.name, "", "say start"))
	var spec task.Spec
	l.waitFor(60*time.Second, "its spec can be read", func() bool {
		code, text := l.http(via, "GET", "/v1/jobs/"+id+"/spec?format=json", nil, nil)
		return code == 200 && json.Unmarshal(text, &spec) == nil
	})
	spec.Name, spec.Stages[0].OnSleep = "new-"+n.name, task.OnSleepKeep
	body, err := json.Marshal(spec)
	if err != nil {
		l.t.Fatal(err)
	}
	head := http.Header{"Content-Type": {transport.ContentTypeSpec}, "Lanjobs-Request-Id": {"new-" + n.name}}
	l.waitFor(60*time.Second, "the job of the new version is answered", func() bool {
		status, answer = l.http(via, "POST", "/v1/jobs", head, body)
		return status != 0 && status != http.StatusServiceUnavailable
	})
	return status, answer
}

// workload is what runs during an upgrade.
type workload struct {
	l      *lab
	pinned map[string]string
	halt   func() // no further small jobs
	via    *member

	mu     sync.Mutex
	handed int      // small jobs that were handed in; they are called small-0, small-1 …
	small  []string // those of them that were accepted
}

// underLoad starts one job with checkpoints on each machine, and hands in small ones all the time.
func (l *lab) underLoad(nodes []*member, sig syscall.Signal) *workload {
	l.t.Helper()
	stop, done := make(chan struct{}), make(chan struct{})
	w := &workload{l: l, pinned: map[string]string{}, via: nodes[2], halt: sync.OnceFunc(func() { close(stop); <-done })}
	ttl := longLease // what stays with its guard keeps its lease, however long the exchange takes
	if sig == syscall.SIGTERM {
		ttl = time.Minute // what a slow machine does not give back in time goes on after it
	}
	for _, n := range nodes {
		name := "pinned-" + n.name
		w.pinned[name] = l.submit(n, l.file(name, lease(ttl)+"\nplacement: {require: [node="+n.name+"]}", steps))
		l.renewed(w.pinned[name], ttl)
	}
	l.t.Cleanup(w.halt)
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(300 * time.Millisecond):
			}
			via, file := nodes[i%len(nodes)], l.file(fmt.Sprintf("small-%d", i), lease(60*time.Second)+"\nretry: {attempts: 5}", "say start\nsay end\n")
			w.mu.Lock()
			w.handed++
			w.mu.Unlock()
			out, _, code := l.cli(via, file, "submit", "-", "-q", "--timeout", "60s", "--no-start") // else it would start a node itself while one is exchanged
			if code == 0 {                                                                          // acknowledged: from now on it must not be lost (I15)
				w.mu.Lock()
				w.small = append(w.small, strings.TrimSpace(out))
				w.mu.Unlock()
			}
		}
	}()
	return w
}

// more waits until so many further small jobs have been accepted.
func (w *workload) more(n int) {
	w.l.t.Helper()
	accepted := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.small)
	}
	before := accepted()
	w.l.waitFor(90*time.Second, fmt.Sprintf("%d further small jobs are accepted", n), func() bool { return accepted() >= before+n })
}

// end lets all of it finish and looks at what became of it.
func (w *workload) end() {
	l := w.l
	l.t.Helper()
	w.halt()
	for name, id := range w.pinned {
		l.open(name)
		l.ends(w.via, id, task.JobSucceeded, 60*time.Second)
		l.ledger.noOverlap(l.t, name)
	}
	for _, id := range w.small {
		l.ends(w.via, id, task.JobSucceeded, 60*time.Second)
	}
	for i := range w.handed {
		l.ledger.noOverlap(l.t, fmt.Sprintf("small-%d", i))
	}
	l.t.Logf("%d of %d small jobs were accepted", len(w.small), w.handed)
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
