package transport

import (
	"log/slog"
	"net"
	"net/netip"
	"time"

	"lanjobs/task"
)

// How gossip runs on Wi-Fi and with up to a few dozen machines. A probe waits 1 s for its datagram and then 1 s for the
// fallback over TCP: with an interval equal to the time-out, as in memberlist's LAN profile with the time-out raised to 1 s,
// the fallback would get no time at all and a network without UDP would flap. A silent node is called dead after 6 s.
const (
	probeTimeout     = 1 * time.Second
	probeInterval    = 2 * time.Second
	suspicionMult    = 3
	pushPullInterval = 15 * time.Second
	leaveTimeout     = 1 * time.Second
	checkInterval    = 5 * time.Second  // of this machine's interfaces
	rejoinInterval   = 10 * time.Second // memberlist never reconnects by itself
)

// About is what a node says of itself to all others.
type About struct {
	Name    string
	Version string
	Level   int
	Voter   bool
	// Generation of the cluster, so that members of an earlier one hear that there is a later.
	Generation uint64
}

// gone is Gone for a configuration without it.
func (c *GossipConfig) gone(id task.NodeID) bool { return c.Gone != nil && c.Gone(id) }

// GossipConfig is what Gossip is told.
type GossipConfig struct {
	Self    task.NodeID
	Cluster string // label of all packets and streams: clusters that touch do not mix
	Key     []byte // 16, 24 or 32 bytes, AES-GCM
	// NextSession makes a session greater than all before it on this machine, also over restarts.
	NextSession func() (Session, error)
	About       func() About
	Listen      netip.AddrPort // a specified address is announced as the only one; else see RankAddrs
	UDP         net.PacketConn // closed by Run
	Streams     StreamSource   // likewise, if it has a Close
	Book        *Book
	// Seeds are addresses to try while nobody known answers.
	Seeds func() []string
	// Gone tells whether a node was removed from the cluster: it is forgotten, and neither called nor heard. nil = none was.
	Gone func(id task.NodeID) bool
	// Announce is what machines of the local network that look for a cluster are told; the port is added. nil, or one without a CA: nothing.
	Announce func() Announcement
	// Interfaces and Toward look at this machine: SystemInterfaces, LocalToward.
	Interfaces func() ([]Interface, error)
	Toward     func(peer netip.AddrPort) (netip.Addr, bool)
	// Changed hears that a node was seen or is gone, from Run's goroutine. A hint and no more: membership is Raft's, and
	// who is well enough to work is told by leases. May be nil.
	Changed func(id task.NodeID, alive bool)
	Clock   task.Clock
	Log     *slog.Logger
}
