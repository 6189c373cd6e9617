package worker

import (
	"slices"
	"sync"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// granter is a leader and its ledger in a few lines: leases on a cluster clock, deadline = apply time + TTL, tokens from one
// counter. It follows the contracts of package transport, and is not made from package fsm.
type granter struct {
	rate float64 // of the cluster clock
	cut  float64 // 1; smaller makes it expire leases early, as a holder that believes too long would have it

	mu      sync.Mutex
	origin  time.Time
	down    bool
	downAt  time.Time
	unled   time.Duration
	specs   map[task.JobID]*task.Spec
	shards  []*gshard
	nodes   map[task.NodeID]*gnode
	asleep  []*transport.SleepRequest // what nodes said before they slept
	slept   task.Millis               // what a registration said of it
	last    task.Token
	reports map[task.Token]int // accepted, with repeats
	stale   int                // refused reports
	orders  map[task.Token][]transport.StopOrder
	expired []task.Token
	freed   []task.Token // by a registration
	renews  int          // requests
	reportN int          // requests
	polls   int
	regs    int
	early   int                              // report requests of a start that has not registered
	answer  func(task.Report) (string, bool) // overrides codes
	onGrant func(*gshard)
	onWrite func(task.Token, string)
	onRange func(transport.RangeRequest)
}

type gshard struct {
	ref     task.ShardRef
	state   task.ShardState
	token   task.Token
	node    task.NodeID
	due     task.Instant
	tries   int
	ready   task.Instant
	last    *task.Checkpoint
	ends    []task.End
	granted time.Time
}

type gnode struct {
	incarnation uint64
	slots       int
	park        *park
}

type park struct {
	want  int
	from  time.Time
	reply chan struct{} // closed when the node shall look
}

func newGranter() *granter {
	return &granter{rate: 1, cut: 1, origin: time.Now(), specs: map[task.JobID]*task.Spec{}, nodes: map[task.NodeID]*gnode{},
		reports: map[task.Token]int{}, orders: map[task.Token][]transport.StopOrder{}}
}

// job adds a job of one stage.
func (g *granter) job(id task.JobID, shards int, lease task.LeaseTerms) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.specs[id] = &task.Spec{Name: string(id), Stages: []task.StageSpec{{Name: task.DefaultStage, Shards: shards, Lease: lease}}}
	for i := range shards {
		g.shards = append(g.shards, &gshard{ref: task.ShardRef{Job: id, Shard: i}})
	}
	g.serve()
}

func (g *granter) clock() task.Instant {
	unled := g.unled
	if g.down {
		unled += time.Since(g.downAt)
	}
	return task.Instant(float64(task.MillisOf(time.Since(g.origin)-unled)) * g.rate)
}

// setDown takes the leader away, or brings the next one.
func (g *granter) setDown(down bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if down == g.down {
		return
	}
	if down {
		g.downAt = time.Now()
		for _, n := range g.nodes {
			g.wakePark(n)
		}
	} else {
		g.unled += time.Since(g.downAt)
	}
	g.down = down
}

// tend expires what is due; call it in a loop.
func (g *granter) tend() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		return
	}
	now := g.clock()
	for _, s := range g.shards {
		if s.state.Leased() && s.due <= now {
			g.expired = append(g.expired, s.token)
			g.end(s, task.EndLeaseExpired, task.ShardPending)
		}
	}
	g.serve()
}

func (g *granter) end(s *gshard, e task.End, to task.ShardState) {
	s.state, s.node = to, ""
	s.ends = append(s.ends, e)
	delete(g.orders, s.token)
}

func (g *granter) held(id task.NodeID) (out []*gshard) {
	for _, s := range g.shards {
		if s.node == id {
			out = append(out, s)
		}
	}
	return out
}

// serve grants to parked polls and wakes those with news. Callers hold mu.
func (g *granter) serve() {
	if g.down {
		return
	}
	ids := make([]task.NodeID, 0, len(g.nodes))
	for id := range g.nodes {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		n := g.nodes[id]
		if n.park == nil {
			continue
		}
		news := false
		room := min(n.park.want, n.slots-len(g.held(id)))
		for _, s := range g.shards {
			if room <= 0 {
				break
			}
			if s.state == task.ShardPending && s.ready <= g.clock() {
				g.grant(s, id)
				room--
				news = true
			}
		}
		for _, s := range g.held(id) {
			news = news || len(g.orders[s.token]) > 0
		}
		if news {
			g.wakePark(n)
		}
	}
}

func (g *granter) wakePark(n *gnode) {
	if n.park != nil {
		close(n.park.reply)
		n.park = nil
	}
}

func (g *granter) grant(s *gshard, id task.NodeID) {
	g.last++
	first := g.specs[s.ref.Job].Stages[0].Lease.FirstTTL()
	s.token, s.node, s.state, s.granted = g.last, id, task.ShardAssigned, time.Now()
	s.due = g.clock().Add(task.Millis(float64(first) * g.cut))
	s.tries++
	if g.onGrant != nil {
		g.onGrant(s)
	}
}

func (g *granter) find(t task.Token) *gshard {
	for _, s := range g.shards {
		if s.token == t && s.state.Leased() {
			return s
		}
	}
	return nil
}

// order tells the holder of a shard to stop.
func (g *granter) order(shard int, reason task.StopReason, grace task.Millis) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.shards[shard].token
	g.orders[t] = append(g.orders[t], transport.StopOrder{Token: t, Reason: reason, Grace: grace})
	g.serve()
}

// tally counts shards by state.
func (g *granter) tally() (n [task.ShardStates]int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.shards {
		n[s.state]++
	}
	return n
}

// see reads a counter under the lock.
func (g *granter) see(n *int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return *n
}

// look reads or changes under the lock.
func (g *granter) look(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}
