//go:build e2e && linux

package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// survey is what a node finds out about who is left.
func (l *lab) survey(n *member) *transport.RecoverView {
	v := &transport.RecoverView{}
	l.ask(n, v, "recover", "--dry-run")
	return v
}

// holds reads for a file in a node's folder.
func (n *member) holds(name string) bool {
	_, err := os.Stat(filepath.Join(n.dir, name))
	return err == nil
}

// TestProcLostQuorum: two of three voters are lost. The third goes on alone when a person says so and not before; what it ran
// goes on under its lease; the others, come back, take part under their old names with nothing of their old log, and their tasks
// of before are stopped. Tokens grow over all of it (I3).
func TestProcLostQuorum(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	stay := l.others(l.leader())[0]
	lost := l.others(stay)
	if out, diag, code := l.cli(stay, "", "recover", "--yes", "--cluster", "home"); code != 7 || !strings.Contains(diag, "has a leader") || !strings.Contains(diag, "nothing is lost") {
		t.Fatalf("recover on a healthy cluster: exit %d\n%s%s", code, out, diag)
	}
	here := l.submit(stay, l.file("here", lease(longLease)+"\nplacement: {require: [node="+stay.name+"]}", steps))
	there := l.submit(stay, l.file("there", lease(20*time.Second)+"\nplacement: {require: [node="+lost[0].name+"]}\nretry: {attempts: 3}", steps))
	l.saved("here", 3)
	l.saved("there", 3)
	l.renewed(here, longLease)
	for _, n := range lost {
		n.poweroff()
	}
	l.waitFor(30*time.Second, "no leader", func() bool { return l.status(stay).Health == "no_leader" })
	if _, diag, code := l.cli(stay, "", "recover", "--yes"); code != 2 || !strings.Contains(diag, "--cluster home") {
		t.Errorf("--yes without the name: exit %d %s", code, diag)
	}
	if _, diag, code := l.cli(stay, "home\n", "recover"); code != 2 {
		t.Errorf("the name without a terminal: exit %d %s", code, diag)
	}
	if _, diag, code := l.cli(stay, "", "recover", "--yes", "--cluster", "hoome"); code != 5 {
		t.Errorf("another name: exit %d %s", code, diag)
	}
	before := l.ledger.of("here", "start")
	l.must(stay, "recover", "--yes", "--cluster", "home")
	l.waitFor(20*time.Second, "it leads alone", func() bool { v := l.status(stay); return v.Health == "healthy" && v.Voters == 1 })
	if v := l.survey(stay); v.Generation != 2 {
		t.Errorf("generation %d", v.Generation)
	}
	saved := l.ledger.count("here", "saved")
	l.saved("here", saved+3)
	if starts := l.ledger.of("here", "start"); len(starts) != len(before) {
		t.Errorf("what ran was started again: %v", starts)
	}
	for _, n := range lost {
		n.restart()
	}
	l.readies(stay, 3, 60*time.Second)
	for _, n := range lost {
		if !n.logged("it goes over to the later history") || !n.holds("raft.lost-1") || !n.holds("audit.generation-1") {
			t.Errorf("%s has not gone over with its log set aside", n.name)
		}
		l.waitFor(30*time.Second, n.name+" has nothing more to say", func() bool { return l.notices(n) == "" })
	}
	l.open("here")
	l.ends(stay, here, task.JobSucceeded, 30*time.Second)
	l.starts("there", 2, 60*time.Second) // its machine had the power cut; its lease ran out
	l.open("there")
	l.ends(stay, there, task.JobSucceeded, 60*time.Second)
	l.ledger.noOverlap(t, "there")
	l.ledger.oneStart(t, "here", 1)
	after := l.ledger.of("there", "start")
	if last := after[len(after)-1]; last.fence>>task.GenerationBits != 2 || last.note == "0" {
		t.Errorf("the later attempt has fence %d and began at %s", last.fence, last.note)
	}
	if out := l.must(stay, "events", "--kind", "cluster.init"); !strings.Contains(out, "generation 2: lost quorum, recovered on "+stay.name) {
		t.Errorf("the audit log does not have it:\n%s", out)
	}
}

