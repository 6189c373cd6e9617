package transport

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"lanjobs/task"
)

// beaconQueue is how many beacons wait for Run; more are dropped, their senders repeat them.
const beaconQueue = 16

// gossipBeacon is the part of Gossip that announces this node on the local network and hears others do so. seal and heard may
// be used from anywhere, the rest is Run's.
type gossipBeacon struct {
	seal  *beaconSeal
	heard chan beacon

	pace     beaconPace
	timer    task.Timer // of the next announcement
	armed    bool
	answered map[task.NodeID]time.Duration // awake time of the last call for a beacon of a node
}

// take opens a datagram that looks like a beacon; what is not of this cluster is dropped. It is called by the reader of the
// socket.
func (b *gossipBeacon) take(packet []byte) {
	said, err := b.seal.open(packet)
	if err != nil {
		return
	}
	select {
	case b.heard <- said:
	default:
	}
}

// arm plans an announcement soon: this node has a new place, or somebody was lost.
func (b *gossipBeacon) arm() {
	b.armed = true
	b.timer.Reset(b.pace.restart())
}

// missing counts the nodes of the book that gossip does not hear of; alone: it hears of none.
func (g *Gossip) missing() (n int, alone bool) {
	alone = true
	for _, id := range g.Book.IDs() {
		switch {
		case id == g.Self || g.gone(id):
		case g.Alive(id):
			alone = false
		default:
			n++
		}
	}
	return n, alone
}

// sendBeacon announces this node if it misses others, and plans the next time. With nobody missing it plans nothing: a complete
// cluster is silent.
func (g *Gossip) sendBeacon() {
	b := &g.beacon
	n, alone := g.missing()
	if b.armed = n > 0; !b.armed {
		return
	}
	b.timer.Reset(b.pace.next(alone))
	own := g.current()
	if g.list == nil || len(own) == 0 {
		return // a new session will arm it
	}
	table, err := g.Interfaces()
	if err != nil {
		g.Log.Warn("network interfaces not readable", "error", err)
		return
	}
	targets := beaconTargets(table, g.Listen, g.beaconPorts())
	session := g.Session()
	for _, t := range targets {
		// The address on that very network first: whoever hears this can surely call it.
		addrs := []netip.AddrPort{netip.AddrPortFrom(t.From, g.Listen.Port())}
		for _, a := range own {
			if a != addrs[0] {
				addrs = append(addrs, a)
			}
		}
		if _, err := g.sockets.udp.WriteTo(b.seal.seal(beacon{g.Self, session, addrs}), net.UDPAddrFromAddrPort(t.To)); err != nil {
			g.Log.Debug("beacon not sent", "to", t.To, "error", err)
		}
	}
	g.Log.Debug("announced on the local network", "missing", n, "networks", len(targets), "again", b.pace.wait)
}

// beaconPorts are those on which other nodes of the book listened last, after this node's own.
func (g *Gossip) beaconPorts() []uint16 {
	ports := []uint16{g.Listen.Port()}
	for _, id := range g.Book.IDs() {
		for _, text := range g.Book.Lookup(id) {
			if a, err := netip.ParseAddrPort(text); err == nil && len(ports) < maxBeaconPorts && !slices.Contains(ports, a.Port()) {
				ports = append(ports, a.Port())
			}
		}
	}
	return ports
}

// answer calls the sender of a beacon, unless it is known to be there: the same session is alive, or a later one was seen.
func (g *Gossip) answer(said beacon) {
	b, now := &g.beacon, g.Clock.Awake()
	p, _ := g.Book.Peer(said.Node)
	last, called := b.answered[said.Node]
	switch {
	case g.list == nil || said.Node == g.Self || g.gone(said.Node):
		return
	case said.Session.Less(p.Session), said.Session == p.Session && g.Alive(said.Node):
		return
	case called && now-last < beaconAnswer:
		return
	}
	if len(b.answered) >= maxAnswered {
		clear(b.answered)
	}
	b.answered[said.Node] = now
	var addrs []string
	for _, a := range said.Addrs {
		addrs = append(addrs, a.String())
	}
	g.Log.Debug("a member announced itself", "node", said.Node, "session", said.Session, "addrs", addrs)
	// Under a name of its own: the old address may be being called at this moment, until a time-out.
	g.call(g.list, "beacon of "+said.Node, without(addrs, g.Addrs()))
}

// maxAnswered bounds what answer remembers; only holders of the cluster's key can fill it.
const maxAnswered = 256
