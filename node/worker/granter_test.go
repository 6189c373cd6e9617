package worker

import (
	"bytes"
	"context"
	"encoding/json"
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
	answer  func(task.Report) (string, bool) // overrides codes
	onGrant func(*gshard)
	onWrite func(task.Token, string)
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
	draining    bool
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

func (g *granter) register(id task.NodeID, r *transport.RegisterRequest) (*transport.RegisterReply, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.regs++
	if g.down {
		return nil, task.ErrNoLeader
	}
	if n := g.nodes[id]; n != nil && r.Incarnation < n.incarnation {
		return nil, task.ErrConflict
	}
	again := false
	if n := g.nodes[id]; n != nil {
		again = n.incarnation == r.Incarnation
		g.wakePark(n)
	}
	g.nodes[id] = &gnode{incarnation: r.Incarnation, slots: r.Info.Slots}
	reply := &transport.RegisterReply{}
	for _, s := range g.held(id) {
		switch {
		case slices.Contains(r.Held, s.token):
			reply.Keep = append(reply.Keep, s.token)
		case again: // a repeat may be older than what was granted since
		default:
			g.freed = append(g.freed, s.token)
			g.end(s, task.EndNodeRestarted, task.ShardPending)
		}
	}
	g.serve()
	return reply, nil
}

func (g *granter) poll(ctx context.Context, id task.NodeID, r *transport.PollRequest) (*transport.PollReply, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.polls++
	n := g.nodes[id]
	switch {
	case g.down:
		return nil, task.ErrNoLeader
	case n == nil || n.incarnation != r.Incarnation:
		return &transport.PollReply{Unregistered: true}, nil
	}
	g.wakePark(n)
	arrived := time.Now()
	p := &park{want: r.Want, from: arrived, reply: make(chan struct{})}
	n.park = p
	if reply := g.news(id, r, arrived); len(reply.Assignments) > 0 {
		n.park = nil
		return reply, nil
	}
	g.serve()
	hold := time.NewTimer(r.Hold.Duration())
	defer hold.Stop()
	g.mu.Unlock()
	select {
	case <-p.reply:
	case <-hold.C:
	case <-ctx.Done():
	}
	g.mu.Lock()
	if n.park == p {
		n.park = nil
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case g.down:
		return nil, task.ErrNoLeader
	}
	return g.news(id, r, arrived), nil
}

// news is what the node does not know or has to do. A grant older than the poll's arrival must be renewed first.
func (g *granter) news(id task.NodeID, r *transport.PollRequest, arrived time.Time) *transport.PollReply {
	reply := &transport.PollReply{}
	for _, s := range g.held(id) {
		reply.Orders = append(reply.Orders, g.orders[s.token]...)
		delete(g.orders, s.token)
		if s.state != task.ShardAssigned || slices.Contains(r.Holding, s.token) {
			continue
		}
		reply.Assignments = append(reply.Assignments, task.Assignment{Job: s.ref.Job, Stage: s.ref.Stage, Shard: s.ref.Shard, Attempt: s.tries,
			Token: s.token, FirstTTL: g.specs[s.ref.Job].Stages[0].Lease.FirstTTL(), MustRenew: s.granted.Before(arrived), Checkpoint: s.last})
	}
	return reply
}

func (g *granter) renew(id task.NodeID, r *transport.RenewRequest) (*transport.RenewReply, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.renews++
	n := g.nodes[id]
	switch {
	case g.down:
		return nil, task.ErrNoLeader
	case n == nil || n.incarnation != r.Incarnation:
		return &transport.RenewReply{Unregistered: true}, nil
	}
	reply := &transport.RenewReply{}
	for _, t := range r.Tokens {
		s := g.find(t)
		if s == nil || s.node != id {
			reply.Lost = append(reply.Lost, t)
			continue
		}
		ttl := g.specs[s.ref.Job].Stages[0].Lease.TTL
		s.due, s.state = g.clock().Add(task.Millis(float64(ttl)*g.cut)), task.ShardRunning
		reply.Renewed = append(reply.Renewed, transport.Renewal{Token: t, TTL: ttl})
		reply.Orders = append(reply.Orders, g.orders[t]...)
		delete(g.orders, t)
	}
	return reply, nil
}

func (g *granter) report(id task.NodeID, r *transport.ReportRequest) (*transport.ReportReply, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reportN++
	if g.down {
		return nil, task.ErrNoLeader
	}
	reply := &transport.ReportReply{}
	for _, rep := range r.Reports {
		reply.Codes = append(reply.Codes, g.takeReport(id, rep))
	}
	g.serve()
	return reply, nil
}

func (g *granter) takeReport(id task.NodeID, rep task.Report) string {
	if g.answer != nil {
		if code, own := g.answer(rep); own {
			return code
		}
	}
	s := g.find(rep.Token)
	if s == nil || s.node != id {
		if g.reports[rep.Token] > 0 {
			g.reports[rep.Token]++
			return ""
		}
		g.stale++
		return "stale_token"
	}
	g.reports[rep.Token]++
	switch task.DefaultRetry().Judge(rep.Outcome) {
	case task.VerdictSucceeded:
		g.end(s, rep.Outcome.End, task.ShardSucceeded)
	case task.VerdictCancelled:
		g.end(s, rep.Outcome.End, task.ShardCancelled)
	case task.VerdictDefer:
		g.end(s, rep.Outcome.End, task.ShardPending)
		s.ready = g.clock().Add(rep.Outcome.Wait)
	default:
		g.end(s, rep.Outcome.End, task.ShardPending)
	}
	return ""
}

// do answers the other calls.
func (g *granter) do(id task.NodeID, method transport.Method, request, reply any) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		return task.ErrNoLeader
	}
	switch r := request.(type) {
	case *transport.SpecRequest:
		spec := g.specs[r.Job]
		if spec == nil {
			return task.ErrNotFound
		}
		reply.(*transport.SpecReply).JSON, _ = json.Marshal(spec)
	case *transport.CheckpointRequest:
		s := g.find(r.Token)
		if s == nil || s.node != id {
			return task.ErrStaleToken
		}
		if s.last != nil && (r.Seq < s.last.Seq || r.Seq == s.last.Seq && !bytes.Equal(r.Data, s.last.Data)) {
			return task.ErrConflict
		}
		s.last = &task.Checkpoint{Seq: r.Seq, Data: bytes.Clone(r.Data)}
		g.wrote(r.Token, "checkpoint")
	case *transport.OutputRequest:
		if s := g.find(r.Token); s == nil || s.node != id {
			return task.ErrStaleToken
		}
		g.wrote(r.Token, "output")
	case *transport.ProgressRequest:
		g.wrote(r.Token, "progress")
	case *transport.StatePutRequest:
		g.wrote(r.Token, "state "+string(r.RequestID))
	case *transport.InputsRequest:
		reply.(*transport.InputsReply).Inputs = []transport.Input{{Shard: 0, Name: r.Name, Value: "v"}}
	case *transport.StateGetRequest:
		*reply.(*transport.StateValue) = transport.StateValue{Version: 3, Value: []byte(r.Key)}
	}
	return nil
}

func (g *granter) wrote(t task.Token, what string) {
	if g.onWrite != nil {
		g.onWrite(t, what)
	}
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