// TestProcTwoRecoveries: both survivors of a cluster of three were recovered, each for itself. They never mix, and both say that
// there are two.
func TestProcTwoRecoveries(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	one, other := l.nodes[1], l.nodes[2]
	l.nodes[0].poweroff()
	other.kill(syscall.SIGTERM)
	l.waitFor(30*time.Second, "no leader", func() bool { return l.status(one).Health == "no_leader" })
	l.must(one, "recover", "--yes", "--cluster", "home")
	l.submit(one, l.file("first", "", "say start"))
	one.kill(syscall.SIGTERM)
	other.restart()
	l.waitFor(30*time.Second, "no leader", func() bool { return l.status(other).Health == "no_leader" })
	l.must(other, "recover", "--yes", "--cluster", "home")
	l.submit(other, l.file("second", "", "say start"))
	one.restart()
	l.waitFor(60*time.Second, "one of them has stopped", func() bool {
		return strings.Contains(l.notices(one)+l.notices(other), `What ran here is stopped`)
	})
	stays, job := one, "first"
	if strings.Contains(l.notices(one), "stopped") {
		stays, job = other, "second"
	}
	v := l.status(stays)
	l.waitFor(60*time.Second, stays.name+" leads", func() bool { v = l.status(stays); return v.Leader != "" && v.Leader == v.Self })
	if v.Voters != 1 || len(v.Jobs) != 1 || v.Jobs[0].Name != job || strings.Contains(l.notices(stays), "is stopped") {
		t.Errorf("%s: %d voters, led by %s, jobs %+v", stays.name, v.Voters, v.LeaderName, v.Jobs)
	}
	ended := l.others(stays)[0]
	if ended == l.nodes[0] {
		ended = l.others(stays)[1]
	}
	for _, n := range []*member{stays, ended} {
		l.says(n, 60*time.Second, `"home" exists twice`)
	}
	third := filepath.Join(l.dir, "third.yaml")
	l.write(third, l.file("third", "", "say start"))
	if _, diag, code := l.cli(ended, "", "submit", third, "--timeout", "5s"); code == 0 || !strings.Contains(diag, "exists twice") {
		t.Errorf("the one that has stopped takes a job: exit %d %s", code, diag)
	}
}

// TestProcOldMembersAllAtOnce: a cluster is restored on a machine that the old members have never heard of, and they are all switched on
// at once. They elect a leader in the old history, hear of the later one, and go over.
func TestProcOldMembersAllAtOnce(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	old := []*member{l.nodes[0], l.nodes[1], l.nodes[2]}
	pass, file := filepath.Join(l.dir, "pass"), filepath.Join(l.dir, "home.backup")
	l.write(pass, "four words make one\n")
	id := l.submit(old[0], l.file("night", lease(20*time.Second)+"\nretry: {attempts: 5}", steps))
	l.saved("night", 2)
	l.must(old[1], "backup", "save", "--out", file, "--passphrase-file", pass)
	for _, n := range old {
		n.poweroff()
	}
	d := l.add("d", fmt.Sprintf("127.0.0.9:%d", l.port))
	d.spawn("backup", "restore", file, "--passphrase-file", pass, "--node-name", "d", "--listen", d.listen, "--foreground")
	l.waitFor(30*time.Second, "it leads what was saved", func() bool { v := l.status(d); return v.Health == "healthy" && v.Leader == v.Self })
	for _, n := range old {
		n.restart()
	}
	for _, n := range old {
		l.waitFor(60*time.Second, n.name+" goes over", func() bool { return n.logged("it goes over to the later history") })
	}
	l.readies(d, 4, 60*time.Second)
	l.open("night")
	l.ends(d, id, task.JobSucceeded, 90*time.Second)
	// Until a machine hears of the other history, an attempt of each may run: tokens tell them apart, and only the later counts.
	if starts := l.ledger.of("night", "start"); starts[len(starts)-1].fence>>task.GenerationBits != 2 {
		t.Errorf("the last attempt has fence %d", starts[len(starts)-1].fence)
	}
	for _, n := range append(old, d) { // a machine looks every few seconds whether there are still two
		l.waitFor(30*time.Second, n.name+" has nothing to complain about", func() bool { return l.notices(n) == "" })
	}
}

