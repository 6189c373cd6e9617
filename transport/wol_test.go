package transport

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"testing"
)

func TestWakePacket(t *testing.T) {
	mac := net.HardwareAddr{0x02, 1, 2, 3, 4, 5}
	p := WakePacket(mac)
	if len(p) != 102 || !bytes.Equal(p[:6], []byte{255, 255, 255, 255, 255, 255}) {
		t.Fatalf("% x", p)
	}
	for i := range 16 {
		if !bytes.Equal(p[6+6*i:12+6*i], mac) {
			t.Errorf("time %d: % x", i, p[6+6*i:12+6*i])
		}
	}
}

func wolCard(name, mac string, card bool, addrs ...string) Interface {
	i := Interface{Name: name, Up: true, Card: card}
	if mac != "" {
		i.MAC, _ = net.ParseMAC(mac)
	}
	for _, a := range addrs {
		i.Addrs = append(i.Addrs, netip.MustParsePrefix(a))
	}
	return i
}

func TestWakeMACs(t *testing.T) {
	lo, tun := wolCard("lo", "00:00:00:00:00:00", false), wolCard("wg0", "02:00:00:00:00:09", false)
	down := wolCard("eth9", "02:00:00:00:00:08", true)
	down.Up = false
	eth, wifi := wolCard("eth0", "02:00:00:00:00:02", true), wolCard("wlan0", "02:00:00:00:00:01", true)
	bridge, veth := wolCard("docker0", "02:00:00:00:00:07", false), wolCard("veth12", "02:00:00:00:00:06", false)
	for _, c := range []struct {
		table []Interface
		want  []string
	}{
		{[]Interface{lo, tun, down, eth, wifi, bridge, veth, eth}, []string{"02:00:00:00:00:01", "02:00:00:00:00:02"}},
		{[]Interface{lo, tun, bridge, veth, wolCard("ens3", "02:00:00:00:00:03", false)}, []string{"02:00:00:00:00:03"}},
		{[]Interface{lo, tun, bridge, down}, nil},
		{[]Interface{wolCard("ib0", "00:00:00:00:fe:80:00:00:00:00:00:00:02:00:5e:10:00:00:00:01", true)}, nil},
	} {
		if got := WakeMACs(c.table); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.table, got, c.want)
		}
	}
	var many []Interface
	for i := range 20 {
		many = append(many, wolCard("eth"+string(rune('a'+i)), net.HardwareAddr{2, 0, 0, 0, 0, byte(i)}.String(), true))
	}
	if got := WakeMACs(many); len(got) != MaxMACs {
		t.Errorf("%d of them", len(got))
	}
}

func TestWakeTargets(t *testing.T) {
	table := []Interface{
		{Name: "lo", Up: true, Loopback: true, Addrs: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}},
		wolCard("eth0", "02:00:00:00:00:02", true, "192.168.1.5/24", "192.168.1.6/24", "fe80::1/64"),
		wolCard("wlan0", "02:00:00:00:00:01", true, "10.1.2.3/16"),
		wolCard("docker0", "02:00:00:00:00:07", false, "172.17.0.1/16"),
		wolCard("p", "", false, "10.9.9.9/32"),
	}
	want := []netip.AddrPort{netip.MustParseAddrPort("192.168.1.255:9"), netip.MustParseAddrPort("10.1.255.255:9")}
	if got := wakeTargets(table); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if _, err := SendWake(table[:1], []string{"02:00:00:00:00:02"}); err == nil {
		t.Error("sent to no network")
	}
	if _, err := SendWake(nil, []string{"nonsense"}); err == nil {
		t.Error("sent to no card")
	}
}
