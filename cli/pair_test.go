package cli

import (
	"strings"
	"testing"
	"testing/synctest"

	"lanjobs/node"
	"lanjobs/task"
	"lanjobs/transport"
)

func waiter() transport.PairingView {
	return transport.PairingView{Node: "n7", Name: "pc-win", OS: "windows", Arch: "amd64", Version: "1.4.0", Address: "192.168.1.23", AskedSeconds: 20}
}

func TestJoinByCode(t *testing.T) { synctest.Test(t, testJoinByCode) }

func testJoinByCode(t *testing.T) {
	b := newBench(t)
	b.up = false
	b.api.view.Sentence = "1 voter, not yet fault tolerant: a third machine makes it 3"
	b.api.view.Nodes = []task.NodeView{{ID: "n1", Name: "pc-win", Role: "worker", State: "ready"}}
	b.paired = func(talk node.PairTalk) error { talk.Say("something happened."); return nil }
	b.expect(exitDone, "join", "mini-1.local", "--node-name", "pc-win")
	want := `Found a lanjobs cluster at mini-1.local:7420. This machine is not a member. On any member type:
    lanjobs approve K7QF-2M9X
Works once, for 10 minutes. Waiting… (Ctrl-C gives up; nothing has been changed here)
something happened.
✓ approved by anna on mini-1
`
	if !strings.HasPrefix(b.err.String(), want) {
		t.Errorf("stderr\n%s\nwant\n%s", b.err, want)
	}
	b.wants("stdout", b.out.String(), `✓ joined "home" as pc-win, worker for now, may become a voter (1 voter`)
	if strings.Join(b.joined, " ") != "mini-1.local:7420 by code pc-win" {
		t.Errorf("joined %q", b.joined)
	}
	// Quiet is not mute: without the code nobody could do anything.
	b.up = false
	b.expect(exitDone, "join", "mini-1.local", "-q")
	if b.err.String() != "    lanjobs approve K7QF-2M9X\n" {
		t.Errorf("with -q: %q", b.err)
	}
	b.up = false
	b.expect(exitDone, "join", "mini-1.local", "-o", "json", "-q")
	if !strings.HasPrefix(b.out.String(), `{
  "kind": "PairingCode",
  "code": "K7QF-2M9X",
  "peer": "mini-1.local:7420",
  "left_seconds": 600
}
{`) || b.err.String() != "" {
		t.Errorf("stdout %s stderr %q", b.out, b.err)
	}
}

// TestJoinByCodeChangesNothingBefore: the node here runs on until this machine was let in.
func TestJoinByCodeChangesNothingBefore(t *testing.T) {
	b := newBench(t)
	b.paired = func(node.PairTalk) error {
		for _, r := range b.api.requests {
			if r.path == "/v1/leave" {
				t.Error("the node here has left before anybody said yes")
			}
		}
		return task.NewProblem(task.ErrNotAllowed, "anna@mini-1 did not let this machine in.", "Nothing has been changed here")
	}
	b.expect(exitNotAllowed, "join", "mini-1")
	b.wants("stderr", b.err.String(), "lanjobs: anna@mini-1 did not let this machine in.\n      Nothing has been changed here")
	if b.api.gone || b.joined != nil {
		t.Errorf("gone %v, joined %q", b.api.gone, b.joined)
	}
	b.paired = nil
	b.expect(exitDone, "join", "mini-1")
	b.wants("stderr", b.err.String(), "The node here leaves no cluster (this machine only); its data is put aside.")
}

func TestJoinLooksAround(t *testing.T) {
	b := newBench(t)
	b.up = false
	b.expect(exitUnreachable, "join")
	b.wants("stderr", b.err.String(), "lanjobs: no cluster answers on the local network.\n      Name a member: lanjobs join MACHINE.")
	home := transport.Found{Announcement: transport.Announcement{Cluster: "home", Node: "mini-1", Version: "1.4.0", CA: "3f9a7c2100000000"}, Addr: "192.168.1.5:7420"}
	b.found = []transport.Found{home}
	b.expect(exitUsage, "join")
	b.wants("stdout", b.out.String(), "CLUSTER  CA         MEMBER  ADDRESS           VERSION\nhome     3F9A-7C21  mini-1  192.168.1.5:7420  1.4.0\n")
	b.wants("stderr", b.err.String(), "lanjobs join: say which one, for example: lanjobs join 192.168.1.5:7420")
	b.expect(exitUsage, "join", "-o", "json", "-q")
	b.wants("stdout", b.out.String(), `"kind": "ClusterList"`)
	b.expect(exitUsage, "join", "-o", "name", "-q")
	if b.out.String() != "192.168.1.5:7420\n" {
		t.Errorf("names: %q", b.out)
	}

	b.w.inTTY, b.w.stdin = true, strings.NewReader("n\n")
	b.expect(exitBad, "join")
	b.wants("stderr", b.err.String(), `Join "home" by mini-1 (192.168.1.5:7420)? [y/N]`)
	if b.joined != nil {
		t.Errorf("joined %q", b.joined)
	}
	b.w.stdin = strings.NewReader("y\n")
	b.expect(exitDone, "join")
	if len(b.joined) == 0 || b.joined[0] != "192.168.1.5:7420" {
		t.Errorf("joined %q", b.joined)
	}

	other := home
	other.Cluster, other.CA, other.Addr = "garage", "1111111111111111", "192.168.1.9:7420"
	b.found = []transport.Found{other, home}
	b.up = false
	b.expect(exitUsage, "join", "-y", "--replace")
	b.wants("stdout", b.out.String(), "garage")
}

