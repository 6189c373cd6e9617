//go:build e2e && linux

package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
)

// notices is what a node's status says about its own machine.
func (l *lab) notices(n *member) string { return strings.Join(l.status(n).Notices, "\n") }

// says waits until a node's status says something about its own machine.
func (l *lab) says(n *member, limit time.Duration, words string) {
	l.t.Helper()
	l.waitFor(limit, fmt.Sprintf("status on %s says %q", n.name, words), func() bool { return strings.Contains(l.notices(n), words) })
}

// logged reports whether a node's log has some words.
func (n *member) logged(words string) bool {
	text, _ := os.ReadFile(n.log)
	return strings.Contains(string(text), words)
}

// readies waits until a node sees so many machines ready and three voters, all of them answering.
func (l *lab) readies(n *member, want int, limit time.Duration) {
	l.t.Helper()
	l.waitFor(limit, fmt.Sprintf("%s sees %d ready machines", n.name, want), func() bool {
		v := l.status(n)
		return v.Health == "healthy" && l.ready(v) == want && len(v.Nodes) == want && v.Voters == min(want|1, 3)
	})
}

// TestProcRemoved: a machine that was removed from afar is shut out at once, stops what it runs and its Raft long before its lease
// ends, says what happened and what to type, and comes back as a new member by just that.
func TestProcRemoved(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	out := l.others(l.leader())[0]
	stay := l.others(out)
	was := l.status(out).Self
	l.submit(stay[0], l.file("ends", lease(longLease)+"\nplacement: {require: [node="+out.name+"]}", untilGate))
	l.starts("ends", 1, 20*time.Second)
	l.must(stay[0], "node", "rm", out.name, "--yes")
	l.says(out, 10*time.Second, "This machine was removed from \"home\"")
	if text := l.notices(out); !strings.Contains(text, "lanjobs join MACHINE --replace") {
		t.Errorf("status does not say what to type: %s", text)
	}
	l.waitFor(20*time.Second, "what ran there is stopped", func() bool { return len(out.tasks()) == 0 })
	if !out.logged("This machine was removed") {
		t.Error("its log does not say so")
	}
	if _, diag, code := l.cli(out, l.file("no", "", "say start"), "submit", "-"); code == 0 || !strings.Contains(diag, "was removed") {
		t.Errorf("a submit there: exit %d %s", code, diag)
	}
	l.waitFor(30*time.Second, "the others go on without it", func() bool {
		v := l.status(stay[1])
		return v.Health == "healthy" && len(v.Nodes) == 2 && v.Voters == 1
	})
	token := filepath.Join(l.dir, "again")
	if err := os.WriteFile(token, []byte(l.must(stay[0], "token", "create", "-q")), 0o600); err != nil {
		t.Fatal(err)
	}
	out.spawn("join", stay[0].peer, "--foreground", "--replace", "--token-file", token, "--node-name", out.name, "--listen", out.listen)
	l.readies(stay[0], 3, 60*time.Second)
	l.waitFor(20*time.Second, "it is a new member", func() bool { v := l.status(out); return v.Health == "healthy" && v.Self != was && len(v.Notices) == 0 })
}

// TestProcRemovedWhileAway: a machine that was removed while it was off is told by the first member that it calls.
func TestProcRemovedWhileAway(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	out := l.others(l.leader())[0]
	stay := l.others(out)
	out.kill(syscall.SIGKILL)
	l.waitFor(30*time.Second, "it is missed", func() bool { return l.status(stay[0]).Health == "degraded" })
	l.must(stay[0], "node", "rm", out.name, "--yes")
	out.restart()
	l.says(out, 30*time.Second, "This machine was removed from \"home\", says")
	l.waitFor(10*time.Second, "its Raft has ended", func() bool { return out.logged("removed") && l.status(out).Health == "no_leader" })
	l.waitFor(30*time.Second, "the others go on without it", func() bool {
		v := l.status(stay[1])
		return v.Health == "healthy" && len(v.Nodes) == 2
	})
}

// copyOf copies a node's data folder, and gives the copy another address of the same machine. whole: as if the machine had been
// copied with it, so that the place of the folder says nothing.
func (l *lab) copyOf(n *member, name, listen string, whole bool) *member {
	l.t.Helper()
	c := l.add(name, listen)
	if out, err := exec.Command("cp", "-r", n.dir, c.dir).CombinedOutput(); err != nil {
		l.t.Logf("cp: %s", out) // sockets do not copy
	}
	if !whole {
		return c
	}
	file := filepath.Join(c.dir, "identity.json")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, bytes.Replace(text, []byte(strconv.Quote(n.dir)), []byte(strconv.Quote(c.dir)), 1), 0o600)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

