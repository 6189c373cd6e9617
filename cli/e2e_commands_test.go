//go:build e2e && linux

package cli_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
)

// want fails unless a command ends with a code and its output holds the words.
func (l *lab) want(n *member, code int, words string, args ...string) string {
	l.t.Helper()
	out, diag, got := l.cli(n, "", args...)
	if got != code || !strings.Contains(out+diag, words) {
		l.t.Errorf("lanjobs %s: exit %d, want %d and %q\n%s%s", strings.Join(args, " "), got, code, words, out, diag)
	}
	return out
}

// TestProcWithoutANode: with no node on the machine, run does the job in its own process and nothing is left of it; submit starts a
// node in the background.
func TestProcWithoutANode(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	n := &member{lab: l, name: "alone", dir: filepath.Join(l.dir, "alone")}
	l.want(n, 3, "no node is running on this machine", "status")
	file := filepath.Join(l.dir, "job.yaml")
	l.write(file, l.file("inside", "shards: 3", "say start; echo \"out $LANJOBS_SHARD\"; say end"))
	if out := l.want(n, 0, "", "run", file); strings.Count(out, "out ") != 3 {
		t.Errorf("output %q", out)
	}
	l.ledger.oneStart(t, "inside", 3)
	l.write(file, l.file("bad", "retry: {attempts: 1}", "say start; exit 5"))
	l.want(n, 1, "exit 5", "run", file)
	l.want(n, 0, "a b|$HOME", "run", "--", "printf", "%s|%s", "a b", "$HOME")
	l.waitFor(10*time.Second, "nothing is left of it", func() bool { return len(l.processes(n.dir)) == 0 })

	l.write(file, l.file("waited", lease(longLease), untilGate))
	l.want(n, 3, "", "submit", "--no-start", file)
	id := strings.TrimSpace(l.want(n, 0, "", "submit", file))
	l.want(n, 0, "this machine only", "status")
	l.starts("waited", 1, 20*time.Second)
	l.open("waited")
	l.ends(n, id, task.JobSucceeded, 20*time.Second)
	// What the job inside the process left is history of this machine, too.
	l.want(n, 0, "waited", "ls")
	l.want(n, 0, "", "leave", "-y")
	l.waitFor(10*time.Second, "the node has ended", func() bool { return len(l.processes(n.dir)) == 0 })
}

