package transport

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/hashicorp/memberlist"
)

// refresh looks at the interfaces and follows a change: another first address needs a new session, since memberlist announces
// that of its creation for ever.
func (g *Gossip) refresh() {
	addrs, now := g.choose(), g.current()
	switch {
	case len(addrs) == 0:
		// No network: what runs keeps running and finds its peers again by rejoining.
	case g.list == nil || addrs[0] != now[0]:
		g.leave()
		if err := g.create(addrs); err != nil {
			g.Log.Warn("gossip not started", "error", err)
			return
		}
		g.join(true)
		g.beacon.arm()
	case !slices.Equal(addrs, now):
		g.update(addrs)
	}
}

// update announces other second addresses or another About within the session.
func (g *Gossip) update(addrs []netip.AddrPort) {
	if g.list == nil {
		return
	}
	g.describe(addrs)
	if err := g.list.UpdateNode(leaveTimeout); err != nil {
		g.Log.Debug("gossip update", "error", err)
	}
}

// choose gives the addresses to announce.
func (g *Gossip) choose() []netip.AddrPort {
	if !g.Listen.Addr().IsUnspecified() {
		return ListenAddrs(g.Listen, nil, nil)
	}
	table, err := g.Interfaces()
	if err != nil {
		g.Log.Warn("network interfaces not readable", "error", err)
		return nil
	}
	var toward []netip.Addr
	for _, id := range g.Book.IDs() {
		for _, text := range g.Book.Lookup(id) {
			peer, err := netip.ParseAddrPort(text)
			if err != nil || g.Toward == nil {
				continue
			}
			if local, ok := g.Toward(peer); ok {
				toward = append(toward, local)
			}
			break
		}
	}
	return ListenAddrs(g.Listen, table, toward)
}

// create starts a session.
func (g *Gossip) create(addrs []netip.AddrPort) error {
	session, err := g.NextSession()
	if err != nil {
		return fmt.Errorf("next gossip session: %w", err)
	}
	g.describe(addrs)
	g.mu.Lock()
	g.session = session
	g.mu.Unlock()
	wire := newGossipWire(g.sockets, addrs[0])
	handler := &gossipDelegate{gossip: g, stay: g.heard.begin(g.Clock.Awake())}

	conf := memberlist.DefaultLANConfig()
	conf.Name = gossipName(g.Self, session)
	conf.Label = g.Cluster
	conf.SecretKey = g.Key
	conf.Transport = wire
	conf.BindPort, conf.AdvertisePort = int(addrs[0].Port()), int(addrs[0].Port())
	conf.ProbeTimeout, conf.ProbeInterval, conf.SuspicionMult = probeTimeout, g.probe, g.suspicion
	conf.PushPullInterval, conf.TCPTimeout = pushPullInterval, HandshakeTimeout
	conf.Delegate, conf.Events = handler, handler
	conf.Logger = gossipLogger(g.Log, g.readLog)

	list, err := memberlist.Create(conf)
	if err != nil {
		_ = wire.Shutdown()
		return fmt.Errorf("start gossip at %s: %w", addrs[0], err)
	}
	g.list = list
	g.mu.Lock()
	g.echoes = list
	g.mu.Unlock()
	g.sockets.use(wire)
	g.Log.Debug("gossip session", "session", session, "addrs", addrs)
	return nil
}

// describe sets what memberlist announces.
func (g *Gossip) describe(addrs []netip.AddrPort) {
	about := g.About()
	m := nodeMeta{Name: about.Name, Version: about.Version, Level: about.Level, Voter: about.Voter, Addrs: addrs, Generation: about.Generation}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.addrs, g.meta = addrs, m.encode()
}

// leave ends the session: the others hear of it, if somebody does within leaveTimeout.
func (g *Gossip) leave() {
	if g.list == nil {
		return
	}
	if err := g.list.Leave(leaveTimeout); err != nil {
		g.Log.Debug("gossip leave", "error", err)
	}
	g.mu.Lock()
	g.echoes = nil
	g.mu.Unlock()
	g.sockets.use(nil)
	_ = g.list.Shutdown()
	g.list = nil
}
