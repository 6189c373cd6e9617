//go:build e2e && linux

package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// state is what the cluster says of a machine.
func (l *lab) state(door *member, name string) task.NodeView {
	for _, n := range l.status(door).Nodes {
		if n.Name == name {
			return n
		}
	}
	return task.NodeView{}
}

// counted waits until the current start of a machine is the cluster's newest of it, by the number of its registrations.
func (l *lab) counted(door *member, name string, starts int) {
	l.t.Helper()
	l.waitFor(60*time.Second, name+" has registered again", func() bool {
		n := 0
		for _, e := range l.nodeEvents(door, name, "node.register") {
			if e.Reason == "" {
				n++
			}
		}
		return n >= starts
	})
}

func (l *lab) nodeEvents(door *member, name, kind string) []task.Event {
	out, _, _ := l.cli(door, "", "events", "--node", name, "--kind", kind, "-o", "json")
	var all []task.Event
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var e task.Event
		if d.Decode(&e) != nil {
			return all
		}
		all = append(all, e)
	}
}

// TestProcUnstable: a machine whose agent is killed three times in a row gets nothing new until a person clears it (R45); joining,
// and ends that somebody asked for, do not count, and what runs goes on.
func TestProcUnstable(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	door, c := l.nodes[0], l.nodes[2]
	starts := len(l.nodeEvents(door, "c", "node.register"))
	again := func(sig syscall.Signal) {
		t.Helper()
		c.kill(sig)
		c.restart()
		starts++
		l.counted(door, "c", starts)
	}
	again(syscall.SIGKILL)
	again(syscall.SIGKILL)
	again(syscall.SIGTERM) // told to: the two before count no more
	again(syscall.SIGKILL)
	again(syscall.SIGKILL)
	l.waitFor(60*time.Second, "it is ready after two crashes in a row", func() bool { return l.state(door, "c").State == "ready" })
	runs := l.submit(door, l.file("runs", lease(longLease)+"\nplacement: {require: [node=c]}", untilGate))
	l.starts("runs", 1, 30*time.Second)
	l.renewed(runs, longLease)
	again(syscall.SIGKILL)
	if n := l.state(door, "c"); n.State != "unstable" || n.Note != "crashed 3 times in a row; nothing new until: lanjobs node clear c" {
		t.Fatalf("after three: %+v", n)
	}
	if es := l.nodeEvents(door, "c", "node.unstable"); len(es) != 1 {
		t.Errorf("events: %+v", es)
	}
	l.open("runs")
	l.ends(door, runs, task.JobSucceeded, 30*time.Second)
	l.ledger.oneStart(t, "runs", 1)

	only := l.submit(door, l.file("only", "placement: {require: [node=c]}", "say start"))
	var why task.List[transport.WhyView]
	l.waitFor(20*time.Second, "it says why it waits", func() bool { return l.ask(door, &why, "show", only, "--why") && len(why.Items) > 0 })
	found := false
	for _, w := range why.Items {
		found = found || w.Node == "c" && w.Why == "crashed 3 times in a row: it gets nothing new" && w.Fix == "lanjobs node clear c"
	}
	if !found {
		t.Errorf("why: %+v", why.Items)
	}
	again(syscall.SIGTERM)
	if n := l.state(door, "c"); n.State != "unstable" {
		t.Errorf("a restart in order lifts it: %+v", n)
	}
	if n := l.ledger.count("only", "start"); n != 0 {
		t.Fatal("an unstable machine got work")
	}
	l.must(door, "node", "clear", "c")
	l.ends(door, only, task.JobSucceeded, 30*time.Second)
	l.waitFor(60*time.Second, "it is ready again", func() bool { return l.state(door, "c").State == "ready" })
}

// TestProcAloneUnstable: becoming a cluster is no crash, though the node is built anew.
func TestProcAloneUnstable(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	n := l.add("solo", "127.0.0.1:0")
	n.listen = ""
	n.spawn("serve", "--node-name", "solo")
	up := func() {
		t.Helper()
		l.waitFor(30*time.Second, "it runs", func() bool { return l.status(n).Health == "healthy" })
	}
	up()
	for range 2 {
		n.kill(syscall.SIGKILL)
		n.spawn("serve", "--node-name", "solo")
		up()
	}
	port := freePort(t)
	l.must(n, "init", "--name", "home", "--listen", fmt.Sprintf("127.0.0.1:%d", port))
	l.waitFor(30*time.Second, "the cluster", func() bool { v := l.status(n); return v.Name == "home" && v.Health == "healthy" })
	for range 2 {
		n.kill(syscall.SIGKILL)
		n.spawn("serve", "--node-name", "solo")
		up()
	}
	l.waitFor(60*time.Second, "it is ready", func() bool { return l.state(n, "solo").State == "ready" })
	n.kill(syscall.SIGKILL)
	n.spawn("serve", "--node-name", "solo")
	up()
	l.waitFor(20*time.Second, "three in a row", func() bool { return l.state(n, "solo").State == "unstable" })
}
