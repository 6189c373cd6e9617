package transport

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"lanjobs/task"
)

// A beacon is a datagram to everybody on the local network: "here I am". Machines that all got new addresses at once find each
// other by it; the book and the seeds name places where nobody is (R2, C37). Who hears one of its own cluster calls its sender,
// as it would call an address of the book: over TLS, where both prove who they are. So a beacon decides nothing, and one that
// is recorded and sent again makes at most a call to an address that the node really had.
//
//	"LJB" version | nonce 12 bytes | AES-256-GCM of: gossip name: length, text | gossip metadata with the addresses
//
// Its key comes from the key of gossip and the cluster's id. No packet of memberlist begins with an L: under a label they
// begin with 244.
const (
	beaconMagic = "LJB"
	beaconHead  = beaconMagic + "\x01"
	maxBeacon   = 512
)

// How often a node announces itself while it misses others. The wait doubles from the first to the last and varies by a fifth,
// so that machines which lost each other at the same moment do not go on together. A complete cluster sends none.
const (
	beaconFirst  = 500 * time.Millisecond
	beaconAlone  = 30 * time.Second // at most, while nobody answers
	beaconSome   = 5 * time.Minute  // at most, while some do: machines that sleep for hours are nobody's emergency
	beaconAnswer = 3 * time.Second  // at least, between two calls for the beacons of one node
	// maxBeaconTargets bounds the packets of one announcement, maxBeaconPorts the ports it is sent to.
	maxBeaconTargets = 16
	maxBeaconPorts   = 3
)

// beacon is what one says.
type beacon struct {
	Node    task.NodeID
	Session Session
	Addrs   []netip.AddrPort // best first
}

// beaconSeal encrypts and opens the beacons of one cluster.
type beaconSeal struct{ aead cipher.AEAD }

func newBeaconSeal(gossipKey []byte, cluster string) (*beaconSeal, error) {
	key, err := hkdf.Key(sha256.New, gossipKey, nil, "lanjobs beacon/1 "+cluster, 32)
	if err != nil {
		return nil, fmt.Errorf("key of beacons: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("key of beacons: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("key of beacons: %w", err)
	}
	return &beaconSeal{aead}, nil
}

func (s *beaconSeal) seal(b beacon) []byte {
	name := gossipName(b.Node, b.Session)
	text := append([]byte{byte(len(name))}, name...)
	text = append(text, nodeMeta{Addrs: b.Addrs}.encode()...)
	return s.aead.Seal([]byte(beaconHead), nil, text, []byte(beaconHead))
}

var errBadBeacon = errors.New("not a beacon of this cluster")

// open reads a beacon; errBadBeacon for everything else.
func (s *beaconSeal) open(packet []byte) (beacon, error) {
	sealed, ok := bytes.CutPrefix(packet, []byte(beaconHead))
	if !ok || len(packet) > maxBeacon {
		return beacon{}, errBadBeacon
	}
	text, err := s.aead.Open(nil, nil, sealed, []byte(beaconHead))
	if err != nil || len(text) == 0 || len(text) < 1+int(text[0]) {
		return beacon{}, errBadBeacon
	}
	id, session, ok := parseGossipName(string(text[1 : 1+text[0]]))
	meta, err := decodeMeta(text[1+text[0]:])
	if !ok || err != nil {
		return beacon{}, errBadBeacon
	}
	return beacon{id, session, meta.Addrs}, nil
}

// isBeacon tells a beacon of any cluster and version from a packet of memberlist.
func isBeacon(packet []byte) bool { return bytes.HasPrefix(packet, []byte(beaconMagic)) }

// beaconTarget is one place to announce at, and the address under which this machine is seen from there.
type beaconTarget struct {
	To   netip.AddrPort
	From netip.Addr
}

// beaconTargets gives the broadcast address of every IPv4 network that this machine is in, and all nodes of the link (ff02::1)
// on an interface that has IPv6 only; not those of tunnels, container bridges and loopback. The limited broadcast
// 255.255.255.255 is left out: it follows the default route only, and reaches nobody more whom TCP could call back. listen is
// this node's port: a specified address announces in its own network only. It is a pure function.
func beaconTargets(table []Interface, listen netip.AddrPort, ports []uint16) []beaconTarget {
	var out []beaconTarget
	add := func(to, from netip.Addr) {
		for _, port := range ports {
			t := beaconTarget{netip.AddrPortFrom(to, port), from}
			if len(out) < maxBeaconTargets && !slices.ContainsFunc(out, func(o beaconTarget) bool { return o.To == t.To }) {
				out = append(out, t)
			}
		}
	}
	for _, i := range table {
		before, six := len(out), netip.Addr{}
		for _, p := range i.Addrs {
			a := p.Addr()
			switch {
			case rankAddr(i, a, false) == rankNever || !listen.Addr().IsUnspecified() && a != listen.Addr():
			case a.Is4() && p.Bits() < 31:
				add(broadcastOf(p), a)
			case a.Is6() && listen.Addr().Is6() && !six.IsValid():
				six = a
			}
		}
		if len(out) == before && six.IsValid() {
			add(netip.IPv6LinkLocalAllNodes().WithZone(i.Name), six)
		}
	}
	return out
}

// broadcastOf gives the last address of an IPv4 network.
func broadcastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	return netip.AddrFrom4(b)
}

// beaconPace says how long to wait before the next announcement.
type beaconPace struct{ wait time.Duration }

// restart begins anew, after something has changed.
func (p *beaconPace) restart() time.Duration {
	p.wait = beaconFirst
	return spread(p.wait)
}

// next gives the wait after one that did not help; alone: nobody answers at all.
func (p *beaconPace) next(alone bool) time.Duration {
	most := beaconSome
	if alone {
		most = beaconAlone
	}
	p.wait = min(2*max(p.wait, beaconFirst), most)
	return spread(p.wait)
}

// spread varies a wait by a fifth up or down.
func spread(d time.Duration) time.Duration { return d - d/5 + rand.N(d*2/5+1) }
