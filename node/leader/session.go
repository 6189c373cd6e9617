package leader

import (
	"sync"
	"time"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
	"lanjobs/transport"
)

// poll is one parked question for work. It is answered once.
type poll struct {
	node     task.NodeID
	want     int
	granting bool // grants for it are in flight
	reply    chan *transport.PollReply
}

// session is what a term knows of one node; nothing of it is replicated.
type session struct {
	poll   *poll
	heard  time.Duration // Awake() of its last call in this term
	ever   bool          // it was heard in this term
	load   task.Load
	orders map[task.Token]time.Duration // stop orders that hold, and when they were sent
	specs  map[string]bool              // digests of the specs sent
	whole  bool                         // in this term it has said all of itself, see owesInfo
}

// Seen is what status pages show of a session.
type Seen struct {
	Ago  time.Duration
	Load task.Load
}

// lateGrant is how long a poll whose hold is over waits for grants already in flight for it.
const lateGrant = 2 * time.Second

// sessions is the term's side of all nodes.
type sessions struct {
	cfg     Config
	nudge   func()
	started time.Duration

	mu       sync.Mutex // guards all below
	closed   bool
	nodes    map[task.NodeID]*session
	progress map[task.Token]string
}

func newSessions(cfg Config, nudge func()) *sessions {
	return &sessions{cfg: cfg, nudge: nudge, started: cfg.Clock.Awake(), nodes: map[task.NodeID]*session{}, progress: map[task.Token]string{}}
}

// touch notes that a node was heard.
func (s *sessions) touch(id task.NodeID, load task.Load) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.session(id)
	n.heard, n.load, n.ever = s.cfg.Clock.Awake(), load, true
}

// session gives a node's session, made if it is new. The caller holds mu.
func (s *sessions) session(id task.NodeID) *session {
	n := s.nodes[id]
	if n == nil {
		n = &session{specs: map[string]bool{}}
		s.nodes[id] = n
	}
	return n
}

// park puts a poll in the place of the node's earlier one, which is answered with nothing: its worker asks only once at a
// time, so it has given that one up. nil = the term is over.
func (s *sessions) park(id task.NodeID, want int) *poll {
	p := &poll{node: id, want: want, reply: make(chan *transport.PollReply, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	n := s.session(id)
	if n.poll != nil {
		n.poll.reply <- &transport.PollReply{}
	}
	n.poll = p
	s.nudge()
	return p
}

// dismiss answers a node's parked poll with nothing: it takes nothing more.
func (s *sessions) dismiss(id task.NodeID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.session(id); n.poll != nil {
		n.poll.reply <- &transport.PollReply{}
		n.poll = nil
	}
}

// unpark takes a poll back when its time is over. While grants are in flight for it it stays, unless forced: what they
// bring then goes to the node's next poll. True means that nothing was put into its reply.
func (s *sessions) unpark(p *poll, force bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[p.node]
	if n == nil || n.poll != p || p.granting && !force {
		return false
	}
	n.poll = nil
	return true
}

// answer gives a poll its assignments. None: every grant was refused, so it stays parked. If its worker has asked again
// since, that newer poll gets them, with MustRenew: it was sent after the grant. specs has the JSON of each digest.
func (s *sessions) answer(p *poll, as []task.Assignment, specs map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.granting = false
	n := s.nodes[p.node]
	if len(as) == 0 || n == nil || n.poll == nil {
		return // with no poll at all, the next one is told by unknownTo
	}
	if n.poll != p {
		if n.poll.granting {
			return // the same
		}
		for i := range as {
			as[i].MustRenew = true
		}
	}
	n.poll.reply <- &transport.PollReply{Assignments: as, Specs: n.unsent(as, specs)}
	n.poll = nil
}

// Bounds of the specs that go with assignments; the worker asks for any other.
const (
	maxSentSpec  = 64 << 10 // bytes of one
	maxSentSpecs = 1 << 20  // bytes in one answer
	maxKnownSent = 1000     // digests remembered per node
)

// unsent picks the specs of assignments that the node was not sent before, and notes them as sent. Should the answer be lost,
// or the node have dropped one, it asks.
func (n *session) unsent(as []task.Assignment, specs map[string]string) (out []transport.DigestedSpec) {
	room := maxSentSpecs
	for i := range as {
		digest := as[i].SpecDigest
		json := specs[digest]
		if digest == "" || n.specs[digest] || json == "" || len(json) > min(maxSentSpec, room) {
			continue
		}
		if len(n.specs) >= maxKnownSent {
			clear(n.specs)
		}
		n.specs[digest] = true
		room -= len(json)
		out = append(out, transport.DigestedSpec{Digest: digest, JSON: json})
	}
	return out
}

// restarted forgets what a node was sent: it has registered anew, perhaps with an empty memory. whole tells whether all that it said of
// itself was recorded.
func (s *sessions) restarted(id task.NodeID, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.session(id)
	n.whole = whole
	clear(n.specs)
}

// saidAll tells whether a node has said all of itself in this term.
func (s *sessions) saidAll(id task.NodeID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session(id).whole
}

// granting marks polls that grants are in flight for.
func (s *sessions) granting(polls map[task.NodeID]*poll) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range polls {
		p.granting = true
	}
}

// release is granting's undoing when their batch failed.
func (s *sessions) release(polls map[task.NodeID]*poll) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range polls {
		p.granting = false
	}
}

// offers gives what each node's parked poll can take, and the polls themselves.
func (s *sessions) offers() (map[task.NodeID]plan.Presence, map[task.NodeID]*poll) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, polls := make(map[task.NodeID]plan.Presence, len(s.nodes)), make(map[task.NodeID]*poll, len(s.nodes))
	for id, n := range s.nodes {
		p := plan.Presence{Heard: n.ever, Load: n.load}
		if n.poll != nil && !n.poll.granting {
			p.Want = n.poll.want
			polls[id] = n.poll
		}
		out[id] = p
	}
	return out, polls
}

// judge adds who is silent: a node not heard of for the registration TTL, counted from the start of the term at the earliest.
func (s *sessions) judge(st *fsm.State, presence map[task.NodeID]plan.Presence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Clock.Awake()
	for _, n := range st.Nodes() {
		id := n.Info.ID
		p := presence[id]
		p.Silent = now-s.lastHeard(id) >= plan.RegistrationTTL.Duration()
		presence[id] = p
	}
}

func (s *sessions) lastHeard(id task.NodeID) time.Duration {
	if n := s.nodes[id]; n != nil && n.ever {
		return n.heard
	}
	return s.started
}

// untilSilent is how long until the next node that is recorded as online may have to be called silent.
func (s *sessions) untilSilent(st *fsm.State) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, wait := s.cfg.Clock.Awake(), time.Hour
	for _, n := range st.Nodes() {
		if n.Online && n.Gone == "" {
			wait = min(wait, s.lastHeard(n.Info.ID)+plan.RegistrationTTL.Duration()-now)
		}
	}
	return wait
}

// close answers every parked poll: the term is over.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, n := range s.nodes {
		if n.poll != nil {
			close(n.poll.reply)
			n.poll = nil
		}
	}
}

func (s *sessions) seen(id task.NodeID) (Seen, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[id]
	if n == nil || !n.ever {
		return Seen{}, false
	}
	return Seen{Ago: s.cfg.Clock.Awake() - n.heard, Load: n.load}, true
}

func (s *sessions) setProgress(tok task.Token, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.progress) > 10_000 { // texts of attempts long over: the running ones will tell again
		clear(s.progress)
	}
	s.progress[tok] = text
}

func (s *sessions) progressOf(tok task.Token) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.progress[tok]
}
