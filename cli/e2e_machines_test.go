//go:build e2e && linux

package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"lanjobs/task"
)

// TestNetWorkerCut: a worker that loses the network in the middle of a shard stops it before its lease ends; the shard goes on
// elsewhere after its last acknowledged checkpoint, and the worker comes back by itself.
func TestNetWorkerCut(t *testing.T) {
	t.Parallel()
	l, w := lan(t)
	w.cluster()
	id := l.submit(l.nodes[0], l.file("cut", lease(shortLease), steps))
	on := l.node(l.starts("cut", 1, 20*time.Second)[0].node)
	l.waitFor(20*time.Second, "some checkpoints", func() bool { return l.ledger.count("cut", "saved") >= 5 })
	w.cut(on)
	l.starts("cut", 2, 60*time.Second)
	l.resumed("cut", on.name)
	l.ledger.noOverlap(t, "cut")
	if left := on.tasks(); len(left) > 0 {
		t.Errorf("processes %v of the cut task are alive", left)
	}
	w.heal(on)
	l.whole(60 * time.Second)
	l.open("cut")
	l.ends(on, id, task.JobSucceeded, 30*time.Second)
	l.ledger.noOverlap(t, "cut")
	l.ledger.oneStart(t, "cut", 2)
}

// TestNetLeaderCut: a leader that is cut off grants and expires nothing; the others elect one of themselves, running tasks stay,
// and it comes back as a follower (R19).
func TestNetLeaderCut(t *testing.T) {
	t.Parallel()
	l, w := lan(t)
	w.cluster()
	old := l.leader()
	other := l.others(old)[0]
	id := l.submit(other, l.file("stays", lease(longLease)+"\nshards: 2", untilGate))
	l.starts("stays", 2, 20*time.Second)
	l.renewed(id, longLease)
	w.cut(old)
	next := l.submit(other, l.file("new", lease(longLease), "say start"))
	l.ends(other, next, task.JobSucceeded, 40*time.Second)
	// Asked now, the old one says that it can change nothing.
	if _, _, code := l.cli(old, l.file("lost", "", "say start"), "submit", "-", "--timeout", "3s"); code != 6 && code != 8 {
		t.Errorf("a leader without a majority answered a submit with exit %d", code)
	}
	w.heal(old)
	l.whole(60 * time.Second)
	l.open("stays")
	l.ends(old, id, task.JobSucceeded, 30*time.Second)
	l.ledger.oneStart(t, "stays", 2)
	l.ledger.oneStart(t, "new", 1)
	if lost := l.events(other, id, "lease.expire"); len(lost) > 0 {
		t.Errorf("expired: %+v", lost)
	}
}

// TestNetOneWay: packets that pass in one direction only never lead to two believers, whoever is half cut off.
func TestNetOneWay(t *testing.T) {
	t.Parallel()
	l, w := lan(t)
	w.cluster()
	for i, c := range []struct {
		name string
		cut  func(*member)
	}{{"deaf", w.deafen}, {"mute", w.mute}} {
		// Half of a worker first.
		id := l.submit(l.nodes[0], l.file(c.name, lease(shortLease), steps))
		on := l.node(l.starts(c.name, 1, 20*time.Second)[0].node)
		l.waitFor(20*time.Second, "a checkpoint", func() bool { return l.ledger.count(c.name, "saved") >= 3 })
		c.cut(on)
		l.starts(c.name, 2, 60*time.Second)
		l.resumed(c.name, on.name)
		w.heal(on)
		l.open(c.name)
		l.ends(l.nodes[0], id, task.JobSucceeded, 40*time.Second)
		l.ledger.noOverlap(t, c.name)
		l.whole(60 * time.Second)
		// Then half of the leader: the others go on without it.
		old := l.leader()
		other := l.others(old)[i%2]
		c.cut(old)
		name := c.name + "lead"
		next := l.submit(other, l.file(name, lease(longLease), "say start"))
		l.ends(other, next, task.JobSucceeded, 60*time.Second)
		w.heal(old)
		l.whole(60 * time.Second)
		l.ledger.oneStart(t, name, 1)
	}
}