// TestProcCopiedFolder: a copy of a data folder that is started beside its original is refused before it takes part in anything,
// and both machines say so plainly (C39).
func TestProcCopiedFolder(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	n := l.others(l.leader())[0]
	id := l.submit(n, l.file("undisturbed", lease(longLease)+"\nplacement: {require: [node="+n.name+"]}", untilGate))
	l.starts("undisturbed", 1, 20*time.Second)
	c := l.copyOf(n, "copy", fmt.Sprintf("127.0.0.9:%d", l.port), true)
	c.restart()
	select {
	case <-c.gone:
	case <-time.After(patience):
		t.Fatal("the copy runs")
	}
	if !c.logged("Another machine runs as this node") || !c.logged(n.listen) || !c.logged("lanjobs join MACHINE --replace") {
		t.Error("the copy does not say why it ended")
	}
	l.says(n, 10*time.Second, fmt.Sprintf("A copy of this machine's data folder was started at 127.0.0.9:%d", l.port))
	l.open("undisturbed")
	l.ends(n, id, task.JobSucceeded, 30*time.Second)
	l.ledger.oneStart(t, "undisturbed", 1)
	// Itself it may end and start as often as it likes.
	n.kill(syscall.SIGKILL)
	n.restart()
	l.readies(n, 3, 60*time.Second)
}

// TestProcCopyOfTheOnlyMachine: where nobody else could notice, a copy beside its original is refused all the same.
func TestProcCopyOfTheOnlyMachine(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.found("a")
	n := l.nodes[0]
	c := l.copyOf(n, "copy", fmt.Sprintf("127.0.0.9:%d", l.port), false)
	c.restart()
	<-c.gone
	if !c.logged("this data folder is a copy: "+c.dir) || !c.logged("If "+n.dir+" is given up") {
		t.Error("the copy does not say why it ended")
	}
	if v := l.status(n); v.Health != "healthy" {
		t.Errorf("the original is %s", v.Health)
	}
}

// TestProcCopyMetLater: a copy that was started while its original could not be heard. When they meet, the one that came later
// stops, and both say so.
func TestProcCopyMetLater(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	n := l.others(l.leader())[0]
	other := l.others(n)[0]
	n.freeze()
	l.waitFor(30*time.Second, "the original is silent", func() bool { return l.status(other).Health == "degraded" })
	c := l.copyOf(n, "copy", fmt.Sprintf("127.0.0.9:%d", l.port), true)
	c.restart()
	l.waitFor(60*time.Second, "the copy is taken for it", func() bool { return l.status(other).Health == "healthy" })
	n.thaw()
	l.says(c, 60*time.Second, "Another machine runs as this node")
	l.says(n, 60*time.Second, "A copy of this machine's data folder")
	l.waitFor(30*time.Second, "the cluster goes on", func() bool {
		v := l.status(other)
		return v.LeaderName != "" && v.Voters == 3
	})
}

// TestProcLostLog: a machine whose log of the cluster is gone does not vote under its old name: it comes back by itself as a new
// member and gets everything from the others (I15).
func TestProcLostLog(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	n := l.others(l.leader())[0]
	other := l.others(n)[0]
	id := l.submit(other, l.file("known", lease(longLease), "say start"))
	l.ends(other, id, task.JobSucceeded, 30*time.Second)
	was := l.status(n).Self
	n.kill(syscall.SIGKILL)
	if err := os.Truncate(filepath.Join(n.dir, "raft", "raft.db"), 0); err != nil {
		t.Fatal(err)
	}
	n.restart()
	l.says(n, 30*time.Second, "log of the cluster was lost")
	l.readies(other, 3, 60*time.Second)
	l.readies(n, 3, 30*time.Second)
	if v := l.status(n); v.Self == was || v.SelfName != n.name {
		t.Errorf("it came back as %s (%s), it was %s", v.Self, v.SelfName, was)
	}
	if _, err := os.Stat(filepath.Join(n.dir, "raft.lost-1", "raft.db")); err != nil {
		t.Errorf("what was left of the log is not kept: %v", err)
	}
	if j := l.job(n, id); j.State != task.JobSucceeded {
		t.Errorf("it shows the job as %q", j.State)
	}
	// The next start is an ordinary one.
	n.kill(syscall.SIGKILL)
	n.restart()
	l.waitFor(30*time.Second, "it starts as what it became", func() bool { v := l.status(n); return v.Health == "healthy" && len(v.Notices) == 0 })
}
