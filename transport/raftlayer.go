package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"lanjobs/task"
)

// HandshakeTimeout bounds what comes before a stream is in use.
const HandshakeTimeout = 5 * time.Second

// RaftDialer opens an authenticated stream for Raft to a node, wherever that is now. It must verify that whoever answers is id.
type RaftDialer func(ctx context.Context, id task.NodeID) (net.Conn, error)

// Identified is a stream whose other end proved who it is.
type Identified interface {
	PeerID() task.NodeID
}

// RaftLayerConfig is what a RaftLayer is told.
type RaftLayerConfig struct {
	Self       task.NodeID
	Cluster    string
	Generation uint64
	Session    func() Session // of this node's gossip, now
	Dial       RaftDialer
	// Admit may refuse a node that proved who it is: it returns an error that wraps ErrRemoved or ErrCopied. nil admits all.
	Admit func(id task.NodeID, s Session) error
	// Refused hears of refusals in both directions: By is the one that refused. A node that hears ErrRemoved of itself must
	// stop its Raft. May be nil; must return soon.
	Refused func(*Refusal)
	Clock   task.Clock
	Log     *slog.Logger
}

// RaftLayer opens and accepts the streams of Raft, each with a prologue that names both ends, the cluster and its generation.
// It lives as long as the node; the Raft running on it may be stopped and started again (see RaftTransport).
type RaftLayer struct {
	RaftLayerConfig
	wg sync.WaitGroup // handshakes

	mu     sync.Mutex
	conns  map[*raftConn]struct{}
	sink   func(*raftConn) bool // the running RaftTransport; false = it has just ended
	closed bool
}

// NewRaftLayer makes a layer that has no streams yet.
func NewRaftLayer(cfg RaftLayerConfig) *RaftLayer {
	return &RaftLayer{RaftLayerConfig: cfg, conns: map[*raftConn]struct{}{}}
}

// raftConn is an open stream in the registry.
type raftConn struct {
	net.Conn
	layer *RaftLayer
	peer  task.NodeID // "" until the handshake is through
}

// Close also strikes it off the registry.
func (c *raftConn) Close() error {
	c.layer.mu.Lock()
	delete(c.layer.conns, c)
	c.layer.mu.Unlock()
	return c.Conn.Close()
}

// Serve accepts streams until the listener fails; handshakes run beside each other.
func (l *RaftLayer) Serve(ln net.Listener) error {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return err
		}
		c, err := l.register(conn, "")
		if err != nil {
			_ = conn.Close()
			return err
		}
		go func() {
			defer l.wg.Done()
			l.welcome(c)
		}()
	}
}

// Close closes all streams and waits for handshakes. The listener given to Serve is its owner's.
func (l *RaftLayer) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.dropIf(func(*raftConn) bool { return true })
	l.wg.Wait()
}

// DropPeer closes all streams from and to a node: its session or address is another now, and a stream to the old place would
// only block until its time-out.
func (l *RaftLayer) DropPeer(id task.NodeID) {
	l.dropIf(func(c *raftConn) bool { return c.peer == id })
}

func (l *RaftLayer) dropIf(match func(*raftConn) bool) {
	l.mu.Lock()
	var drop []*raftConn
	for c := range l.conns {
		if match(c) {
			drop = append(drop, c)
		}
	}
	l.mu.Unlock()
	for _, c := range drop {
		_ = c.Close()
	}
}

// register enters a stream; one without a peer yet counts as a handshake that Close waits for.
func (l *RaftLayer) register(conn net.Conn, peer task.NodeID) (*raftConn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, net.ErrClosed
	}
	if peer == "" {
		l.wg.Add(1)
	}
	c := &raftConn{Conn: conn, layer: l, peer: peer}
	l.conns[c] = struct{}{}
	return c, nil
}

// attach makes sink the receiver of accepted streams; detach ends that.
func (l *RaftLayer) attach(sink func(*raftConn) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sink = sink
}

func (l *RaftLayer) detach() { l.attach(nil) }

// dial opens a stream to a node and introduces this one.
func (l *RaftLayer) dial(ctx context.Context, id task.NodeID) (net.Conn, error) {
	conn, err := l.Dial(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("dial %s for raft: %w", id, err)
	}
	c, err := l.register(conn, id)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	if err := l.introduce(ctx, c); err != nil {
		_ = c.Close()
		var r *Refusal
		if errors.As(err, &r) {
			l.refused(r)
		}
		return nil, err
	}
	return c, nil
}

func (l *RaftLayer) introduce(ctx context.Context, c *raftConn) error {
	free := boundConn(ctx, c)
	b, err := prologue{
		Version: prologueVersion, Generation: l.Generation, Cluster: l.Cluster,
		From: l.Self, Session: l.Session().String(), To: c.peer,
	}.encode()
	if err != nil {
		return err
	}
	if _, err := c.Write(b); err != nil {
		return fmt.Errorf("raft prologue: %w", err)
	}
	if err := readAnswer(c, c.peer, l.Self); err != nil {
		return err
	}
	if !free() {
		return context.Cause(ctx)
	}
	return nil
}

// welcome reads the prologue of an accepted stream and hands the stream to Raft, or refuses it.
func (l *RaftLayer) welcome(c *raftConn) {
	ctx, cancel := WithTimeout(context.Background(), l.Clock, HandshakeTimeout)
	defer cancel()
	free := boundConn(ctx, c)
	p, err := readPrologue(c)
	if err != nil {
		_ = c.Close()
		l.Log.Debug("raft stream ended in its prologue", "remote", c.RemoteAddr(), "error", err)
		return
	}
	l.mu.Lock()
	sink := l.sink
	l.mu.Unlock()
	reason := l.judge(c, p)
	if reason == nil && sink == nil {
		reason = ErrNotRunning
	}
	if reason != nil {
		r := &Refusal{By: l.Self, To: p.From, Reason: reason, Detail: reason.Error()}
		_ = writeAnswer(c, r)
		_ = c.Close()
		l.refused(r)
		return
	}
	l.mu.Lock()
	c.peer = p.From
	l.mu.Unlock()
	if writeAnswer(c, nil) != nil || !free() || !sink(c) {
		_ = c.Close()
	}
}

// judge decides whether a prologue is acceptable. The order matters: who is of another cluster must learn just that.
func (l *RaftLayer) judge(c *raftConn, p prologue) error {
	s, err := ParseSession(p.Session)
	proven, isProven := c.Conn.(Identified)
	switch {
	case p.Version != prologueVersion:
		return fmt.Errorf("%w: %d, this one speaks %d", ErrWrongVersion, p.Version, prologueVersion)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrWrongVersion, err)
	case p.Cluster != l.Cluster:
		return ErrWrongCluster
	case isProven && proven.PeerID() != p.From:
		return fmt.Errorf("%w: %s, not %s", ErrWrongIdentity, proven.PeerID(), p.From)
	case p.Generation != l.Generation:
		return generationError(p.Generation, l.Generation)
	case p.To != l.Self:
		return fmt.Errorf("%w: %s, not %s", ErrWrongNode, l.Self, p.To)
	case l.Admit != nil:
		return l.Admit(p.From, s)
	}
	return nil
}

func (l *RaftLayer) refused(r *Refusal) {
	l.Log.Debug("raft stream refused", "by", r.By, "to", r.To, "reason", r.Reason, "detail", r.Detail)
	if l.Refused != nil {
		l.Refused(r)
	}
}
