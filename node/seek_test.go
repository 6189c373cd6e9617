package node

import (
	"testing"

	"lanjobs/transport"
)

func TestNodeLabel(t *testing.T) {
	for peer, want := range map[string]string{
		"mini-1": "mini-1 ", "mini-1.local": "mini-1 ", "Mini-1.LOCAL.:7420": "mini-1 7420", "nas:8000": "nas 8000",
		"192.168.1.5": "no", "192.168.1.5:7420": "no", "[fe80::1%eth0]:7420": "no", "::1": "no",
		"nas.example.org": "no", "nas.example.org:7420": "no", "": "no", ".local": "no", "my_nas": "no",
	} {
		got := "no"
		if label, port, ok := nodeLabel(peer); ok {
			got = label + " " + port
		}
		if got != want {
			t.Errorf("%q: %q, want %q", peer, got, want)
		}
	}
}

func TestMemberAt(t *testing.T) {
	at := func(node, addr string) transport.Found {
		return transport.Found{Announcement: transport.Announcement{Node: node}, Addr: addr}
	}
	found := []transport.Found{at("mini-1", "192.168.1.5:7420"), at("nas", "192.168.1.6:8000"), at("two", "192.168.1.7:7420"), at("two", "192.168.1.8:7420"), at("six", "[fd00::1]:7420")}
	for _, c := range []struct{ label, port, want string }{
		{"mini-1", "", "192.168.1.5:7420"}, {"mini-1", "7420", "192.168.1.5:7420"}, {"mini-1", "9000", "192.168.1.5:9000"},
		{"nas", "7420", "192.168.1.6:8000"}, {"six", "9000", "[fd00::1]:9000"}, {"two", "", "typed"}, {"none", "", "typed"},
	} {
		if got := memberAt(found, c.label, c.port, "typed"); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.label, c.port, got, c.want)
		}
	}
}
