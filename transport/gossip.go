package transport

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"lanjobs/task"
)

// Gossip keeps the book up to date: each node tells all others where it is. Run does everything; the rest may be called from
// anywhere.
type Gossip struct {
	GossipConfig
	sockets   *gossipSockets
	inbox     *gossipInbox
	wake      chan struct{}
	questions chan question
	joins     sync.WaitGroup

	rejoin    time.Duration
	probe     time.Duration
	suspicion int

	// Owned by Run.
	list    *memberlist.Memberlist // nil = no network yet
	heard   gossipHeard
	beacon  gossipBeacon
	answers answerPace

	mu         sync.Mutex
	echoes     *memberlist.Memberlist // list, for Echo
	session    Session
	addrs      []netip.AddrPort
	meta       []byte
	joining    map[task.NodeID]bool
	udpBlocked time.Duration // awake time of the last sign of it; 0 = none
	up         map[task.NodeID]bool
	copies     map[task.NodeID][]Copy
}

// NewGossip makes a Gossip that does nothing yet.
func NewGossip(cfg GossipConfig) *Gossip {
	return &Gossip{
		GossipConfig: cfg,
		sockets:      &gossipSockets{udp: cfg.UDP, streams: cfg.Streams, clock: cfg.Clock},
		inbox:        newGossipInbox(),
		wake:         make(chan struct{}, 1),
		questions:    make(chan question, questionQueue),
		rejoin:       rejoinInterval,
		probe:        probeInterval,
		suspicion:    suspicionMult,
		joining:      map[task.NodeID]bool{},
		up:           map[task.NodeID]bool{},
	}
}

// Run takes part in gossip until ctx ends, then says good-bye. Without a usable network it waits for one.
func (g *Gossip) Run(ctx context.Context) error {
	seal, err := newBeaconSeal(g.Key, g.Cluster)
	if err != nil {
		return err
	}
	g.beacon = gossipBeacon{seal: seal, heard: make(chan beacon, beaconQueue), timer: g.Clock.NewTimer(beaconSome), answered: map[task.NodeID]time.Duration{}}
	g.beacon.timer.Stop() // until there is a reason
	g.sockets.start(g.beacon.take, g.heed)
	check := g.Clock.NewTimer(checkInterval)
	rejoin := g.Clock.NewTimer(spread(g.rejoin))
	defer func() {
		check.Stop()
		rejoin.Stop()
		g.beacon.timer.Stop()
		g.leave()
		g.sockets.stop()
		g.joins.Wait()
	}()
	g.refresh()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-g.inbox.ready:
			for _, e := range g.inbox.take() {
				g.note(e)
			}
		case <-check.C():
			g.refresh()
			g.settle()
			check.Reset(checkInterval)
		case <-rejoin.C():
			g.join(false)
			rejoin.Reset(spread(g.rejoin))
		case <-g.beacon.timer.C():
			g.sendBeacon()
		case said := <-g.beacon.heard:
			g.answer(said)
		case q := <-g.questions:
			g.tell(q)
		case <-g.wake:
			g.refresh()
			g.join(true)
			g.beacon.arm()
		}
	}
}

// Wake makes Run look at the interfaces and call all peers at once: the machine has slept, or the network has changed.
func (g *Gossip) Wake() { signal(g.wake) }

// signal leaves a note in a channel of one; a note that is there already says the same.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Session is this node's session now; zero before there was a network.
func (g *Gossip) Session() Session {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.session
}

// Alive tells whether gossip hears of a node. It is a hint.
func (g *Gossip) Alive(id task.NodeID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.up[id]
}

// Copy is one of several machines that run under one node's id.
type Copy struct {
	Session Session
	Addr    string // ip:port
}

// Copies gives the sessions of a node, the earliest first, if more than one has been alive for more than 20 s: somebody copied
// a data folder. Otherwise it is empty.
func (g *Gossip) Copies(id task.NodeID) []Copy {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.copies[id]
}

// UDPBlocked tells that peers answer over TCP but not over UDP, within the last minute: a firewall, most likely.
func (g *Gossip) UDPBlocked() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.udpBlocked > 0 && g.Clock.Awake()-g.udpBlocked < time.Minute
}

// Addrs are the addresses announced now, best first.
func (g *Gossip) Addrs() []string {
	var out []string
	for _, a := range g.current() {
		out = append(out, a.String())
	}
	return out
}

func (g *Gossip) current() []netip.AddrPort {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.addrs)
}

// readLog learns from memberlist's log what it tells nowhere else.
func (g *Gossip) readLog(line string) {
	if strings.Contains(line, "UDP probes failed") {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.udpBlocked = g.Clock.Awake()
	}
}
