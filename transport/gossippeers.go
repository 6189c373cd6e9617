package transport

import (
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/memberlist"

	"lanjobs/task"
)

const (
	// settleTime after a new session nobody is called gone: the new memberlist has yet to hear of all.
	settleTime = 10 * time.Second
	// cloneTime is how long two sessions of one node must live side by side; one that was left without a word dies sooner.
	cloneTime = 20 * time.Second
)

// gossipHeard is which sessions of which nodes are alive, as the memberlist of this stay has it. Owned by Run.
type gossipHeard struct {
	stay     uint64 // counts memberlists: events of an earlier one are old news
	began    time.Duration
	sessions map[task.NodeID]map[Session]string // with the first address of each
	double   map[task.NodeID]time.Duration      // since when (awake) a node has had more than one
	refused  map[task.NodeID]refusedPeer        // what the book did not take, since it knows of a later session
}

type refusedPeer struct {
	peer  Peer
	since time.Duration
}

// begin forgets all for a new memberlist and gives its number.
func (h *gossipHeard) begin(now time.Duration) uint64 {
	h.stay++
	h.began = now
	h.sessions = map[task.NodeID]map[Session]string{}
	h.double, h.refused = map[task.NodeID]time.Duration{}, map[task.NodeID]refusedPeer{}
	return h.stay
}

// note takes one event over into the book.
func (g *Gossip) note(e gossipEvent) {
	id, session, ok := parseGossipName(e.name)
	if !ok || e.stay != g.heard.stay {
		return
	}
	all := g.heard.sessions[id]
	if e.gone {
		delete(all, session)
	} else {
		if all == nil {
			all = map[Session]string{}
			g.heard.sessions[id] = all
		}
		all[session] = e.addr
		if id != g.Self && !g.gone(id) {
			g.enter(id, session, e)
		}
	}
	g.report(id)
}

// enter writes a node's place into the book.
func (g *Gossip) enter(id task.NodeID, session Session, e gossipEvent) {
	m, err := decodeMeta(e.meta)
	if err != nil {
		g.Log.Debug("gossip metadata", "node", id, "error", err)
	}
	p := Peer{Session: session, Name: m.Name, Version: m.Version, Level: m.Level, Voter: m.Voter, Generation: m.Generation}
	for _, a := range m.Addrs {
		p.Addrs = append(p.Addrs, a.String())
	}
	if len(p.Addrs) == 0 {
		p.Addrs = []string{e.addr}
	}
	if g.Book.Update(id, p) {
		delete(g.heard.refused, id)
	} else {
		g.heard.refused[id] = refusedPeer{p, g.Clock.Awake()}
	}
}

// adopt gives in after a while: if the only session alive is earlier than the one in the book, the node has lost its count (its
// data folder was mended by hand), and would never be found again.
func (g *Gossip) adopt(now time.Duration) {
	for id, r := range g.heard.refused {
		live := g.heard.sessions[id]
		switch {
		case live[r.peer.Session] == "":
			delete(g.heard.refused, id)
		case len(live) == 1 && now-r.since > cloneTime:
			g.Book.adopt(id, r.peer)
			delete(g.heard.refused, id)
		}
	}
}

// report tells Changed if a node came or went.
func (g *Gossip) report(id task.NodeID) {
	if id == g.Self {
		return
	}
	up := len(g.heard.sessions[id]) > 0
	if !up && g.Clock.Awake()-g.heard.began < settleTime {
		return // settle will look again
	}
	g.mu.Lock()
	changed := g.up[id] != up
	g.up[id] = up
	g.mu.Unlock()
	if changed && !up && !g.beacon.armed {
		g.beacon.arm()
	}
	if changed && g.Changed != nil {
		g.Changed(id, up)
	}
}

// settle reports what had to wait, forgets who was removed, and looks for clones.
func (g *Gossip) settle() {
	g.mu.Lock()
	ids := slices.Collect(maps.Keys(g.up))
	g.mu.Unlock()
	for _, id := range ids {
		g.report(id)
	}
	for _, id := range g.Book.IDs() {
		if g.gone(id) {
			g.Book.Forget(id)
		}
	}
	now := g.Clock.Awake()
	g.adopt(now)
	copies := map[task.NodeID][]Copy{}
	for id, all := range g.heard.sessions {
		since, known := g.heard.double[id]
		switch {
		case len(all) < 2:
			delete(g.heard.double, id)
		case !known:
			g.heard.double[id] = now
		case now-since > cloneTime:
			for session, addr := range all {
				copies[id] = append(copies[id], Copy{session, addr})
			}
			slices.SortFunc(copies[id], func(a, b Copy) int { return a.Session.compare(b.Session) })
		}
	}
	g.mu.Lock()
	g.copies = copies
	g.mu.Unlock()
}

// join calls the known peers that are not alive, or all of them: memberlist by itself never finds a peer again that it has
// declared dead. Each peer is called by one goroutine at a time.
func (g *Gossip) join(all bool) {
	if g.list == nil {
		return
	}
	list, own := g.list, g.Addrs()
	alone := true
	for _, id := range g.Book.IDs() {
		up := g.Alive(id)
		alone = alone && !up
		if id != g.Self && !g.gone(id) && (all || !up) {
			g.call(list, id, without(g.Book.Lookup(id), own))
		}
	}
	if alone && g.Seeds != nil {
		g.call(list, "", without(g.Seeds(), own))
	}
}

// call tries a peer's addresses until one answers.
func (g *Gossip) call(list *memberlist.Memberlist, id task.NodeID, addrs []string) {
	g.mu.Lock()
	if g.joining[id] || len(addrs) == 0 {
		g.mu.Unlock()
		return
	}
	g.joining[id] = true
	g.mu.Unlock()
	g.joins.Go(func() {
		defer func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			delete(g.joining, id)
		}()
		for _, addr := range addrs {
			if n, err := list.Join([]string{addr}); n > 0 && err == nil {
				return
			}
		}
	})
}

// without leaves out this machine's own addresses, which may once have been a peer's.
func without(addrs, own []string) []string {
	return slices.DeleteFunc(slices.Clone(addrs), func(a string) bool { return slices.Contains(own, a) })
}
