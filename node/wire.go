package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"lanjobs/fsm"
	"lanjobs/node/api"
	"lanjobs/task"
	"lanjobs/transport"
)

// wire is a member's side of the network: one port, TCP and UDP, and the phone book of where the others are.
type wire struct {
	trust  *transport.Trust
	mux    *transport.Mux
	book   *transport.Book
	dialer *transport.Dialer
	gossip *transport.Gossip
	raft   net.Listener

	mu      sync.Mutex
	started time.Duration
	lost    map[task.NodeID]time.Duration // Awake() when gossip lost a node; hints for status pages
	refused map[task.NodeID]string        // why the last connection to or from a node was refused, until it is heard again
}

// note keeps a refusal for status pages.
func (w *wire) note(id task.NodeID, r *transport.Refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused[id] = r.Reason.Error()
}

// refusalOf is the last refusal of a node that is not heard of, "" if there was none.
func (w *wire) refusalOf(id task.NodeID) string {
	if w.gossip.Alive(id) {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused[id]
}

// saw notes that gossip has found or lost a node.
func (w *wire) saw(id task.NodeID, alive bool, now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if alive {
		delete(w.lost, id)
		delete(w.refused, id)
	} else {
		w.lost[id] = now
	}
}

// away is how long a node has not been heard of; 0 = it answers.
func (w *wire) away(id task.NodeID, now time.Duration) time.Duration {
	if w.gossip.Alive(id) {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.lost[id]
	if !ok {
		at = w.started // not met since this start
	}
	return max(now-at, time.Millisecond)
}

// openNetwork makes the ways to other nodes. A this-machine-only node has none, and nothing listens.
func (m *machine) openNetwork() error {
	cfg := transport.RaftLayerConfig{Self: m.identity.NodeID, Cluster: m.identity.Cluster.ID, Generation: m.identity.Cluster.Generation,
		Session: func() transport.Session { return transport.Session{} }, Dial: noNetwork, Admit: m.admitStream, Refused: m.refusal, Clock: m.clock, Log: m.log}
	dial := noNetwork
	if m.identity.Member() {
		w, err := m.openWire()
		if err != nil {
			return err
		}
		m.wire = w
		cfg.Session, cfg.Dial = w.gossip.Session, w.dialer.To(transport.ALPNRaft)
		dial = w.dialer.To(transport.ALPNRPC)
	}
	m.layer = transport.NewRaftLayer(cfg)
	m.later(func() error { m.layer.Close(); return nil })
	m.caller = transport.NewClient(transport.ClientConfig{Self: m.identity.NodeID, Local: selfCalls{m}, Dial: dial, Name: m.nameOf,
		Generation: m.identity.Cluster.Generation, OtherGeneration: m.heard.hear})
	m.later(func() error { m.caller.Close(); return nil })
	if m.wire != nil {
		stop := m.wire.book.Watch(m.reconnect) // a new address: connections to the old one lead nowhere
		m.later(func() error { stop(); return nil })
	}
	return nil
}

// removed tells whether a node was removed from the cluster, as far as this member has applied.
func (m *machine) removed(id task.NodeID) bool {
	core := m.built.Load()
	return core != nil && core.Gone(id)
}

// noClient tells whether an id is not, or no longer, that of a client, as far as this member has applied.
func (m *machine) noClient(id string) (gone bool) {
	if core := m.built.Load(); core != nil { // not while the log is read again, before anything is served
		core.Read(func(s *fsm.State) { gone = s.Client(id) == nil })
	}
	return gone
}

func noNetwork(_ context.Context, id task.NodeID) (net.Conn, error) {
	return nil, task.NewProblem(task.ErrNoLeader, fmt.Sprintf("this machine belongs to no cluster and cannot reach %s", id), "")
}

// selfCalls answers this node's calls to itself; the core is built after the caller that needs it.
type selfCalls struct{ m *machine }

func (s selfCalls) ServeCall(ctx context.Context, from task.NodeID, method transport.Method, body []byte) (any, error) {
	return s.m.core.ServeCall(ctx, from, method, body)
}

// openWire binds the port and prepares what uses it. Nothing is accepted before start.
func (m *machine) openWire() (*wire, error) {
	addr, err := m.listenAddr()
	if err != nil {
		return nil, err
	}
	tcp, udp, err := transport.ListenPort(context.Background(), addr)
	if err != nil {
		return nil, task.NewProblem(task.ErrConflict, fmt.Sprintf("the cluster port cannot be opened: %v", err), "If another program uses it, choose another: --listen ADDR:PORT")
	}
	m.later(func() error { _ = tcp.Close(); _ = udp.Close(); return nil }) // a second close is no error worth telling
	w := &wire{started: m.clock.Awake(), lost: map[task.NodeID]time.Duration{}, refused: map[task.NodeID]string{}}
	if w.book, err = transport.OpenBook(bookStore{m.store}, m.clock, m.log); err != nil {
		return nil, err
	}
	if w.trust, err = transport.NewTrust(m.identity, m.clock, m.removed); err != nil {
		return nil, err
	}
	w.mux = transport.NewMux(transport.MuxConfig{Listener: tcp, Trust: w.trust, Limits: transport.DefaultMuxLimits(), Clock: m.clock, Log: m.log})
	w.dialer = transport.NewDialer(transport.DialerConfig{Trust: w.trust, Book: w.book, Net: transport.DialTCP, Refused: m.refusal, Clock: m.clock})
	w.raft = w.mux.Open(transport.ALPNRaft)
	w.gossip = transport.NewGossip(transport.GossipConfig{
		Self: m.identity.NodeID, Cluster: m.identity.Cluster.ID, Key: m.identity.Cluster.GossipKey, NextSession: m.nextSession,
		About: func() transport.About {
			i := m.info()
			return transport.About{Name: i.Name, Version: i.Version, Level: i.Level, Voter: i.Voter, Generation: m.identity.Cluster.Generation}
		},
		Listen: addr, UDP: udp, Streams: transport.NewGossipStreams(w.mux, w.dialer), Book: w.book,
		Announce: m.announcement,
		Seeds:    func() []string { return m.settings.Seeds }, Gone: m.removed, Interfaces: transport.SystemInterfaces, Toward: transport.LocalToward,
		Changed: func(id task.NodeID, alive bool) {
			w.saw(id, alive, m.clock.Awake())
			m.core.lookAtSeats() // gossip runs after everything is built
		},
		Clock: m.clock, Log: m.log,
	})
	return w, nil
}

// announcement is what a machine that looks for a cluster is told of this one: nothing if it takes no part in its cluster any more.
func (m *machine) announcement() transport.Announcement {
	a := transport.Announcement{Cluster: m.identity.Cluster.Name, Node: m.identity.Name, Version: m.cfg.Version}
	if f, err := m.identity.Cluster.Fingerprint(); err == nil && m.trouble.problem() == nil {
		a.CA = f.ShortCA()
	}
	return a
}

// start serves the port.
func (w *wire) start(part func(func(context.Context) error), m *machine) {
	part(w.mux.Run)
	part(func(ctx context.Context) error { return m.layer.Serve(w.raft) })
	part(func(ctx context.Context) error { <-ctx.Done(); return w.raft.Close() })
	part(w.gossip.Run)
	part(m.watchPlace)
	part(m.standing.watch)
	clients := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if proof := transport.ClientFrom(r.Context()); proof.ID != "" {
			r = r.WithContext(api.WithClient(r.Context(), proof))
		}
		m.api.ServeHTTP(rw, r)
	})
	part(func(ctx context.Context) error {
		return transport.Serve(ctx, w.mux, transport.Services{Calls: m.core, API: clients, Join: transport.JoinHandler(m.admit),
			Pair: transport.PairHandler(m.pair), Login: transport.LoginHandler(m.login), Clock: m.clock, Log: m.log})
	})
}

// listenAddr is the cluster port's address: the command line's, else what init or join was told.
func (m *machine) listenAddr() (netip.AddrPort, error) { return listenAddr(m.cfg, m.settings) }

func listenAddr(cfg Config, s Settings) (netip.AddrPort, error) {
	text := cfg.Listen
	if s.Listen != "" && text == DefaultConfig().Listen {
		text = s.Listen
	}
	addr, err := netip.ParseAddrPort(text)
	if err != nil {
		return addr, task.NewProblem(task.ErrInvalid, fmt.Sprintf("--listen %q is not ADDR:PORT", text), "For example [::]:7420, or one address of this machine with a port.")
	}
	return addr, nil
}

// nextSession makes a session of gossip greater than all before it on this machine.
func (m *machine) nextSession() (transport.Session, error) {
	n, err := m.store.NextSession()
	return transport.Session{Counter: n, Random: rand.Uint32()}, err
}

// nameOf is a node's name for people, its id if none is known.
func (m *machine) nameOf(id task.NodeID) string {
	if id == m.identity.NodeID {
		return m.identity.Name
	}
	if m.wire != nil {
		if p, ok := m.wire.book.Peer(id); ok && p.Name != "" {
			return p.Name
		}
	}
	return string(id)
}
