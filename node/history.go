package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// A member that hears of a later history of its cluster (see transport.GenerationNumber) was away, or cut off, while a lost
// quorum was recovered or a backup restored. Nothing of the two may mix: every stream and call between them is refused. What it
// does about it:
//
//	nobody leads its own history, and a leader has the later   it goes over: under its id, with its log set aside
//	it has started just now, and a leader has the later        the same: machines that come back all at once elect a leader of the
//	                                                           earlier one before they hear of the later
//	somebody leads its own, or the numbers are equal           it stops: what runs here, and its part in Raft. Only a person can know
//	                                                           which one counts, and until then nothing may be done in both
//	the later one does not know it                             the backup is older than its joining: its status says how to join again
//
// So the earlier history ends, or rests, as soon as its members hear of the later one. Stopping loses nothing: its log stays where
// it is.

const (
	historyTimeout  = 2 * time.Second
	historyPatience = 3 // looks without a leader, wakeCheck apart, before a running machine goes over
	// historyStart is how long after its start a machine goes over as it would have before its Raft began, had it heard by then.
	historyStart = time.Minute
)

// historyStep is what a machine does about a later history.
type historyStep int

const (
	historyWait    historyStep = iota // nobody leads the later one
	historyOver                       // it goes over
	historyUnknown                    // the later one does not know it
	historyStop                       // it takes no part any more: a person has to choose
)

// stepOf decides; r is the answer of the latest history that is later than a machine's own. led tells whether somebody leads its
// own, young whether it has just started.
func stepOf(own uint64, r *transport.HistoryReply, led, young bool) historyStep {
	switch {
	case r.Leader == "":
		return historyWait
	case !mayGoOver(own, r):
		return historyStop
	case led && !(young && r.Member):
		return historyStop
	case !r.Member:
		return historyUnknown
	}
	return historyOver
}

// heardHistories are the generations of members, as calls and streams have shown them.
type heardHistories struct {
	mu         sync.Mutex
	of         map[task.NodeID]uint64
	leaderless int
}

// hear keeps what a member said; it is OtherGeneration.
func (h *heardHistories) hear(id task.NodeID, generation uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = map[task.NodeID]uint64{}
	}
	h.of[id] = generation
}

func (h *heardHistories) clone() map[task.NodeID]uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[task.NodeID]uint64{}
	maps.Copy(out, h.of)
	return out
}

// otherHistories are the members that are there and have shown another generation, those with a later one first.
func (m *machine) otherHistories() (later, earlier []task.NodeID) {
	of := m.heard.clone()
	for _, id := range m.wire.book.IDs() {
		if p, ok := m.wire.book.Peer(id); ok && m.wire.gossip.Alive(id) {
			of[id] = max(of[id], p.Generation)
		}
	}
	own := max(m.identity.Cluster.Generation, 1)
	for _, id := range slices.Sorted(maps.Keys(of)) {
		switch g := max(of[id], 1); {
		case g > own:
			later = append(later, id)
		case g < own && m.wire.gossip.Alive(id):
			earlier = append(earlier, id)
		}
	}
	return later, earlier
}

// askHistories asks all known members, before this machine's Raft starts, whether the cluster has a later history by now.
func (m *machine) askHistories(ctx context.Context) error {
	if m.wire == nil {
		return nil
	}
	ctx, cancel := transport.WithTimeout(ctx, m.clock, twinTimeout)
	defer cancel()
	id, r := m.latest(m.histories(ctx, m.wire.book.IDs()))
	switch {
	case r == nil:
		return nil
	case !mayGoOver(m.identity.Cluster.Generation, r) || !r.Member:
		return nil // it looks again while it runs
	}
	return &errOver{r.Cluster, m.nameOf(id)}
}

// latest is the answer of the latest history that is later than this machine's own; nil if there is none.
func (m *machine) latest(replies map[task.NodeID]*transport.HistoryReply) (from task.NodeID, latest *transport.HistoryReply) {
	c := m.identity.Cluster
	for _, id := range slices.Sorted(maps.Keys(replies)) {
		r := replies[id]
		if r.Cluster.ID == c.ID && r.Cluster.Generation > max(c.Generation, 1) && (latest == nil || r.Cluster.Generation > latest.Cluster.Generation) {
			from, latest = id, r
		}
	}
	return from, latest
}

// histories asks members for theirs, all at once; who does not answer is left out.
func (m *machine) histories(ctx context.Context, ids []task.NodeID) map[task.NodeID]*transport.HistoryReply {
	var (
		asked sync.WaitGroup
		mu    sync.Mutex
	)
	out := map[task.NodeID]*transport.HistoryReply{}
	for _, id := range ids {
		if id == m.identity.NodeID {
			continue
		}
		asked.Go(func() {
			r := &transport.HistoryReply{}
			if m.caller.Call(ctx, id, transport.MethodHistory, &transport.HistoryRequest{}, r) != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out[id] = r
		})
	}
	asked.Wait()
	return out
}

