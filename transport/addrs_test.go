package transport_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"lanjobs/transport"
)

// nic makes a row of an interface table; flags: "lo" loopback, "p2p" point to point, "down".
func nic(name, flags string, addrs ...string) transport.Interface {
	i := transport.Interface{
		Name: name, Up: !strings.Contains(flags, "down"),
		Loopback: strings.Contains(flags, "lo"), PointToPoint: strings.Contains(flags, "p2p"),
	}
	for _, a := range addrs {
		ip := netip.MustParseAddr(a)
		i.Addrs = append(i.Addrs, netip.PrefixFrom(ip, map[bool]int{true: 24, false: 64}[ip.Is4()]))
	}
	return i
}

func TestRankAddrs(t *testing.T) {
	lo := nic("lo", "lo", "127.0.0.1", "::1")
	for _, c := range []struct {
		name   string
		table  []transport.Interface
		toward string
		want   string
	}{
		{"plain LAN", []transport.Interface{lo, nic("eth0", "", "192.168.1.7", "fe80::1")}, "", "192.168.1.7"},
		{"nothing but loopback: wait", []transport.Interface{lo}, "", ""},
		{"no table at all", nil, "", ""},
		{"cable not plugged in", []transport.Interface{lo, nic("eth0", "down", "192.168.1.7")}, "", ""},
		{"docker0, its bridges and pairs", []transport.Interface{
			lo, nic("docker0", "", "172.17.0.1"), nic("br-5f2a", "", "172.18.0.1"), nic("veth12", "", "172.17.0.9"),
			nic("virbr0", "", "192.168.122.1"), nic("vEthernet (WSL)", "", "172.20.0.1"), nic("enp3s0", "", "10.0.0.7"),
		}, "", "10.0.0.7"},
		{"docker0 even if a peer claims to be there", []transport.Interface{nic("docker0", "", "172.17.0.1")}, "172.17.0.1", ""},
		{"a VPN has the default route", []transport.Interface{
			nic("tun0", "p2p", "10.8.0.2"), nic("utun4", "p2p", "100.64.0.5"), nic("wlan0", "", "192.168.1.7"),
		}, "", "192.168.1.7"},
		{"peers are behind the VPN", []transport.Interface{
			nic("tun0", "p2p", "10.8.0.2"), nic("wlan0", "", "192.168.1.7"),
		}, "10.8.0.2", "192.168.1.7 10.8.0.2"},
		{"nothing but a VPN, and no peer known", []transport.Interface{nic("tailscale0", "", "100.64.0.5")}, "", ""},
		{"two LANs: the one with the peers first", []transport.Interface{
			nic("eth0", "", "10.0.0.7"), nic("eth1", "", "192.168.1.7"),
		}, "192.168.1.7", "192.168.1.7 10.0.0.7"},
		{"IPv6 only: ULA before global, never one with a zone", []transport.Interface{
			nic("eth0", "", "fe80::1", "2001:db8::7", "fd00::7"),
		}, "", "fd00::7 2001:db8::7"},
		{"IPv4 before IPv6, private before public", []transport.Interface{
			nic("eth0", "", "2001:db8::7", "203.0.113.7", "192.168.1.7"),
		}, "", "192.168.1.7 203.0.113.7 2001:db8::7"},
		{"two machines on one cable", []transport.Interface{nic("eth0", "", "169.254.3.4")}, "", "169.254.3.4"},
		{"a link-local address beside a real one", []transport.Interface{
			nic("eth1", "", "169.254.3.4"), nic("eth0", "", "10.0.0.7"),
		}, "", "10.0.0.7 169.254.3.4"},
		{"a bridge of the house's own", []transport.Interface{nic("br0", "", "192.168.1.7")}, "", "192.168.1.7"},
		{"no more than four, each once", []transport.Interface{
			nic("eth0", "", "10.0.0.1", "10.0.0.2", "10.0.0.3"), nic("eth1", "", "10.0.0.1", "10.0.0.4", "10.0.0.5"),
		}, "", "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4"},
	} {
		var toward, want []netip.Addr
		for _, f := range strings.Fields(c.toward) {
			toward = append(toward, netip.MustParseAddr(f))
		}
		for _, f := range strings.Fields(c.want) {
			want = append(want, netip.MustParseAddr(f))
		}
		if got := transport.RankAddrs(c.table, toward); !slices.Equal(got, want) {
			t.Errorf("%s: %v, not %v", c.name, got, want)
		}
	}
}

func TestSystemInterfacesKnowLoopback(t *testing.T) {
	table, err := transport.SystemInterfaces()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(table, func(i transport.Interface) bool { return i.Loopback && len(i.Addrs) > 0 }) {
		t.Errorf("no loopback with an address in %+v", table)
	}
	local, ok := transport.LocalToward(netip.MustParseAddrPort("127.0.0.1:7420"))
	if !ok || !local.IsLoopback() {
		t.Errorf("towards loopback one sends from %v, %v", local, ok)
	}
}
