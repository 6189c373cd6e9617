package transport

import (
	"net"
	"net/netip"
	"slices"
)

// questionQueue is how many questions wait for Run; more are dropped, who asks repeats them.
const questionQueue = 16

// heed keeps a question for Run. It is called by the reader of the socket.
func (g *Gossip) heed(packet []byte, from net.Addr) {
	at, err := netip.ParseAddrPort(from.String())
	if err != nil || g.Announce == nil || len(packet) > questionBytes {
		return
	}
	select {
	case g.questions <- question{slices.Clone(packet), netip.AddrPortFrom(at.Addr().Unmap(), at.Port())}:
	default:
	}
}

// tell answers a machine of the local network that looks for a cluster.
func (g *Gossip) tell(q question) {
	if !g.answers.allow(q.from.Addr(), g.Clock.Awake()) {
		return
	}
	table, err := g.Interfaces()
	if err != nil || !isNear(table, q.from.Addr()) {
		return
	}
	a := g.Announce()
	if a.CA == "" {
		return
	}
	a.Port = g.Listen.Port()
	packet := answerTo(q.packet, a)
	if packet == nil {
		return
	}
	if _, err := g.sockets.udp.WriteTo(packet, net.UDPAddrFromAddrPort(q.from)); err != nil {
		g.Log.Debug("a question for clusters not answered", "from", q.from, "error", err)
		return
	}
	g.Log.Debug("a machine looked for clusters", "from", q.from)
}
