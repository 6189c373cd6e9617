package transport

import "time"

// SetRejoin changes how often missing peers are called; a control run sets it to never.
func (g *Gossip) SetRejoin(d time.Duration) { g.rejoin = d }

// SetProbe lets a control run have the interval of memberlist's LAN profile.
func (g *Gossip) SetProbe(interval time.Duration, suspicion int) {
	g.probe, g.suspicion = interval, suspicion
}

// Replace takes over a socket that was exchanged in the configuration after NewGossip.
func (g *Gossip) Replace() { g.sockets.udp = g.UDP }
