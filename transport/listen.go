package transport

import (
	"context"
	"net"
	"net/netip"
	"strconv"
)

// DefaultPort is the cluster port, TCP and UDP, where none is given.
const DefaultPort = 7420

// DefaultListen is all addresses of this machine, IPv4 and IPv6.
func DefaultListen() string { return netip.AddrPortFrom(netip.IPv6Unspecified(), DefaultPort).String() }

// ListenPort binds TCP and UDP of one port. [::] is IPv4 and IPv6, or IPv4 alone on a system without IPv6; 0.0.0.0 is IPv4 only.
// Beacons can be sent from the UDP side.
func ListenPort(ctx context.Context, addr netip.AddrPort) (net.Listener, net.PacketConn, error) {
	tcpNet, udpNet, text := "tcp", "udp", addr.String()
	switch {
	case addr.Addr().Is4():
		tcpNet, udpNet = "tcp4", "udp4" // "tcp" would take IPv6 too
	case addr.Addr() == netip.IPv6Unspecified():
		text = net.JoinHostPort("", strconv.Itoa(int(addr.Port()))) // as net chooses, by what the system has
	}
	conf := net.ListenConfig{Control: allowBroadcast}
	tcp, err := conf.Listen(ctx, tcpNet, text)
	if err != nil {
		return nil, nil, err
	}
	udp, err := conf.ListenPacket(ctx, udpNet, text)
	if err != nil {
		_ = tcp.Close()
		return nil, nil, err
	}
	return tcp, udp, nil
}

// ListenAddrs chooses the addresses to announce for a port, best first: the one that is listened to, or by RankAddrs those of
// all that the port takes.
func ListenAddrs(listen netip.AddrPort, table []Interface, toward []netip.Addr) (out []netip.AddrPort) {
	if !listen.Addr().IsUnspecified() {
		return []netip.AddrPort{listen}
	}
	for _, a := range RankAddrs(table, toward) {
		if a.Is4() || listen.Addr().Is6() {
			out = append(out, netip.AddrPortFrom(a, listen.Port()))
		}
	}
	return out
}