// followHistory looks, now and then while this machine runs, whether there is a later history, and does what stepOf says.
func (m *machine) followHistory(ctx context.Context) {
	if m.trouble.problem() != nil {
		return
	}
	later, earlier := m.otherHistories()
	if len(later)+len(earlier) == 0 {
		m.trouble.note(aboutHistory, "")
		return
	}
	ask, cancel := transport.WithTimeout(ctx, m.clock, historyTimeout)
	defer cancel()
	replies := m.histories(ask, append(later, earlier...))
	id, r := m.latest(replies)
	if r == nil {
		m.tellEarlier(replies)
		return
	}
	led := m.led()
	if led {
		m.heard.leaderless = 0
	}
	young := time.Duration(m.clock.Boot()-m.started) < historyStart
	switch stepOf(m.identity.Cluster.Generation, r, led, young) {
	case historyStop:
		m.putOut(m.twoProblem(id, r))
	case historyUnknown:
		m.tellUnknown(id)
	case historyOver:
		if m.heard.leaderless++; !led && m.heard.leaderless < historyPatience {
			return
		}
		m.once.Do(func() {
			m.over.Store(&errOver{r.Cluster, m.nameOf(id)})
			close(m.restart)
		})
	}
}

// led tells whether this machine's own history has a leader, as far as it can know.
func (m *machine) led() bool { return m.core.LeaderID() != "" || m.core.control.learned() != "" }

// tellEarlier says so on the later side, if the earlier one has a leader, or is another recovery of the same number: that one has
// taken jobs too, though it may have stopped already.
func (m *machine) tellEarlier(replies map[task.NodeID]*transport.HistoryReply) {
	own := m.identity.Cluster.Generation
	for _, id := range slices.Sorted(maps.Keys(replies)) {
		r := replies[id]
		twin := transport.GenerationNumber(r.Cluster.Generation) == transport.GenerationNumber(own)
		if (r.Leader != "" || twin) && max(r.Cluster.Generation, 1) < own {
			m.tellTwo(id, r)
			return
		}
	}
	m.trouble.note(aboutHistory, "")
}

// tellTwo says on the later side that the cluster exists twice; the earlier one stops as soon as its members hear of it.
func (m *machine) tellTwo(id task.NodeID, r *transport.HistoryReply) {
	own, other := transport.GenerationNumber(m.identity.Cluster.Generation), transport.GenerationNumber(r.Cluster.Generation)
	text := fmt.Sprintf("%q exists twice: this machine is of generation %d, recovered or restored, while %s goes on in generation %d with a leader of its own. Nothing of one reaches the other. Its machines stop when they hear of this one; to take part again, each is started anew.", m.identity.Cluster.Name, own, m.nameOf(id), other)
	if own == other {
		text = fmt.Sprintf("%q exists twice: %s and this machine were recovered independently of each other (generation %d). Nothing of one reaches the other. %s stops when it hears of this one; to take part in this one, there: lanjobs join MACHINE --replace, with a token of lanjobs token create here.", m.identity.Cluster.Name, m.nameOf(id), own, m.nameOf(id))
	}
	if m.trouble.note(aboutHistory, text) {
		m.log.Error(text)
	}
}

// twoProblem says why this machine, of the earlier of two living histories, has stopped, and what to type.
func (m *machine) twoProblem(id task.NodeID, r *transport.HistoryReply) *task.Problem {
	cluster, name := m.identity.Cluster.Name, m.nameOf(id)
	own, other := transport.GenerationNumber(m.identity.Cluster.Generation), transport.GenerationNumber(r.Cluster.Generation)
	what := fmt.Sprintf("%q exists twice: %s is of generation %d, recovered or restored, while this machine's generation %d went on with a leader of its own.", cluster, name, other, own)
	help := fmt.Sprintf("If %s counts, start the node here again: it goes over, and its log is kept aside. If this one counts, stop %s first, then start the node here again; there: lanjobs join MACHINE --replace", name, name)
	again := fmt.Sprintf("If %s counts, here: lanjobs join %s --replace, with a token of lanjobs token create there. If this one counts, do so there, then start the node here again.", name, name)
	switch {
	case other == own:
		what, help = fmt.Sprintf("%q exists twice: %s and this machine were recovered independently of each other (generation %d).", cluster, name, own), again
	case !r.Member:
		help = again // it would not be let in by starting anew
	}
	return task.NewProblem(task.ErrConflict, what+" What ran here is stopped, so that nothing is done twice; nothing is lost.", help)
}

// tellUnknown says that the later history does not know this machine.
func (m *machine) tellUnknown(id task.NodeID) {
	text := fmt.Sprintf("%q was restored from a backup that is older than this machine's joining; %s takes no part of it. What is here stays as it is. To become a member again: lanjobs join MACHINE --replace, with a token of lanjobs token create on %s", m.identity.Cluster.Name, m.identity.Name, m.nameOf(id))
	if m.trouble.note(aboutHistory, text) {
		m.log.Error(text)
	}
}
