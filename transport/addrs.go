package transport

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Interface is one network interface of this machine, as far as the choice of addresses cares.
type Interface struct {
	Name         string
	Up           bool
	Loopback     bool
	PointToPoint bool
	Addrs        []netip.Prefix // each address with the length of its network
	MAC          net.HardwareAddr
	Card         bool // there is hardware behind it, as far as the system tells
}

// Has tells whether an address is one of the interface's.
func (i Interface) Has(a netip.Addr) bool {
	return slices.ContainsFunc(i.Addrs, func(p netip.Prefix) bool { return p.Addr() == a })
}

// SystemInterfaces reads this machine's interfaces.
func SystemInterfaces() ([]Interface, error) {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var table []Interface
	for _, i := range ifs {
		row := Interface{
			Name: i.Name, Up: i.Flags&net.FlagUp != 0, Loopback: i.Flags&net.FlagLoopback != 0,
			PointToPoint: i.Flags&net.FlagPointToPoint != 0, MAC: i.HardwareAddr, Card: isCard(i.Name),
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue // it went away meanwhile
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				row.Addrs = append(row.Addrs, p)
			}
		}
		table = append(table, row)
	}
	return table, nil
}

// LocalToward gives the address from which this machine would send to a peer: the routing table's own answer. Nothing is sent.
func LocalToward(peer netip.AddrPort) (netip.Addr, bool) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(peer))
	if err != nil {
		return netip.Addr{}, false
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), true
}

// bridges carry only this machine's own containers and guests: the same address on every machine, reached by none.
var bridges = []string{
	"docker", "br-", "veth", "virbr", "vmnet", "vboxnet", "cni", "flannel", "cali", "lxc", "lxdbr", "podman", "vethernet",
}

// tunnels lead into private networks of which the peers may or may not be part.
var tunnels = []string{"utun", "tun", "tap", "zt", "tailscale", "wg", "ppp", "ipsec", "nordlynx", "awdl", "llw"}

func named(name string, prefixes []string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// The order in which addresses are announced; never is not announced at all.
const (
	rankPeers    = iota // in use towards known peers
	rankPrivate         // 10/8, 172.16/12, 192.168/16
	rankPublic4         // other IPv4
	rankUnique6         // fc00::/7
	rankGlobal6         // other IPv6
	rankTunnel          // a tunnel, only if it is in use towards known peers
	rankLinkOnly        // 169.254/16: two machines on one cable
	rankNever
)

// RankAddrs chooses the addresses to announce, best first, at most MaxAddrs, from a table of interfaces and the local addresses
// in use towards known peers. It never announces loopback, a container bridge or an IPv6 address that needs a zone; none at
// all means: no network yet, wait. It is a pure function (C40).
func RankAddrs(table []Interface, toward []netip.Addr) []netip.Addr {
	type ranked struct {
		addr netip.Addr
		rank int
	}
	var all []ranked
	for _, i := range table {
		for _, p := range i.Addrs {
			a := p.Addr()
			if r := rankAddr(i, a, slices.Contains(toward, a)); r != rankNever {
				all = append(all, ranked{a, r})
			}
		}
	}
	// Stable: the system lists its interfaces in a steady order, and a change of the first address costs a new session.
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	var out []netip.Addr
	for _, r := range all {
		if len(out) < MaxAddrs && !slices.Contains(out, r.addr) {
			out = append(out, r.addr)
		}
	}
	return out
}

func rankAddr(i Interface, a netip.Addr, inUse bool) int {
	switch {
	case !i.Up || i.Loopback || named(i.Name, bridges):
		return rankNever
	case a.IsLoopback() || a.IsMulticast() || a.IsUnspecified() || a.Is6() && a.IsLinkLocalUnicast():
		return rankNever
	case i.PointToPoint || named(i.Name, tunnels):
		if inUse {
			return rankTunnel
		}
		return rankNever
	case a.IsLinkLocalUnicast():
		return rankLinkOnly
	case inUse:
		return rankPeers
	case a.Is4() && a.IsPrivate():
		return rankPrivate
	case a.Is4():
		return rankPublic4
	case a.IsPrivate():
		return rankUnique6
	}
	return rankGlobal6
}
