package node

import (
	"context"
	"net/netip"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// How a sleep is noticed: the clock that counts sleep has gained on the one that does not.
const (
	wakeCheck = 2 * time.Second
	wakeGap   = 2 * time.Second
)

// watchPlace renews this machine's place in the network after it slept or lost its address: connections of before lead nowhere,
// and waiting until each of them is given up could cost a lease. Leases look after themselves (worker.keep); Raft's stay as they
// are, since nothing rests on believing to lead.
func (m *machine) watchPlace(ctx context.Context) error {
	slept := func() time.Duration { return time.Duration(m.clock.Boot()) - m.clock.Awake() }
	before, missed := slept(), ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.clock.After(wakeCheck):
		}
		now, gone := slept(), m.addressGone()
		gap := now - before
		m.watchCopies(ctx)
		m.followHistory(ctx)
		m.watchClock(ctx)
		m.watchUDP()
		if gap >= wakeGap {
			m.log.Info("this machine slept", "for", gap.Round(time.Second).String())
		}
		if gap >= wakeGap || gone != "" && gone != missed {
			m.renewPlace()
		}
		before, missed = now, gone
	}
}

// addressGone is the address that this machine announces first, if no interface has it any more; else "".
func (m *machine) addressGone() string {
	own := m.wire.gossip.Addrs()
	if len(own) == 0 {
		return ""
	}
	first, err := netip.ParseAddrPort(own[0])
	if err != nil {
		return ""
	}
	table, err := transport.SystemInterfaces()
	if err != nil {
		return ""
	}
	for _, i := range table {
		if i.Loopback && first.Addr().IsLoopback() || i.Has(first.Addr()) {
			return "" // all of 127.0.0.0/8 is here
		}
	}
	return own[0]
}

// reconnect closes what is open to a node, so that the next use dials anew.
func (m *machine) reconnect(id task.NodeID) {
	m.layer.DropPeer(id)
	m.caller.DropPeer(id)
	if m.removed(id) {
		m.wire.trust.CloseNode(id) // also where a snapshot took the place of the entry that removed it
	}
}
