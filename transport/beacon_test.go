package transport_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

const beaconNode = task.NodeID("3f0c4d52-6f0e-4d0c-9d53-2b1a6f1f8a11")

func TestABeaconIsReadByItsOwnClusterOnly(t *testing.T) {
	at := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.7:7420"), netip.MustParseAddrPort("[fd00::7]:7420")}
	said := transport.Session{Counter: 1 << 40, Random: 7}
	packet := transport.SealBeacon(gossipKey, "x", beaconNode, said, at)
	id, s, addrs, err := transport.OpenBeacon(gossipKey, "x", packet)
	if err != nil || id != beaconNode || s != said || !slices.Equal(addrs, at) {
		t.Fatalf("read as %s %s %v, %v", id, s, addrs, err)
	}
	if !transport.IsBeacon(packet) || transport.IsBeacon([]byte{244, 'L', 'J', 'B'}) || transport.IsBeacon(nil) {
		t.Error("beacons are not told from packets of memberlist")
	}
	if again := transport.SealBeacon(gossipKey, "x", beaconNode, said, at); slices.Equal(again, packet) {
		t.Error("two beacons are the same bytes: the nonce is")
	}
	if strings.Contains(string(packet), string(beaconNode)) {
		t.Error("the node can be read by anybody")
	}
	other := slices.Clone(gossipKey)
	other[0]++
	for name, open := range map[string]struct {
		key     []byte
		cluster string
		packet  []byte
	}{
		"another key":                {other, "x", packet},
		"another cluster, same key":  {gossipKey, "y", packet},
		"a later version":            {gossipKey, "x", append([]byte("LJB\x02"), packet[4:]...)},
		"something behind it":        {gossipKey, "x", append(slices.Clone(packet), 0)},
		"too long":                   {gossipKey, "x", make([]byte, 5000)},
		"nothing":                    {gossipKey, "x", nil},
		"a sealed text that is none": {gossipKey, "x", transport.SealBeacon(gossipKey, "x", "", said, at)},
	} {
		if id, _, _, err := transport.OpenBeacon(open.key, open.cluster, open.packet); err == nil {
			t.Errorf("%s was read, as one of %s", name, id)
		}
	}
	for i := range packet {
		if _, _, _, err := transport.OpenBeacon(gossipKey, "x", packet[:i]); err == nil {
			t.Errorf("cut at %d it was read", i)
		}
		bad := slices.Clone(packet)
		bad[i] ^= 1
		if _, _, _, err := transport.OpenBeacon(gossipKey, "x", bad); err == nil {
			t.Errorf("with another byte %d it was read", i)
		}
	}
}

func TestWhereABeaconGoes(t *testing.T) {
	lo, any4, any6 := nic("lo", "lo", "127.0.0.1", "::1"), "0.0.0.0:7420", "[::]:7420"
	wide := transport.Interface{Name: "eth0", Up: true, Addrs: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/20")}}
	for _, c := range []struct {
		name, listen string
		table        []transport.Interface
		ports        []uint16
		want         string
	}{
		{"one LAN", any4, []transport.Interface{lo, nic("eth0", "", "192.168.1.7", "fe80::1")}, nil, "192.168.1.255:7420 192.168.1.7"},
		{"a network that is not of 256", any4, []transport.Interface{wide}, nil, "10.1.15.255:7420 10.1.2.3"},
		{"two LANs", any4, []transport.Interface{nic("eth0", "", "10.0.0.7"), nic("wlan0", "", "192.168.1.7")}, nil,
			"10.0.0.255:7420 10.0.0.7, 192.168.1.255:7420 192.168.1.7"},
		{"two addresses in one network", any4, []transport.Interface{nic("eth0", "", "10.0.0.7", "10.0.0.8")}, nil, "10.0.0.255:7420 10.0.0.7"},
		{"nobody is in a network of one", any4, []transport.Interface{{Name: "eth0", Up: true, Addrs: []netip.Prefix{netip.MustParsePrefix("10.0.0.7/32")}}}, nil, ""},
		{"not into tunnels, containers, loopback and what is down", any4, []transport.Interface{
			lo, nic("tun0", "p2p", "10.8.0.2"), nic("docker0", "", "172.17.0.1"), nic("wg0", "", "10.9.0.2"), nic("eth0", "down", "10.0.0.7")}, nil, ""},
		{"two machines on one cable", any4, []transport.Interface{{Name: "eth0", Up: true, Addrs: []netip.Prefix{netip.MustParsePrefix("169.254.3.4/16")}}}, nil,
			"169.254.255.255:7420 169.254.3.4"},
		{"IPv6 only", any6, []transport.Interface{nic("eth0", "", "fe80::1", "fd00::7", "2001:db8::7")}, nil, "[ff02::1%eth0]:7420 fd00::7"},
		{"IPv6 only, but IPv4 is listened to", any4, []transport.Interface{nic("eth0", "", "fd00::7")}, nil, ""},
		{"both: IPv4 will do", any6, []transport.Interface{nic("eth0", "", "fd00::7", "10.0.0.7")}, nil, "10.0.0.255:7420 10.0.0.7"},
		{"other ports of the cluster", any4, []transport.Interface{nic("eth0", "", "10.0.0.7")}, []uint16{7420, 7421}, "10.0.0.255:7420 10.0.0.7, 10.0.0.255:7421 10.0.0.7"},
		{"listening at one address", "10.0.0.7:7420", []transport.Interface{nic("eth0", "", "10.0.0.7"), nic("wlan0", "", "192.168.1.7")}, nil, "10.0.0.255:7420 10.0.0.7"},
		{"listening on loopback", "127.0.0.1:7420", []transport.Interface{lo, nic("eth0", "", "10.0.0.7")}, nil, ""},
	} {
		listen := netip.MustParseAddrPort(c.listen)
		if c.ports == nil {
			c.ports = []uint16{listen.Port()}
		}
		if got := strings.Join(transport.BeaconTargets(c.table, listen, c.ports), ", "); got != c.want {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
	var many []transport.Interface
	for i := range 100 {
		many = append(many, nic(fmt.Sprintf("eth%d", i), "", fmt.Sprintf("10.0.%d.1", i)))
	}
	if got := transport.BeaconTargets(many, netip.MustParseAddrPort(any4), []uint16{1, 2}); len(got) != 16 {
		t.Errorf("%d packets for one announcement", len(got))
	}
}

func TestBeaconsBecomeRare(t *testing.T) {
	for _, c := range []struct {
		alone bool
		most  time.Duration
	}{{true, transport.BeaconAlone}, {false, transport.BeaconSome}} {
		waits := transport.BeaconWaits(c.alone, 20)
		want := transport.BeaconFirst
		for i, w := range waits {
			if w < want*4/5 || w > want*6/5 {
				t.Errorf("alone %v: wait %d is %s, not about %s", c.alone, i, w, want)
			}
			want = min(2*want, c.most)
		}
		if again := transport.BeaconWaits(c.alone, 20); slices.Equal(again, waits) {
			t.Errorf("alone %v: no jitter", c.alone)
		}
	}
}
