package node

import (
	"context"
	"time"

	"lanjobs/task"
)

// How a sleep is noticed: the clock that counts sleep has gained on the one that does not.
const (
	wakeCheck = 2 * time.Second
	wakeGap   = 2 * time.Second
)

// watchSleep renews this machine's place in the network after it slept: connections of before lead nowhere, and its address may
// be another. Leases look after themselves (worker.keep); Raft's stay as they are, since nothing rests on believing to lead.
func (m *machine) watchSleep(ctx context.Context) error {
	slept := func() time.Duration { return time.Duration(m.clock.Boot()) - m.clock.Awake() }
	before := slept()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.clock.After(wakeCheck):
		}
		now := slept()
		if gap := now - before; gap >= wakeGap {
			m.log.Info("this machine slept", "for", gap.Round(time.Second).String())
			m.wire.gossip.Wake()
			for _, id := range m.wire.book.IDs() {
				m.reconnect(id)
			}
		}
		before = now
	}
}

// reconnect closes what is open to a node, so that the next use dials anew.
func (m *machine) reconnect(id task.NodeID) {
	m.layer.DropPeer(id)
	m.caller.DropPeer(id)
}
