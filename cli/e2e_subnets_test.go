//go:build e2e && linux

package cli_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
)

// TestNetSubnets: members in two networks with a router between them, over which no broadcast goes. A machine that comes back at
// another address there, and one that comes back in the other network, are found by what they remember (R2, C39).
func TestNetSubnets(t *testing.T) {
	t.Parallel()
	l, w := lan(t)
	lan := w.space("lan")
	w.must("ip", "-n", lan, "addr", "add", "10.77.0.254/24", "dev", "br0")
	w.must("ip", "-n", lan, "link", "add", "br1", "type", "bridge")
	w.must("ip", "-n", lan, "link", "set", "br1", "up")
	w.must("ip", "-n", lan, "addr", "add", "10.78.0.254/24", "dev", "br1")
	w.must("ip", "netns", "exec", lan, "sysctl", "-qw", "net.ipv4.ip_forward=1")
	for _, name := range []string{"a", "b", "c"} {
		w.route(w.host(name), "10.77.0.254")
	}
	c := l.nodes[2]
	w.across(c, "br1", "10.78.0.3")
	l.start()
	l.whole(60 * time.Second)

	w.across(c, "br1", "10.78.0.33")
	l.whole(90 * time.Second)

	c.kill(15)
	w.across(c, "br0", "10.77.0.43")
	w.route(c, "10.77.0.254")
	c.restart()
	l.whole(90 * time.Second)
	id := l.submit(l.nodes[0], l.file("there", lease(longLease)+"\nplacement: {require: [node=c]}", "say start"))
	l.ends(l.nodes[1], id, task.JobSucceeded, 30*time.Second)
}

// route sends what is not of a machine's own network to a router.
func (w *network) route(n *member, router string) {
	w.must("ip", "-n", n.space, "route", "replace", "default", "via", router)
}

// across puts a machine into the network of a bridge, at an address of it.
func (w *network) across(n *member, bridge, addr string) {
	w.must("ip", "-n", w.space("lan"), "link", "set", "v"+n.name, "master", bridge)
	w.must("ip", "-n", n.space, "addr", "flush", "dev", "eth0")
	w.must("ip", "-n", n.space, "addr", "add", addr+"/24", "dev", "eth0")
	w.route(n, addr[:strings.LastIndexByte(addr, '.')]+".254")
	n.peer = fmt.Sprintf("%s:%d", addr, w.lab.port)
}

// TestNetManyInterfaces: every machine also has the bridge of its containers, with the same address everywhere, and a tunnel to
// somewhere else. Neither is announced, and moving goes on working (C40).
func TestNetManyInterfaces(t *testing.T) {
	t.Parallel()
	l, w := lan(t)
	for i, name := range []string{"a", "b", "c"} {
		n := w.host(name)
		for dev, addr := range map[string]string{"docker0": "172.17.0.1/16", "wg0": fmt.Sprintf("10.8.0.%d/24", i+1)} {
			w.must("ip", "-n", n.space, "link", "add", dev, "type", "bridge")
			w.must("ip", "-n", n.space, "link", "set", dev, "up")
			w.must("ip", "-n", n.space, "addr", "add", addr, "dev", dev)
		}
	}
	l.start()
	l.whole(60 * time.Second)
	check := func() {
		t.Helper()
		for _, n := range l.nodes {
			for _, seen := range l.status(n).Nodes {
				for _, a := range seen.Addresses {
					if !strings.HasPrefix(a, "10.77.0.") {
						t.Errorf("%s takes %s to be at %s", n.name, seen.Name, a)
					}
				}
			}
		}
	}
	check()
	l.terminateAll()
	for i, n := range l.nodes {
		w.move(n, w.addr(51+i))
		n.restart()
	}
	l.whole(60 * time.Second)
	check()
}
