package transport

import (
	"context"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/task"
)

// raftStream is a raft.StreamLayer on a RaftLayer: Addr is the node's UUID, so that the configuration of the cluster, votes and
// the leader's name never hold an address (R2).
type raftStream struct {
	layer  *RaftLayer
	queue  chan net.Conn
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
}

var _ raft.StreamLayer = (*raftStream)(nil)

func newRaftStream(l *RaftLayer) *raftStream {
	ctx, cancel := context.WithCancel(context.Background())
	return &raftStream{layer: l, queue: make(chan net.Conn), ctx: ctx, cancel: cancel}
}

// offer gives an accepted stream to Raft; false after Close.
func (s *raftStream) offer(c net.Conn) bool {
	select {
	case s.queue <- c:
		return true
	case <-s.ctx.Done():
		return false
	}
}

func (s *raftStream) Accept() (net.Conn, error) {
	select {
	case c := <-s.queue:
		return c, nil
	case <-s.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (s *raftStream) Close() error {
	s.cancel()
	return nil
}

func (s *raftStream) Addr() net.Addr { return nodeAddr(s.layer.Self) }

func (s *raftStream) Dial(id raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := WithTimeout(s.ctx, s.layer.Clock, timeout)
	defer cancel()
	return s.layer.dial(ctx, task.NodeID(id))
}

// nodeAddr is a node's UUID where a net.Addr is wanted.
type nodeAddr task.NodeID

func (nodeAddr) Network() string  { return "lanjobs" }
func (a nodeAddr) String() string { return string(a) }