// TestNetNewAddress: a machine that comes back at another address is reached with no change of any configuration, also the leader,
// also without a restart (R2, C37).
func TestNetNewAddress(t *testing.T) {
	t.Parallel()
	l, w := lan(t)
	w.cluster()
	id := l.submit(l.nodes[0], l.file("undisturbed", lease(longLease)+"\nshards: 2", untilGate))
	l.starts("undisturbed", 2, 20*time.Second)
	for i, n := range []*member{l.leader(), l.nodes[1], l.nodes[2]} {
		l.renewed(id, longLease) // as after the hours between two such moves
		w.move(n, w.addr(11+i))
		l.leads(30 * time.Second)
		l.whole(60 * time.Second)
		addr := w.addr(11 + i).String()
		l.waitFor(30*time.Second, "the others know the new address", func() bool {
			for _, seen := range l.status(l.others(n)[0]).Nodes {
				if seen.Name == n.name && len(seen.Addresses) > 0 && seen.Addresses[0] == fmt.Sprintf("%s:%d", addr, l.port) {
					return true
				}
			}
			return false
		})
	}
	l.open("undisturbed")
	l.ends(l.nodes[0], id, task.JobSucceeded, 40*time.Second)
	l.ledger.oneStart(t, "undisturbed", 2)
}

// renewed waits until all leases of a job have nearly their whole length.
func (l *lab) renewed(id string, ttl time.Duration) {
	l.t.Helper()
	l.waitFor(30*time.Second, "leases are renewed", func() bool {
		for _, n := range l.nodes {
			shards := l.shards(n, id)
			fresh := len(shards) > 0
			for _, s := range shards {
				fresh = fresh && s.LeaseSeconds != nil && *s.LeaseSeconds > 0.85*ttl.Seconds()
			}
			if fresh {
				return true
			}
		}
		return false
	})
}

// leads waits for a leader that can commit.
func (l *lab) leads(limit time.Duration) {
	l.t.Helper()
	l.waitFor(limit, "somebody leads", func() bool {
		for _, n := range l.nodes {
			if v := l.status(n); v.LeaderName != "" && v.Health != "no_leader" {
				return true
			}
		}
		return false
	})
}

// TestNetAllMoved: all machines come back at new addresses at once, none of which was anybody's before. They are on one LAN and
// find each other (R2, C37).
func TestNetAllMoved(t *testing.T) {
	t.Parallel()
	l, w := lan(t)
	w.cluster()
	id := l.submit(l.nodes[0], l.file("kept", lease(longLease)+"\nplacement: {require: [gpu=true]}", "say start"))
	l.terminateAll()
	for i, n := range l.nodes {
		w.move(n, w.addr(21+i))
		n.flags = append(n.flags, "--label", "gpu=true")
		n.restart()
	}
	l.whole(60 * time.Second)
	l.ends(l.nodes[2], id, task.JobSucceeded, 30*time.Second)
	l.ledger.oneStart(t, "kept", 1)
}

func (l *lab) terminateAll() {
	done := make(chan struct{})
	for _, n := range l.nodes {
		go func() { n.kill(15); done <- struct{}{} }()
	}
	for range l.nodes {
		<-done
	}
}

