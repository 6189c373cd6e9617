package memnet

import (
	"context"
	"sync"
	"time"

	"lanjobs/task"
)

// link is one direction between two hosts.
type link struct{ from, to task.NodeID }

// Network holds hosts and the faults between them.
type Network struct {
	done context.CancelFunc
	ctx  context.Context // ends with Close; calls that are being served hang on it
	wg   sync.WaitGroup  // calls being served

	mu       sync.Mutex // guards all below, and every pipe
	hosts    map[task.NodeID]*Host
	addrs    map[string]task.NodeID // which host an address leads to now
	cut      map[link]bool
	delay    map[link]time.Duration
	isolated map[task.NodeID]bool
	black    map[task.NodeID]bool
	frozen   map[task.NodeID]bool
	conns    map[*conn]struct{}
	changed  chan struct{} // closed and replaced at every change of the above
	closed   bool
}

// New makes an empty network without faults.
func New() *Network {
	ctx, done := context.WithCancel(context.Background())
	return &Network{
		ctx: ctx, done: done,
		hosts: map[task.NodeID]*Host{}, addrs: map[string]task.NodeID{},
		cut: map[link]bool{}, delay: map[link]time.Duration{},
		isolated: map[task.NodeID]bool{}, black: map[task.NodeID]bool{}, frozen: map[task.NodeID]bool{},
		conns: map[*conn]struct{}{}, changed: make(chan struct{}),
	}
}

// Close ends everything: all listeners, both ends of all streams, calls being served. It waits for the calls.
func (n *Network) Close() {
	n.change(func() {
		n.closed = true
		for _, h := range n.hosts {
			h.closeListeners()
		}
		for c := range n.conns {
			c.abort()
		}
	})
	n.done()
	n.wg.Wait()
}

// change alters the faults and lets everything that waits look again.
func (n *Network) change(alter func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	alter()
	close(n.changed)
	n.changed = make(chan struct{})
	for c := range n.conns {
		c.in.pump()
		c.out.pump()
	}
	for _, h := range n.hosts {
		h.releasePackets()
	}
}

// Cut loses everything between a and b.
func (n *Network) Cut(a, b task.NodeID) {
	n.change(func() { n.cut[link{a, b}], n.cut[link{b, a}] = true, true })
}

// CutOneWay loses everything that from sends to to; the other direction stays.
func (n *Network) CutOneWay(from, to task.NodeID) {
	n.change(func() { n.cut[link{from, to}] = true })
}

// Isolate cuts a host off from all others, also from those that come later.
func (n *Network) Isolate(id task.NodeID) { n.change(func() { n.isolated[id] = true }) }

// Rejoin ends an Isolate.
func (n *Network) Rejoin(id task.NodeID) { n.change(func() { delete(n.isolated, id) }) }

// HealLink ends cuts between a and b, both ways.
func (n *Network) HealLink(a, b task.NodeID) {
	n.change(func() {
		delete(n.cut, link{a, b})
		delete(n.cut, link{b, a})
	})
}

// Heal ends all cuts and isolations. Delays, frozen and black-holed hosts stay as they are.
func (n *Network) Heal() {
	n.change(func() {
		clear(n.cut)
		clear(n.isolated)
	})
}

// Delay makes everything between a and b take d longer, each way.
func (n *Network) Delay(a, b task.NodeID, d time.Duration) {
	n.DelayOneWay(a, b, d)
	n.DelayOneWay(b, a, d)
}

// DelayOneWay makes everything from a to b take d longer.
func (n *Network) DelayOneWay(from, to task.NodeID, d time.Duration) {
	n.change(func() { n.delay[link{from, to}] = d })
}

// Freeze stops a host as SIGSTOP does: its kernel still takes what comes.
func (n *Network) Freeze(id task.NodeID) { n.change(func() { n.frozen[id] = true }) }

// Thaw ends a Freeze; what waited arrives.
func (n *Network) Thaw(id task.NodeID) { n.change(func() { delete(n.frozen, id) }) }

// BlackHole makes a host swallow everything. Its connections are lost for good, but nobody is told.
func (n *Network) BlackHole(id task.NodeID) {
	n.change(func() {
		n.black[id] = true
		n.lose(id, false)
	})
}

// Restore ends a BlackHole.
func (n *Network) Restore(id task.NodeID) { n.change(func() { delete(n.black, id) }) }

// Kill ends a host's process: listeners and connections close, calls are no longer served. The other ends see a reset
// as far as it reaches them.
func (n *Network) Kill(id task.NodeID) {
	n.change(func() {
		if h := n.hosts[id]; h != nil {
			h.closeListeners()
			h.handler = nil
		}
		for c := range n.conns {
			if c.local == id {
				c.reset()
			}
		}
	})
}

// lose makes all connections of a host dead without a word; silent ones stay so even if the host can be reached again.
func (n *Network) lose(id task.NodeID, silent bool) {
	for c := range n.conns {
		if c.local == id || c.remote == id {
			for _, p := range []*pipe{c.in, c.out} {
				p.lost, p.silent = true, p.silent || silent
			}
		}
	}
}

// open tells whether packets pass from one host to another. A frozen host is not a matter of the link.
func (n *Network) open(from, to task.NodeID) bool {
	if n.black[from] || n.black[to] {
		return false
	}
	return from == to || !n.cut[link{from, to}] && !n.isolated[from] && !n.isolated[to]
}

// flows tells whether bytes move from one process to the other.
func (n *Network) flows(from, to task.NodeID) bool {
	return n.open(from, to) && !n.frozen[from] && !n.frozen[to]
}

// await blocks until ready is true, looked at under the lock after each change.
func (n *Network) await(ctx context.Context, ready func() bool) error {
	for {
		n.mu.Lock()
		ok, changed := ready(), n.changed
		n.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-n.ctx.Done():
			return errClosed
		}
	}
}

// pause waits as long as one or more trips take.
func (n *Network) pause(ctx context.Context, trips ...link) error {
	var d time.Duration
	n.mu.Lock()
	for _, l := range trips {
		d += n.delay[l]
	}
	n.mu.Unlock()
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-n.ctx.Done():
		return errClosed
	}
}
