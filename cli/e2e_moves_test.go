//go:build e2e && linux

package cli_test

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"lanjobs/task"
)

// TestNetAllMovedAwake: all machines get new addresses at once while they run.
func TestNetAllMovedAwake(t *testing.T) {
	t.Parallel()
	l, w := lan(t)
	w.cluster()
	id := l.submit(l.nodes[0], l.file("undisturbed", lease(longLease), untilGate))
	l.starts("undisturbed", 1, 20*time.Second)
	l.renewed(id, longLease)
	for i, n := range l.nodes {
		w.move(n, w.addr(31+i))
	}
	l.whole(60 * time.Second)
	l.open("undisturbed")
	l.ends(l.nodes[0], id, task.JobSucceeded, 30*time.Second)
	l.ledger.oneStart(t, "undisturbed", 1)
}

// TestNetSix: a network without IPv4, in which all machines get new addresses, too.
func TestNetSix(t *testing.T) {
	t.Parallel()
	l, w := lan(t)
	addr := func(i int) string { return fmt.Sprintf("fd77::%x", i) }
	move := func(n *member, i int) {
		w.must("ip", "-n", n.space, "-6", "addr", "flush", "dev", "eth0", "scope", "global")
		w.must("ip", "-n", n.space, "addr", "add", addr(i)+"/64", "dev", "eth0", "nodad")
	}
	for i, name := range []string{"a", "b", "c"} {
		n := w.host(name)
		w.must("ip", "-n", n.space, "-4", "addr", "flush", "dev", "eth0")
		if out, err := exec.Command("ip", "-n", n.space, "addr", "add", addr(i+1)+"/64", "dev", "eth0", "nodad").CombinedOutput(); err != nil {
			t.Skipf("no IPv6 here: %s", out)
		}
		n.listen = fmt.Sprintf("[::]:%d", l.port)
		n.peer = fmt.Sprintf("[%s]:%d", addr(i+1), l.port)
	}
	l.start()
	l.whole(60 * time.Second)
	l.terminateAll()
	for i, n := range l.nodes {
		move(n, 0x21+i)
		n.restart()
	}
	l.whole(60 * time.Second)
}

// TestNetWithoutUDP: a firewall that lets only TCP through is named in status, and everything works.
func TestNetWithoutUDP(t *testing.T) {
	t.Parallel()
	l, w := lan(t)
	w.cluster()
	n := l.others(l.leader())[0]
	w.must("ip", "netns", "exec", n.space, "nft", "add table inet cut; add chain inet cut in { type filter hook input priority 0; policy accept; }; add rule inet cut in udp dport 1-65535 drop")
	l.says(n, 5*time.Minute, "over TCP but not over UDP")
	if !n.logged("over TCP but not over UDP") {
		t.Error("its log does not say so")
	}
	id := l.submit(n, l.file("works", lease(longLease)+"\nplacement: {require: [node="+n.name+"]}", "say start"))
	l.ends(n, id, task.JobSucceeded, 30*time.Second)
	w.heal(n)
	l.waitFor(5*time.Minute, "it is taken back", func() bool { return l.notices(n) == "" })
}
