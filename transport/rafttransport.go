package transport

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/task"
)

// RaftTimeout bounds one read or write of Raft; a snapshot gets more by its size.
const RaftTimeout = 5 * time.Second

// maxAppendBytes bounds the entries of one AppendEntries request. Raft counts entries only (512), which for large ones is
// more than Wi-Fi carries within RaftTimeout: the follower would never catch up.
const maxAppendBytes = 1 << 20

// RaftTransport is raft.Transport over a RaftLayer with the guards that hashicorp/raft 1.8 needs (RAFT.md 0):
//
//   - No fast path for heartbeats (#695). Handled beside the main loop, a heartbeat can raise the term under a leader that has
//     just woken, and the next request is logged as if the new leader had written it.
//   - Each request names the node whose stream it came on, as id and as address: votes are remembered by address.
//   - A node whose log is empty votes for nobody: it may have lost a log in which a lease was granted.
//   - Only the known leader may ask for a transfer of leadership; Raft takes TimeoutNow from anybody.
//   - A stand-by that asks for votes while no leader is known was promoted by an entry that this node has not got yet. Raft
//     refuses it for what it was; if the leader dies in that moment, and the vote is needed, nobody can ever be elected. Its log
//     is longer, so here it gets the vote, as in the Raft paper (4.2.2).
//
// To know whose stream a request came on, each peer has a raft.NetworkTransport of its own for what it sends.
type RaftTransport struct {
	layer   *RaftLayer
	out     *raft.NetworkTransport
	consume chan raft.RPC
	done    chan struct{}
	wg      sync.WaitGroup // one forwarder per inbox
	guard   atomic.Pointer[raftGuard]
	voting  atomic.Bool // the log was seen not to be empty

	mu     sync.Mutex
	in     map[task.NodeID]*raftInbox
	closed bool
}

// raftInbox takes the requests of one peer.
type raftInbox struct {
	stream *raftStream
	trans  *raft.NetworkTransport
}

var (
	_ raft.Transport   = (*RaftTransport)(nil)
	_ raft.WithPreVote = (*RaftTransport)(nil)
	_ raft.WithClose   = (*RaftTransport)(nil)
)

// NewRaftTransport starts a transport on the layer; one at a time. Until Guard is called it takes neither votes nor transfers.
func NewRaftTransport(l *RaftLayer) *RaftTransport {
	t := &RaftTransport{
		layer: l, consume: make(chan raft.RPC), done: make(chan struct{}), in: map[task.NodeID]*raftInbox{},
	}
	t.out = newNetworkTransport(newRaftStream(l))
	l.attach(t.accept)
	return t
}

func newNetworkTransport(s *raftStream) *raft.NetworkTransport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: s, MaxPool: 3, Timeout: RaftTimeout, Logger: HCLog(s.layer.Log),
	})
}

// Guard tells the transport how to learn the leader that this node knows, whether its log (or a snapshot) holds anything, and
// who is in its configuration without a vote.
func (t *RaftTransport) Guard(leader func() task.NodeID, hasLog func() bool, standBy func(task.NodeID) bool) {
	t.guard.Store(&raftGuard{leader: leader, hasLog: hasLog, standBy: standBy})
}

// accept hands a stream to the inbox of its peer.
func (t *RaftTransport) accept(c *raftConn) bool {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return false
	}
	box := t.in[c.peer]
	if box == nil {
		stream := newRaftStream(t.layer)
		box = &raftInbox{stream: stream, trans: newNetworkTransport(stream)}
		t.in[c.peer] = box
		t.wg.Go(func() { t.forward(c.peer, box) })
	}
	t.mu.Unlock()
	return box.stream.offer(c)
}

