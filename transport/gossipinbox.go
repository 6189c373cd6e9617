package transport

import (
	"bytes"
	"maps"
	"slices"
	"sync"

	"github.com/hashicorp/memberlist"
)

// gossipEvent is what memberlist said of one session of one node.
type gossipEvent struct {
	stay uint64
	name string
	meta []byte
	addr string
	gone bool
}

// gossipInbox takes events from memberlist's callbacks, which run under its lock and must not wait. Of each name only the
// last event is kept, so that it stays small however slow the reader is.
type gossipInbox struct {
	ready chan struct{}

	mu     sync.Mutex
	latest map[string]gossipEvent
}

func newGossipInbox() *gossipInbox {
	return &gossipInbox{ready: make(chan struct{}, 1), latest: map[string]gossipEvent{}}
}

func (b *gossipInbox) put(e gossipEvent) {
	b.mu.Lock()
	b.latest[e.name] = e
	b.mu.Unlock()
	signal(b.ready)
}

func (b *gossipInbox) take() []gossipEvent {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := slices.Collect(maps.Values(b.latest))
	clear(b.latest)
	return events
}

// gossipDelegate is the callbacks of one session.
type gossipDelegate struct {
	gossip *Gossip
	stay   uint64
}

var (
	_ memberlist.Delegate      = (*gossipDelegate)(nil)
	_ memberlist.EventDelegate = (*gossipDelegate)(nil)
)

// NodeMeta gives what this node says of itself.
func (d *gossipDelegate) NodeMeta(int) []byte {
	d.gossip.mu.Lock()
	defer d.gossip.mu.Unlock()
	return d.gossip.meta
}

// NotifyMsg is not used.
func (d *gossipDelegate) NotifyMsg([]byte) {}

// GetBroadcasts is not used.
func (d *gossipDelegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState is not used.
func (d *gossipDelegate) LocalState(bool) []byte { return nil }

// MergeRemoteState is not used.
func (d *gossipDelegate) MergeRemoteState([]byte, bool) {}

// NotifyJoin hands over a node that came.
func (d *gossipDelegate) NotifyJoin(n *memberlist.Node) { d.put(n, false) }

// NotifyUpdate hands over what a node newly says of itself.
func (d *gossipDelegate) NotifyUpdate(n *memberlist.Node) { d.put(n, false) }

// NotifyLeave hands over a node that left or died.
func (d *gossipDelegate) NotifyLeave(n *memberlist.Node) { d.put(n, true) }

func (d *gossipDelegate) put(n *memberlist.Node, gone bool) {
	d.gossip.inbox.put(gossipEvent{stay: d.stay, name: n.Name, meta: bytes.Clone(n.Meta), addr: n.Address(), gone: gone})
}
