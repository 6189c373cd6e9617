package transport

import (
	"net/netip"
	"time"

	"lanjobs/task"
)

// SetRejoin changes how often missing peers are called; a control run sets it to never.
func (g *Gossip) SetRejoin(d time.Duration) { g.rejoin = d }

// SetProbe lets a control run have the interval of memberlist's LAN profile.
func (g *Gossip) SetProbe(interval time.Duration, suspicion int) {
	g.probe, g.suspicion = interval, suspicion
}

// Replace takes over a socket that was exchanged in the configuration after NewGossip.
func (g *Gossip) Replace() { g.sockets.udp = g.UDP }

// SealBeacon and OpenBeacon write and read the beacons of a cluster.
func SealBeacon(key []byte, cluster string, id task.NodeID, s Session, addrs []netip.AddrPort) []byte {
	seal, err := newBeaconSeal(key, cluster)
	if err != nil {
		panic(err)
	}
	return seal.seal(beacon{id, s, addrs})
}

func OpenBeacon(key []byte, cluster string, packet []byte) (task.NodeID, Session, []netip.AddrPort, error) {
	seal, err := newBeaconSeal(key, cluster)
	if err != nil {
		panic(err)
	}
	b, err := seal.open(packet)
	return b.Node, b.Session, b.Addrs, err
}

// BeaconTargets tells where an announcement goes, as "to from".
func BeaconTargets(table []Interface, listen netip.AddrPort, ports []uint16) (out []string) {
	for _, t := range beaconTargets(table, listen, ports) {
		out = append(out, t.To.String()+" "+t.From.String())
	}
	return out
}

// BeaconWaits gives the waits of n announcements that did not help.
func BeaconWaits(alone bool, n int) []time.Duration {
	var p beaconPace
	out := []time.Duration{p.restart()}
	for range n - 1 {
		out = append(out, p.next(alone))
	}
	return out
}

// What bounds beacons.
const (
	BeaconFirst = beaconFirst
	BeaconAlone = beaconAlone
	BeaconSome  = beaconSome
)

// IsBeacon tells a beacon from a packet of memberlist.
var IsBeacon = isBeacon

// ReplaceStreams exchanges the streams after NewGossip.
func (g *Gossip) ReplaceStreams(s StreamSource) { g.Streams, g.sockets.streams = s, s }
