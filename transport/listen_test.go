package transport_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"lanjobs/transport"
)

func TestWhatAPortTakes(t *testing.T) {
	six, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6 here: %v", err)
	}
	_ = six.Close()
	for _, c := range []struct {
		listen      string
		four, other bool
	}{{"[::]:0", true, true}, {"0.0.0.0:0", true, false}, {"127.0.0.1:0", true, false}, {"[::1]:0", false, true}} {
		tcp, udp, err := transport.ListenPort(context.Background(), netip.MustParseAddrPort(c.listen))
		if err != nil {
			t.Fatal(err)
		}
		for _, try := range []struct {
			ip   string
			want bool
		}{{"127.0.0.1", c.four}, {"[::1]", c.other}} {
			conn, err := net.Dial("tcp", try.ip+fmt.Sprint(":", tcp.Addr().(*net.TCPAddr).Port))
			if (err == nil) != try.want {
				t.Errorf("%s takes TCP to %s: %v", c.listen, try.ip, err == nil)
			}
			if err == nil {
				_ = conn.Close()
			}
			to := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(try.ip + fmt.Sprint(":", udp.LocalAddr().(*net.UDPAddr).Port)))
			if !try.want {
				continue
			}
			// To itself, over each family that it takes.
			if _, err := udp.WriteTo([]byte("x"), to); err != nil {
				t.Errorf("%s does not send to %s: %v", c.listen, to, err)
				continue
			}
			if _, from, err := udp.ReadFrom(make([]byte, 10)); err != nil || from.String() != to.String() {
				t.Errorf("%s heard %v, %v, not %s", c.listen, from, err, to)
			}
		}
		_, _ = tcp.Close(), udp.Close()
	}
}

func TestAPortThatIsTakenIsRefusedWhole(t *testing.T) {
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	addr := netip.MustParseAddrPort(udp.LocalAddr().String())
	if _, _, err := transport.ListenPort(context.Background(), addr); err == nil {
		t.Fatal("bound although the UDP port is taken")
	}
	tcp, err := net.Listen("tcp4", addr.String())
	if err != nil {
		t.Fatalf("the TCP side stayed open: %v", err)
	}
	_ = tcp.Close()
}

func TestListenAddrs(t *testing.T) {
	table := []transport.Interface{nic("eth0", "", "10.0.0.7", "fd00::7")}
	for listen, want := range map[string]string{
		"0.0.0.0:7420":     "[10.0.0.7:7420]",
		"[::]:7420":        "[10.0.0.7:7420 [fd00::7]:7420]",
		"192.168.0.9:7421": "[192.168.0.9:7421]",
	} {
		if got := fmt.Sprint(transport.ListenAddrs(netip.MustParseAddrPort(listen), table, nil)); got != want {
			t.Errorf("%s announces %s, not %s", listen, got, want)
		}
	}
	if d := transport.DefaultListen(); d != "[::]:7420" {
		t.Errorf("by default it listens at %s", d)
	}
}
