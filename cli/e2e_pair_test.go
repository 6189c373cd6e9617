//go:build e2e && linux

package cli_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"lanjobs/transport"
)

var shownCode = regexp.MustCompile(`lanjobs approve ([0-9A-Z]{4}-[0-9A-Z]{4})`)

// asks starts a machine that wants to join with a code, and gives the code once it shows it.
func (l *lab) asks(n *member, words ...string) string {
	l.t.Helper()
	n.spawn(append(append([]string{"join"}, words...), "--foreground", "--node-name", n.name, "--listen", n.listen)...)
	return l.codeOf(n)
}

func (l *lab) codeOf(n *member) (code string) {
	l.t.Helper()
	l.waitFor(20*time.Second, n.name+" shows a code", func() bool {
		text, _ := os.ReadFile(n.log)
		if all := shownCode.FindAllSubmatch(text, -1); len(all) > 0 {
			code = string(all[len(all)-1][1])
		}
		return code != ""
	})
	return code
}

// waiting names who waits to be let in, as a member says; not ok while it cannot say.
func (l *lab) waiting(n *member) (names string, ok bool) {
	out, _, code := l.cli(n, "", "approve", "-o", "name")
	return strings.TrimSpace(out), code == 0
}

// TestProcPair: three machines, let in by codes that are typed on different members; wrong codes, a refusal and a name that is
// taken on the way.
func TestProcPair(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.found("a")
	a := l.nodes[0]
	l.want(a, 0, "No machine waits.", "approve")
	b := l.add("b", fmt.Sprintf("127.0.0.2:%d", l.port))
	code := l.asks(b, a.peer)
	l.want(a, 0, "b  ", "approve")
	wrong := "0" + code[1:]
	if wrong == code {
		wrong = "1" + code[1:]
	}
	l.want(a, 4, "no waiting machine has the code "+wrong, "approve", "-y", wrong)
	l.want(a, 4, "Waiting now: b (127.0.0.1), ", "approve", "-y", wrong)
	l.waitFor(10*time.Second, "b says that a wrong code was typed", func() bool { return b.logged("A code was typed that no waiting machine has.") })
	l.want(a, 0, "✓ b is in.", "approve", "-y", strings.ToLower(strings.ReplaceAll(code, "-", " ")))
	l.waitFor(30*time.Second, "b is a member", func() bool { return l.ready(l.status(b)) == 2 })
	if !b.logged("✓ approved by ") || !b.logged(`✓ joined "home" as b`) {
		t.Error("b does not say how it came in")
	}
	l.want(a, 4, "no waiting machine has the code", "approve", "-y", code)

	c := l.add("c", fmt.Sprintf("127.0.0.3:%d", l.port))
	code = l.asks(c, b.peer, "--worker") // a member that does not lead passes it on
	l.want(b, 0, `"role": "worker"`, "approve", "-y", "-o", "json", code)
	l.waitFor(30*time.Second, "c is a member", func() bool { return l.ready(l.status(a)) == 3 })
	if v := l.status(a); v.Voters != 1 {
		t.Errorf("%d voters: c asked to be a worker", v.Voters)
	}

	again := l.add("again", fmt.Sprintf("127.0.0.4:%d", l.port))
	again.spawn("join", a.peer, "--foreground", "--node-name", "c", "--listen", again.listen)
	<-again.gone
	if !again.logged(`"home" already has a machine called "c"`) || shownCode.MatchString(again.text()) {
		t.Error("a name that is taken was not refused at once")
	}
	l.asks(again, a.peer)
	again.kill(syscall.SIGINT)
	l.waitFor(10*time.Second, "it waits no longer", func() bool { who, ok := l.waiting(a); return ok && who == "" })
	if _, err := os.Stat(again.dir + "/identity.json"); err == nil {
		t.Error("a machine that gave up has an identity")
	}
}

// TestProcPairNewLeader: the leader is killed while a machine waits with its code at another member.
func TestProcPairNewLeader(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	first := l.leader()
	at := l.others(first)[0]
	d := l.add("d", fmt.Sprintf("127.0.0.4:%d", l.port))
	code := l.asks(d, at.peer)
	first.kill(syscall.SIGKILL)
	l.waitFor(30*time.Second, "another one leads", func() bool { v := l.status(at); return v.LeaderName != "" && v.LeaderName != first.name })
	l.waitFor(20*time.Second, "it waits at the new leader", func() bool { who, _ := l.waiting(at); return who == "d" })
	l.want(at, 0, "✓ d is in.", "approve", "-y", code)
	l.waitFor(30*time.Second, "d is a member", func() bool { v := l.status(d); return v.Name == "home" && v.LeaderName != "" })
}

// text is a node's log so far.
func (n *member) text() string {
	text, _ := os.ReadFile(n.log)
	return string(text)
}

// TestNetDiscover: machines that know nothing of each other but the wire between them.
func TestNetDiscover(t *testing.T) {
	t.Parallel()
	l, w := lan(t)
	l.port = transport.DefaultPort // where whoever knows nothing asks
	a, b, c := w.host("a"), w.host("b"), w.host("c")
	if out, code := w.inside(b, "join"); code != 6 || !strings.Contains(out, "no cluster answers on the local network.") {
		t.Errorf("nobody there: exit %d %s", code, out)
	}
	l.nodes = l.nodes[:1]
	l.start()
	l.nodes = []*member{a, b, c}
	out, code := "", 0
	l.waitFor(30*time.Second, "a is found", func() bool { out, code = w.inside(b, "join"); return code != 6 })
	if code != 2 || !strings.Contains(out, "home     ") || !strings.Contains(out, "lanjobs join: say which one, for example: lanjobs join "+a.peer) {
		t.Errorf("one there: exit %d %s", code, out)
	}
	l.want(a, 0, "✓ b is in.", "approve", "-y", l.asks(b, "-y"))
	// By its name, although nothing here knows names.
	l.want(a, 0, "✓ c is in.", "approve", "-y", l.asks(c, "b.local"))
	l.waitFor(60*time.Second, "three vote", func() bool { v := l.status(a); return v.Voters == 3 && l.ready(v) == 3 })
}

// inside runs a command of the program on a machine's network, and gives all that it said.
func (w *network) inside(n *member, words ...string) (string, int) {
	return w.lab.command(append(append(append([]string{}, n.wrap...), w.lab.exe), append(words, "--data-dir", n.dir)...)...)
}

// TestNetDiscoverSix: the same where there is no IPv4: the question goes to all nodes of the link.
func TestNetDiscoverSix(t *testing.T) {
	t.Parallel()
	l, w := lan(t)
	l.port = transport.DefaultPort
	for i, name := range []string{"a", "b"} {
		n := w.host(name)
		w.must("ip", "-n", n.space, "-4", "addr", "flush", "dev", "eth0")
		if out, code := l.command("ip", "-n", n.space, "addr", "add", fmt.Sprintf("fd77::%x/64", i+1), "dev", "eth0", "nodad"); code != 0 {
			t.Skipf("no IPv6 here: %s", out)
		}
		n.listen = fmt.Sprintf("[::]:%d", l.port)
	}
	a, b := l.nodes[0], l.nodes[1]
	l.nodes = l.nodes[:1]
	l.start()
	l.nodes = []*member{a, b}
	l.waitFor(30*time.Second, "a is found", func() bool {
		out, _ := w.inside(b, "join", "-o", "name")
		return strings.Contains(out, "]:7420")
	})
	l.want(a, 0, "✓ b is in.", "approve", "-y", l.asks(b, "-y"))
	l.waitFor(30*time.Second, "b is a member", func() bool { return l.ready(l.status(a)) == 2 })
}