// TestNetSwappedAddresses: two machines that come back at each other's addresses are not taken for each other (C37).
func TestNetSwappedAddresses(t *testing.T) {
	t.Parallel()
	l, w := lan(t)
	w.cluster()
	a, b := l.nodes[0], l.nodes[1]
	ids := map[string]task.NodeID{}
	for _, n := range l.nodes {
		ids[n.name] = l.status(n).Self
	}
	id := l.submit(l.nodes[2], l.file("through", lease(longLease), untilGate))
	l.starts("through", 1, 20*time.Second)
	l.renewed(id, longLease)
	w.move(a, w.addr(99)) // out of the way, so that no address is there twice
	w.move(b, w.addr(1))
	w.move(a, w.addr(2))
	l.whole(90 * time.Second)
	for _, n := range l.nodes {
		for _, seen := range l.status(n).Nodes {
			if ids[seen.Name] != seen.ID {
				t.Errorf("%s takes %s for %s", n.name, seen.ID, seen.Name)
			}
		}
	}
	// And each runs what is meant for it.
	for _, n := range l.nodes {
		name := "on-" + n.name
		job := l.submit(l.nodes[2], l.file(name, lease(longLease)+"\nplacement: {require: [node="+n.name+"]}", "say start"))
		l.ends(l.nodes[2], job, task.JobSucceeded, 30*time.Second)
		if s := l.ledger.of(name, "start"); len(s) != 1 || s[0].node != n.name {
			t.Errorf("the job for %s ran as %+v", n.name, s)
		}
	}
	l.open("through")
	l.ends(l.nodes[2], id, task.JobSucceeded, 40*time.Second)
	l.ledger.oneStart(t, "through", 1)
}

// TestNetBootClocks: boot clocks of the machines are years apart, as uptimes are; leases do not notice (I9).
func TestNetBootClocks(t *testing.T) {
	t.Parallel()
	l, w := lan(t)
	for i, name := range []string{"a", "b", "c"} {
		n := w.host(name)
		offset := fmt.Sprint(1 + i*100_000_000)
		n.wrap = append(n.wrap, "unshare", "-T", "--boottime", offset, "--")
		if out, err := exec.Command("unshare", "-T", "--boottime", offset, "--", "true").CombinedOutput(); err != nil {
			t.Skipf("no time namespaces here: %s", out)
		}
	}
	l.start()
	l.movesOnce("uptimes", shortLease)
}

// movesOnce lets a job run calmly for a while, then takes its machine away and sees it go on elsewhere.
func (l *lab) movesOnce(job string, ttl time.Duration) {
	l.t.Helper()
	id := l.submit(l.nodes[0], l.file(job, lease(ttl), steps))
	on := l.node(l.starts(job, 1, 30*time.Second)[0].node)
	l.renewedFor(l.nodes[0], id, 1, ttl.Milliseconds()*5/4)
	l.saved(job, 5)
	if n := l.ledger.count(job, "start"); n != 1 {
		l.t.Errorf("%d starts without any fault", n)
	}
	on.poweroff()
	l.starts(job, 2, 60*time.Second)
	l.resumed(job, on.name)
	l.ledger.noOverlap(l.t, job)
	l.open(job)
	l.ends(l.others(on)[0], id, task.JobSucceeded, 40*time.Second)
}

// TestNetWallClocks: wall clocks days apart, one of them moving while it runs, change no decision (R3, I8).
func TestNetWallClocks(t *testing.T) {
	t.Parallel()
	l, w := lan(t)
	skew := buildSkew(t, l.dir)
	for i, name := range []string{"a", "b", "c"} {
		n := w.host(name)
		file := filepath.Join(l.dir, name+".clock")
		l.write(file, fmt.Sprintf("%d\n", []int{0, -3 * 86400, 5 * 86400}[i]))
		n.wrap = append(n.wrap, skew, file)
	}
	l.start()
	l.write(filepath.Join(l.dir, "a.clock"), "400000000\n")
	l.movesOnce("dates", 2*shortLease) // a traced program is slow
}

// buildSkew compiles the tracer that gives a process tree a wall clock of its own.
func buildSkew(t *testing.T, dir string) string {
	t.Helper()
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("clocks of processes are shifted by a program in C: no compiler here")
	}
	source, err := filepath.Abs(filepath.Join("..", "testdata", "skew.c"))
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "skew")
	if out, err := exec.Command(cc, "-O1", "-o", exe, source).CombinedOutput(); err != nil {
		t.Skipf("the clock tracer does not build here: %s", out)
	}
	file := filepath.Join(dir, "clock")
	if err := os.WriteFile(file, []byte("0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command(exe, file, "true").Run(); err != nil {
		t.Skipf("tracing is not allowed here: %v", err)
	}
	return exe
}