// TestProcCommands is a walk through the daily commands on three nodes, each asked at another one.
func TestProcCommands(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	a, b, c := l.nodes[0], l.nodes[1], l.nodes[2]
	file := filepath.Join(l.dir, "job.yaml")
	l.write(file, l.file("good", lease(longLease)+"\nshards: 2", `say start; echo "one $LANJOBS_SHARD"; echo "two $LANJOBS_SHARD" >&2`))
	out, diag, code := l.cli(b, "", "submit", file, "--wait")
	id := strings.TrimSpace(out)
	if code != 0 || len(id) != 7 || !strings.Contains(diag, "2/2 done") {
		t.Errorf("submit --wait: exit %d, %q, %s", code, out, diag)
	}
	for _, n := range l.nodes { // each of them has heard of it by then
		l.becomes(n, id, task.JobSucceeded)
	}
	l.want(a, 0, "succeeded", "show", "good")
	l.want(c, 0, "good", "ls", "--state", "succeeded")
	for _, n := range l.nodes {
		if out := l.want(n, 0, "one 1", "logs", id); strings.Count(out, "one ") != 2 {
			t.Errorf("logs on %s: %q", n.name, out)
		}
		l.want(n, 0, "lease.grant", "events", "--job", id, "--audit")
	}
	l.want(a, 5, "no job", "show", "nonsense")

	// A job that fails is dead after its attempts, and retry gives it new ones.
	l.write(file, l.file("picky", lease(longLease)+"\nretry: {attempts: 2, initial: 100ms}", `say start; test -e "$GATE" || { echo sorry >&2; exit 3; }`))
	l.want(c, 1, "", "submit", file, "--wait")
	if n := l.ledger.count("picky", "start"); n != 2 {
		t.Errorf("%d attempts, 2 are allowed", n)
	}
	l.becomes(a, "picky", task.JobFailed)
	l.becomes(b, "picky", task.JobFailed)
	l.want(a, 0, "exit 3", "show", "picky", "--attempts")
	l.want(b, 0, "picky", "ls", "--dead")
	l.open("picky")
	l.want(b, 0, "", "retry", "picky")
	l.becomes(a, "picky", task.JobSucceeded)

	// Cancel from another machine; the task hears SIGTERM and why.
	l.submit(a, l.file("long", lease(longLease), "trap 'say stopped $(cat \"$LANJOBS_STOP\"); exit 0' TERM\nsay start\nwhile :; do sleep 0.1; done"))
	l.starts("long", 1, 20*time.Second)
	l.want(c, 0, "", "cancel", "long", "--reason", "too hot")
	l.ends(b, "long", task.JobCancelled, 20*time.Second)
	if s := l.ledger.of("long", "stopped"); len(s) != 1 || s[0].note != "cancel" {
		t.Errorf("the task heard %+v", s)
	}

	// Drain moves the work, with its checkpoint; resume brings the node back.
	id = l.submit(a, l.file("moves", lease(longLease), steps))
	first := l.starts("moves", 1, 20*time.Second)[0]
	l.waitFor(20*time.Second, "a checkpoint", func() bool { return l.ledger.count("moves", "saved") > 1 })
	l.want(a, 0, "gets nothing new", "node", "drain", first.node, "--wait", "--reason", "new disk")
	l.starts("moves", 2, 20*time.Second)
	l.resumed("moves", first.node)
	l.waitFor(20*time.Second, "b knows that it is draining", func() bool { return l.state(b, first.node).State == "draining" })
	l.want(b, 0, "draining", "node", "ls")
	l.want(b, 0, "takes work again", "node", "resume", first.node)
	l.open("moves")
	l.ends(a, id, task.JobSucceeded, 20*time.Second)
	l.ledger.noOverlap(t, "moves")
}

// TestProcLeave: a node that leaves gives its work back at once, hands leadership over, and is a stranger from then on.
func TestProcLeave(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	id := l.submit(l.nodes[0], l.file("handed", lease(longLease), steps))
	on := l.node(l.starts("handed", 1, 20*time.Second)[0].node)
	l.waitFor(20*time.Second, "a checkpoint", func() bool { return l.ledger.count("handed", "saved") > 1 })
	old := l.leader()
	rest := l.others(on)
	l.want(on, 0, "has left", "leave", "-y")
	l.starts("handed", 2, 20*time.Second) // at once: its lease would have lasted longer than this waits
	l.resumed("handed", on.name)
	l.ledger.noOverlap(t, "handed")
	l.open("handed")
	l.ends(rest[0], id, task.JobSucceeded, 20*time.Second)
	l.want(on, 3, "", "status")
	l.waitFor(30*time.Second, "the cluster counts two", func() bool { v := l.status(rest[0]); return v.Health == "healthy" && l.ready(v) == 2 })
	// The leader goes, too: the last machine goes on alone.
	if old == on {
		old = l.leader()
	}
	last := l.others(on, old)[0]
	l.want(old, 0, "has left", "leave", "-y")
	id = l.submit(last, l.file("alone", lease(longLease), "say start"))
	l.ends(last, id, task.JobSucceeded, 30*time.Second)
}

// TestProcOrderlyStop: SIGTERM gives the work back at once (R7), and the node takes part again after its restart.
func TestProcOrderlyStop(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	id := l.submit(l.nodes[0], l.file("given", lease(longLease), steps))
	on := l.node(l.starts("given", 1, 20*time.Second)[0].node)
	l.waitFor(20*time.Second, "a checkpoint", func() bool { return l.ledger.count("given", "saved") > 1 })
	on.kill(syscall.SIGTERM)
	l.starts("given", 2, 20*time.Second)
	l.resumed("given", on.name)
	on.restart()
	l.open("given")
	l.ends(on, id, task.JobSucceeded, 40*time.Second)
	l.ledger.noOverlap(t, "given")
	if as := l.attempts(on, id); len(as) != 2 || as[0].Counted {
		t.Errorf("attempts %s: a node's leaving uses up no attempt", fmt.Sprintf("%+v", as))
	}
}