// TestJoinLooksForTheClusterOfItsToken: the token says which cluster is meant, so nobody is asked.
func TestJoinLooksForTheClusterOfItsToken(t *testing.T) {
	b := newBench(t)
	b.up = false
	token := transport.NewJoinToken(transport.Fingerprint{0x3f, 0x9a, 0x7c, 0x21, 1, 2, 3, 4, 5})
	b.found = []transport.Found{
		{Announcement: transport.Announcement{Cluster: "garage", Node: "x", CA: "1111111111111111"}, Addr: "192.168.1.9:7420"},
		{Announcement: transport.Announcement{Cluster: "home", Node: "mini-1", CA: "3f9a7c2101020304"}, Addr: "192.168.1.5:7420"},
	}
	b.expect(exitDone, "join", "--token", token.String())
	if len(b.joined) == 0 || b.joined[0] != "192.168.1.5:7420" {
		t.Errorf("joined %q", b.joined)
	}
	b.up, b.found = false, b.found[:1]
	b.expect(exitUnreachable, "join", "--replace", "--token", token.String())
	b.wants("stderr", b.err.String(), "no member of this token's cluster answers on the local network (1 member of others).")
}

func TestApprove(t *testing.T) {
	b := newBench(t)
	home(b)
	b.expect(exitDone, "approve")
	b.wants("stdout", b.out.String(), "No machine waits. On the new one: lanjobs join MACHINE")
	b.api.waiting = []transport.PairingView{waiter()}
	b.expect(exitDone, "approve")
	b.wants("stdout", b.out.String(), "NAME    WANTS  SYSTEM         VERSION  FROM          ASKED\npc-win  join   windows/amd64  1.4.0    192.168.1.23  20s ago\nEach shows its code.")
	b.expect(exitDone, "approve", "-o", "json")
	b.wants("stdout", b.out.String(), `"kind": "PairingList"`)

	b.expect(exitNotAllowed, "approve", "-y", "0000-0000")
	b.wants("stderr", b.err.String(), "lanjobs: no waiting machine has the code 0000-0000.")
	b.w.inTTY, b.w.stdin = true, strings.NewReader("\n")
	b.expect(exitBad, "approve", "k7qf2m9x")
	b.wants("stderr", b.err.String(), "  pc-win   windows/amd64   lanjobs 1.4.0   from 192.168.1.23   asked 20s ago\nLet it in? It will run jobs of this cluster and see their files. [y/N] ")
	if b.api.refused != 1 || len(b.api.approved) != 0 {
		t.Errorf("refused %d, approved %v", b.api.refused, b.api.approved)
	}
	b.w.stdin = strings.NewReader("y\n")
	b.expect(exitDone, "approve", "K7QF-2M9X", "--role", "worker")
	if b.out.String() != "✓ pc-win is in.\n" || len(b.api.approved) != 1 || !b.api.approved[0].Worker {
		t.Errorf("output %q, approved %v", b.out, b.api.approved)
	}
	b.w.inTTY = false
	b.expect(exitDone, "approve", "K7QF-2M9X", "-y", "-o", "json")
	b.wants("stdout", b.out.String(), `"id": "n7"`)
	if b.api.approved[1].Worker {
		t.Error("without --role it became a worker")
	}
}

func TestPersonWritesWhoApproved(t *testing.T) {
	for by, want := range map[string]string{"anna@mini-1": "anna on mini-1", "node nas": "node nas", "a\x1b[31m@x": "a [31m on x"} {
		if got := person(by); got != want {
			t.Errorf("%q: %q, want %q", by, got, want)
		}
	}
}
