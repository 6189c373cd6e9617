package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// Wake-on-LAN: a network card of a sleeping machine wakes it when it sees its own address sixteen times in a row behind six bytes
// 0xff, in any packet to everybody. Nothing answers, and nobody can be kept from sending one: it carries no secret and gives no
// right but to be awake.
const (
	wakePort = 9 // discard: nobody listens there
	// wakeRepeats: cards that are half awake miss one now and then.
	wakeRepeats = 3
	// MaxMACs is how many cards of a machine are kept.
	MaxMACs = 8
)

// WakePacket is the packet for a card.
func WakePacket(mac net.HardwareAddr) []byte {
	return append(bytes.Repeat([]byte{0xff}, 6), bytes.Repeat(mac, 16)...)
}

// virtualCards have addresses that no hardware listens to while the machine sleeps.
var virtualCards = []string{"bridge", "br", "bond", "dummy", "anpi", "ap", "p2p", "macvtap", "ifb", "sit", "gre"}

// WakeMACs chooses the cards by which this machine can be woken, sorted, at most MaxMACs. Where the system tells which interfaces
// are hardware only those count; in a virtual machine or container none may be. It is a pure function.
func WakeMACs(table []Interface) []string {
	var cards, others []string
	for _, i := range table {
		mac := i.MAC.String()
		switch {
		case !i.Up || i.Loopback || i.PointToPoint || len(i.MAC) != 6 || slices.Equal(i.MAC, make(net.HardwareAddr, 6)):
		case named(i.Name, tunnels) || slices.Contains(cards, mac):
		case i.Card:
			cards = append(cards, mac)
		case !named(i.Name, bridges) && !named(i.Name, virtualCards) && !slices.Contains(others, mac):
			others = append(others, mac)
		}
	}
	if len(cards) == 0 {
		cards = others
	}
	slices.Sort(cards)
	return cards[:min(len(cards), MaxMACs)]
}

// wakeTargets are the broadcast addresses of the networks that this machine is in.
func wakeTargets(table []Interface) (out []netip.AddrPort) {
	for _, i := range table {
		for _, p := range i.Addrs {
			if !p.Addr().Is4() || p.Bits() >= 31 || rankAddr(i, p.Addr(), false) == rankNever {
				continue
			}
			if to := netip.AddrPortFrom(broadcastOf(p), wakePort); !slices.Contains(out, to) {
				out = append(out, to)
			}
		}
	}
	return out
}

// SendWake sends the packets that wake a machine to every network that this one is in, and tells where they went. None at all is an
// error.
func SendWake(table []Interface, macs []string) (sent []string, err error) {
	var packets [][]byte
	for _, text := range macs {
		mac, err := net.ParseMAC(text)
		if err != nil || len(mac) != 6 {
			return nil, fmt.Errorf("%q is no address of a network card", text)
		}
		packets = append(packets, WakePacket(mac))
	}
	conn, err := (&net.ListenConfig{Control: allowBroadcast}).ListenPacket(context.Background(), "udp4", ":0")
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var faults []error
	for _, to := range wakeTargets(table) {
		fault := error(nil)
		for range wakeRepeats {
			for _, p := range packets {
				if _, err := conn.WriteTo(p, net.UDPAddrFromAddrPort(to)); err != nil {
					fault = err
				}
			}
		}
		if fault != nil {
			faults = append(faults, fault)
			continue
		}
		sent = append(sent, to.Addr().String())
	}
	switch {
	case len(sent) > 0:
		return sent, nil
	case len(faults) > 0:
		return nil, errors.Join(faults...)
	}
	return nil, errors.New("this machine is in no IPv4 network with a broadcast address")
}
