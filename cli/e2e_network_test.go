//go:build e2e && linux

package cli_test

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// network is a LAN of network namespaces: one with a bridge, one more for each node. Nothing of it is seen outside of them.
type network struct {
	lab    *lab
	prefix string
	hosts  int
}

// networks numbers them, so that tests run side by side.
var networks atomic.Int32

// lan is three nodes, each a machine of its own as far as the network goes: own interfaces, own addresses, own packet filter.
func lan(t *testing.T) (*lab, *network) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("this test needs the program %s", tool)
		}
	}
	l := newLab(t)
	w := &network{lab: l, prefix: fmt.Sprintf("lj%d-%d", os.Getpid(), networks.Add(1))}
	if out, err := exec.Command("ip", "netns", "add", w.space("lan")).CombinedOutput(); err != nil {
		t.Skipf("no network namespaces here: %s", out)
	}
	t.Cleanup(func() { w.run("ip", "netns", "del", w.space("lan")) })
	w.must("ip", "-n", w.space("lan"), "link", "add", "br0", "type", "bridge")
	w.must("ip", "-n", w.space("lan"), "link", "set", "br0", "up")
	return l, w
}

// cluster makes nodes a, b and c, at 10.77.0.1 to 3.
func (w *network) cluster() {
	for _, name := range []string{"a", "b", "c"} {
		w.host(name)
	}
	w.lab.start()
}

// host is a machine with a node on it, not started yet. It listens on all addresses, as by default.
func (w *network) host(name string) *member {
	w.hosts++
	n := w.lab.add(name, fmt.Sprintf("0.0.0.0:%d", w.lab.port))
	n.space = w.space(name)
	n.wrap = []string{"ip", "netns", "exec", n.space}
	w.must("ip", "netns", "add", n.space)
	w.lab.t.Cleanup(func() { w.run("ip", "netns", "del", n.space) })
	w.must("ip", "-n", w.space("lan"), "link", "add", "v"+name, "type", "veth", "peer", "name", "eth0", "netns", n.space)
	w.must("ip", "-n", w.space("lan"), "link", "set", "v"+name, "master", "br0", "up")
	w.must("ip", "-n", n.space, "link", "set", "lo", "up")
	w.must("ip", "-n", n.space, "link", "set", "eth0", "up")
	w.move(n, w.addr(w.hosts))
	n.peer = fmt.Sprintf("%s:%d", w.addr(w.hosts), w.lab.port)
	return n
}

func (w *network) space(name string) string { return w.prefix + "-" + name }

func (w *network) addr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 0, byte(i)}) }

// move gives a machine another address in the place of those it has, as DHCP does.
func (w *network) move(n *member, to netip.Addr) {
	w.must("ip", "-n", n.space, "addr", "flush", "dev", "eth0")
	w.must("ip", "-n", n.space, "addr", "add", to.String()+"/24", "dev", "eth0")
}

// cut drops all packets to and from a machine; heal undoes every cut of it.
func (w *network) cut(n *member) {
	w.filter(n, "type filter hook input priority 0; policy drop;", "type filter hook output priority 0; policy drop;")
}

// deafen drops what comes to a machine; what it sends still arrives. mute is the other direction.
func (w *network) deafen(n *member) { w.filter(n, "type filter hook input priority 0; policy drop;") }
func (w *network) mute(n *member)   { w.filter(n, "type filter hook output priority 0; policy drop;") }

func (w *network) filter(n *member, chains ...string) {
	rules := "add table inet cut;"
	for i, c := range chains {
		rules += fmt.Sprintf("add chain inet cut c%d { %s };", i, c)
	}
	w.must("ip", "netns", "exec", n.space, "nft", rules)
}

func (w *network) heal(n *member) {
	w.must("ip", "netns", "exec", n.space, "nft", "flush ruleset")
}

func (w *network) must(words ...string) {
	w.lab.t.Helper()
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		w.lab.t.Fatalf("%s: %v %s", strings.Join(words, " "), err, out)
	}
}

func (w *network) run(words ...string) { _ = exec.Command(words[0], words[1:]...).Run() }

// whole waits until everybody sees a healthy cluster of three.
func (l *lab) whole(limit time.Duration) {
	l.t.Helper()
	l.waitFor(limit, "everybody sees three ready machines", func() bool {
		for _, n := range l.nodes {
			v := l.status(n)
			for _, m := range v.Nodes {
				if m.State == "unstable" { // killed three times in a row by a test: a person would say so
					l.cli(n, "", "node", "clear", m.Name)
				}
			}
			if v.Health != "healthy" || l.ready(v) != len(l.nodes) {
				return false
			}
		}
		return true
	})
}
