package transport_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
	"lanjobs/transport/memnet"
)

// announced is what a machine of a cluster says of itself.
func announced(cluster, node string) transport.Announcement {
	return transport.Announcement{Cluster: cluster, Node: node, Version: "1.4.0", Port: 7420, CA: "3f9a7c2101020304"}
}

func TestAnAnswerIsNeverLongerThanItsQuestion(t *testing.T) {
	nonce := [16]byte{1, 2, 3}
	q := transport.NewQuestion(nonce)
	long := announced(strings.Repeat("c", task.MaxNameLength), strings.Repeat("n", task.MaxNameLength))
	long.Version = strings.Repeat("9", 40)
	packet := transport.AnswerTo(q, long)
	if packet == nil || len(packet) > len(q) {
		t.Fatalf("%d bytes are answered with %d", len(q), len(packet))
	}
	if got, err := transport.ReadFound(packet, nonce); err != nil || got != long {
		t.Errorf("read as %+v, %v", got, err)
	}
	for n := range len(q) {
		if a := transport.AnswerTo(q[:n], long); len(a) > n {
			t.Fatalf("%d bytes are answered with %d", n, len(a))
		}
	}
	for what, bad := range map[string][]byte{"nothing": nil, "a beacon": []byte("LJB\x01xxxxxxxxxxxxxxxxxxx"), "a later version": append([]byte("LJQ\x02"), q[4:]...)} {
		if a := transport.AnswerTo(bad, long); a != nil {
			t.Errorf("%s is answered", what)
		}
	}
}

func TestOnlyAnswersToTheQuestionAreRead(t *testing.T) {
	nonce := [16]byte{1, 2, 3}
	good := transport.AnswerTo(transport.NewQuestion(nonce), announced("home", "mini-1"))
	for what, packet := range map[string][]byte{
		"nothing":         nil,
		"another nonce":   transport.AnswerTo(transport.NewQuestion([16]byte{9}), announced("home", "mini-1")),
		"the question":    transport.NewQuestion(nonce),
		"no JSON":         good[:len(good)-1],
		"no port":         transport.AnswerTo(transport.NewQuestion(nonce), transport.Announcement{Cluster: "home"}),
		"a name too long": transport.AnswerTo(transport.NewQuestion(nonce), announced("home", strings.Repeat("n", 64))),
	} {
		if a, err := transport.ReadFound(packet, nonce); err == nil {
			t.Errorf("%s is read as %+v", what, a)
		}
	}
	evil := transport.AnswerTo(transport.NewQuestion(nonce), announced("home\x1b[2J", "mini\n1"))
	if a, err := transport.ReadFound(evil, nonce); err != nil || a.Cluster != "home[2J" || a.Node != "mini1" {
		t.Errorf("signs that steer a terminal: %+v, %v", a, err)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	one := netip.MustParseAddr("10.0.0.9")
	var p transport.AnswerPace
	given := 0
	for ms := range 2000 { // a question each millisecond from one machine
		if p.Allow(one, time.Duration(ms)*time.Millisecond) {
			given++
		}
	}
	if given != 10 {
		t.Errorf("one machine got %d answers in 2 s", given)
	}
	var all transport.AnswerPace
	given = 0
	for ms := range 10_000 { // from another machine each time
		if all.Allow(netip.AddrFrom4([4]byte{10, 0, byte(ms >> 8), byte(ms)}), time.Duration(ms)*time.Millisecond) {
			given++
		}
	}
	if given < 180 || given > 200 {
		t.Errorf("all together got %d answers in 10 s, want 32 and 16 a second", given)
	}
}

func TestWhereQuestionsGo(t *testing.T) {
	for _, c := range []struct {
		name  string
		table []transport.Interface
		want  string
	}{
		{"one LAN", []transport.Interface{nic("lo", "lo", "127.0.0.1", "::1"), nic("eth0", "", "192.168.1.7", "fe80::1")}, "192.168.1.7 to 192.168.1.255 224.0.0.1, :: to ff02::1%eth0"},
		{"IPv6 alone, two addresses", []transport.Interface{nic("eth0", "", "fd00::7", "fe80::1")}, ":: to ff02::1%eth0"},
		{"neither tunnels nor containers, nor what is down", []transport.Interface{nic("docker0", "", "172.17.0.1"), nic("wg0", "", "10.8.0.2"), nic("ppp0", "p2p", "10.9.0.2"), nic("eth1", "down", "10.1.0.2")}, ""},
	} {
		if got := transport.Askers(c.table); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestDiscover: a machine without any key hears of the clusters in its network, and of no others.
func TestDiscover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		var all []*gossiper
		for i, name := range []string{"mini-1", "nas", "garage-1", "mute"} {
			g := newGossiper(t, n, i+1, "cluster-"+name)
			a := announced("home", name)
			if name == "garage-1" {
				a.Cluster, a.CA = "garage", "1111111111111111"
			}
			if name != "mute" {
				g.Announce = func() transport.Announcement { return a }
			}
			g.start()
			all = append(all, g)
		}
		defer stopAll(all)
		far := n.Host("far")
		look := func(host *memnet.Host, addr string) string {
			host.Move(addr + ":9999")
			found, err := transport.Discover(t.Context(), transport.DiscoverConfig{
				Interfaces: func() ([]transport.Interface, error) { return []transport.Interface{nic("eth0", "", addr)}, nil },
				Ports:      []uint16{7420}, Clock: memnet.NewClock(),
				Listen: func(context.Context, netip.Addr) (net.PacketConn, error) { return host.ListenPacket(), nil },
			})
			if err != nil {
				t.Error(err)
			}
			var out []string
			for _, f := range found {
				out = append(out, fmt.Sprint(f.Cluster, "/", f.Node, " ", f.Addr))
			}
			return strings.Join(out, ", ")
		}
		time.Sleep(time.Second)
		if got, want := look(n.Host("new"), "10.0.0.77"), "garage/garage-1 10.0.0.3:7420, home/mini-1 10.0.0.1:7420, home/nas 10.0.0.2:7420"; got != want {
			t.Errorf("found %s\nwant  %s", got, want)
		}
		if got := look(far, "10.0.9.77"); got != "" {
			t.Errorf("from another network: %s", got)
		}
		// Whoever asks them straight from a network that is not theirs is not answered.
		conn := far.ListenPacket()
		if _, err := conn.WriteTo(transport.NewQuestion([16]byte{1}), net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.1:7420"))); err != nil {
			t.Fatal(err)
		}
		heard := make(chan int, 1)
		go func() {
			k, _, _ := conn.ReadFrom(make([]byte, 600))
			heard <- k
		}()
		time.Sleep(time.Second)
		conn.Close()
		if k := <-heard; k > 0 {
			t.Errorf("%d bytes went to another network", k)
		}
	})
}