// TestProcRestore: a backup brings the cluster back on a machine that never was in it. It is refused while the cluster lives and
// where a node is; old members come back by themselves, but not one that joined after the backup, which says so; tokens grow.
func TestProcRestore(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	a, b, c := l.nodes[0], l.nodes[1], l.nodes[2]
	pass := filepath.Join(l.dir, "pass")
	l.write(pass, "four words make one\n")
	id := l.submit(a, l.file("night", lease(20*time.Second)+"\nretry: {attempts: 5}", steps))
	l.must(a, "queue", "set", "video", "--max", "2")
	l.saved("night", 3)
	anna := l.login("anna", "admin", b, a)
	early := l.must(a, "token", "create", "-q", "--uses", "5")
	l.waitFor(20*time.Second, "b knows of both", func() bool {
		_, _, code := l.cli(b, "", "queue", "show", "video")
		return code == 0 && l.job(b, id).ID != ""
	})
	file := filepath.Join(l.dir, "home.backup")
	l.must(b, "backup", "save", "--out", file, "--passphrase-file", pass)
	if text, _ := os.ReadFile(file); strings.Contains(string(text), "PRIVATE KEY") || strings.Contains(string(text), l.ledger.path) {
		t.Error("the file holds the key or a job's environment in the clear")
	}
	var head transport.RestoreView
	if out := l.must(b, "backup", "show", file, "--check", "--passphrase-file", pass, "-o", "json"); json.Unmarshal([]byte(out), &head) != nil || head.Jobs != 1 || len(head.Machines) != 3 || len(head.Clients) != 1 || head.Tokens == 0 {
		t.Errorf("show: %s", out)
	}
	late := l.add("late", fmt.Sprintf("127.0.0.8:%d", l.port))
	token := filepath.Join(l.dir, "late-token")
	if err := os.WriteFile(token, []byte(l.must(a, "token", "create", "-q")), 0o600); err != nil {
		t.Fatal(err)
	}
	late.spawn("join", a.peer, "--foreground", "--token-file", token, "--node-name", "late", "--listen", late.listen)
	l.waitFor(60*time.Second, "four machines", func() bool { return l.ready(l.status(a)) == 4 })

	d := l.add("d", fmt.Sprintf("127.0.0.9:%d", l.port))
	restore := []string{"backup", "restore", file, "--passphrase-file", pass, "--node-name", "d", "--listen", d.listen}
	if _, diag, code := l.cli(d, "", restore...); code != 7 || !strings.Contains(diag, "lives and has a leader") || d.holds("identity.json") {
		t.Fatalf("a restore beside a living cluster: exit %d %s", code, diag)
	}
	if _, diag, code := l.cli(a, "", restore...); code != 7 || !strings.Contains(diag, "a node runs here") {
		t.Errorf("a restore over a node that runs: exit %d %s", code, diag)
	}
	for _, n := range []*member{a, b, c, late} {
		n.poweroff()
	}
	if _, diag, code := l.cli(a, "", restore...); code != 7 || !strings.Contains(diag, `belongs to "home"`) {
		t.Errorf("a restore over a node's data: exit %d %s", code, diag)
	}
	if _, diag, code := l.cli(d, "", "backup", "restore", file, "--passphrase-file", token); code != 4 || d.holds("identity.json") {
		t.Errorf("a wrong passphrase: exit %d %s", code, diag)
	}
	if _, diag, code := l.cli(d, "", append(restore, "--without", "nobody")...); code != 5 || !strings.Contains(diag, "It has: ") || d.holds("identity.json") {
		t.Errorf("a name that the backup does not have: exit %d %s", code, diag)
	}
	d.spawn(append(restore, "--foreground")...)
	l.waitFor(30*time.Second, "it leads what was saved", func() bool {
		v := l.status(d)
		return v.Health == "healthy" && v.Leader == v.Self && len(v.Jobs) == 1
	})
	if out := l.must(d, "queue", "show", "video"); !strings.Contains(out, "2") {
		t.Errorf("the queue: %s", out)
	}
	// What the backup has of tokens and clients is worth nothing any more: who was removed since is not to be let in again.
	if v := l.status(d); v.Name != "home" {
		t.Errorf("restored %+v", v)
	}
	if out := l.must(d, "client", "ls") + l.must(d, "token", "ls"); strings.Contains(out, "anna") {
		t.Errorf("still let in: %s", out)
	}
	l.person("finder").want(4, "", early, "login", d.peer, "--token-file", "-")
	// One after the other: two of three old voters at once would elect a leader of the old history before they hear of d.
	b.restart()
	l.waitFor(60*time.Second, "b goes over", func() bool { return b.logged("it goes over to the later history") })
	c.restart()
	l.waitFor(60*time.Second, "b and c are back and vote", func() bool { v := l.status(d); return v.Voters == 3 && v.Health == "healthy" })
	anna.want(4, "", "", "status", "--timeout", "10s") // she knows the addresses of b and c
	late.restart()
	l.says(late, 60*time.Second, "older than this machine's joining")
	l.starts("night", 2, 90*time.Second)
	l.open("night")
	l.ends(d, id, task.JobSucceeded, 60*time.Second)
	l.ledger.noOverlap(t, "night")
	starts := l.ledger.of("night", "start")
	if last := starts[len(starts)-1]; last.fence>>task.GenerationBits != 2 || last.note == "0" {
		t.Errorf("after the restore: fence %d, began at %q", last.fence, last.note)
	}
	// A new machine joins as ever.
	e := l.add("e", fmt.Sprintf("127.0.0.10:%d", l.port))
	if err := os.WriteFile(token, []byte(l.must(d, "token", "create", "-q")), 0o600); err != nil {
		t.Fatal(err)
	}
	e.spawn("join", d.peer, "--foreground", "--token-file", token, "--node-name", "e", "--listen", e.listen)
	l.waitFor(60*time.Second, "e has joined", func() bool {
		for _, n := range l.status(d).Nodes {
			if n.Name == "e" && n.State == "ready" {
				return true
			}
		}
		return false
	})
}