// forward passes the requests of one peer on to Raft.
func (t *RaftTransport) forward(from task.NodeID, box *raftInbox) {
	for {
		select {
		case rpc := <-box.trans.Consumer():
			if err := t.check(from, rpc.Command); err != nil {
				refuse(rpc, err)
				continue
			}
			select {
			case t.consume <- rpc:
			case <-t.done:
				return
			}
		case <-t.done:
			return
		}
	}
}

// refuse answers a request without asking Raft. A snapshot that comes with it is read to its end, or the next request on the
// stream would be taken for part of it.
func refuse(rpc raft.RPC, err error) {
	if rpc.Reader != nil {
		_, _ = io.Copy(io.Discard, rpc.Reader)
	}
	rpc.Respond(nil, err)
}

// Close ends all streams of this transport and waits for its goroutines. Call it before raft.Shutdown too: requests under way
// then fail at once instead of holding the shutdown up until their time-out.
func (t *RaftTransport) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	t.layer.detach()
	boxes := make([]*raft.NetworkTransport, 0, len(t.in)+1)
	for _, box := range t.in {
		boxes = append(boxes, box.trans)
	}
	t.mu.Unlock()
	close(t.done)
	for _, trans := range append(boxes, t.out) {
		trans.CloseStreams()
		_ = trans.Close()
	}
	t.layer.dropIf(func(*raftConn) bool { return true })
	t.wg.Wait()
	return nil
}

// Consumer gives the requests of peers to Raft.
func (t *RaftTransport) Consumer() <-chan raft.RPC { return t.consume }

// LocalAddr is the node's UUID.
func (t *RaftTransport) LocalAddr() raft.ServerAddress { return t.out.LocalAddr() }

// SetHeartbeatHandler does nothing, so that heartbeats wait their turn in the main loop (#695). The price: LeaderLeaseTimeout
// must exceed twice the worst fsync (see node.RaftConfig).
func (t *RaftTransport) SetHeartbeatHandler(func(raft.RPC)) {}

// AppendEntries sends entries, as many as maxAppendBytes allows; Raft goes on after the last one that was sent.
func (t *RaftTransport) AppendEntries(id raft.ServerID, target raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	trimEntries(req)
	return t.out.AppendEntries(id, target, req, resp)
}

// AppendEntriesPipeline does the same with two requests under way.
func (t *RaftTransport) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	p, err := t.out.AppendEntriesPipeline(id, target)
	if err != nil {
		return nil, err
	}
	return newRaftPipeline(p), nil
}

// trimEntries shortens a request to maxAppendBytes, but keeps one entry. Raft reads from the request itself how far it got.
func trimEntries(req *raft.AppendEntriesRequest) {
	bytes := 0
	for i, entry := range req.Entries {
		bytes += len(entry.Data) + len(entry.Extensions)
		if bytes > maxAppendBytes && i > 0 {
			req.Entries = req.Entries[:i]
			return
		}
	}
}

// RequestVote asks for a vote.
func (t *RaftTransport) RequestVote(id raft.ServerID, target raft.ServerAddress, req *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	return t.out.RequestVote(id, target, req, resp)
}

// RequestPreVote asks whether a vote would be granted.
func (t *RaftTransport) RequestPreVote(id raft.ServerID, target raft.ServerAddress, req *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	return t.out.RequestPreVote(id, target, req, resp)
}

// InstallSnapshot sends a snapshot.
func (t *RaftTransport) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, req *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	return t.out.InstallSnapshot(id, target, req, resp, data)
}

// TimeoutNow asks a voter to take over at once.
func (t *RaftTransport) TimeoutNow(id raft.ServerID, target raft.ServerAddress, req *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	return t.out.TimeoutNow(id, target, req, resp)
}

// EncodePeer writes a peer's name.
func (t *RaftTransport) EncodePeer(id raft.ServerID, addr raft.ServerAddress) []byte {
	return t.out.EncodePeer(id, addr)
}

// DecodePeer reads it.
func (t *RaftTransport) DecodePeer(b []byte) raft.ServerAddress { return t.out.DecodePeer(b) }
