package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/task"
	"lanjobs/transport"
	"lanjobs/transport/memnet"
)

// layerHost is one machine with a RaftLayer on a memnet host.
type layerHost struct {
	*transport.RaftLayer
	host    *memnet.Host
	serving sync.WaitGroup

	mu       sync.Mutex
	refusals []*transport.Refusal
}

// newLayer makes a machine; prepare may change its configuration.
func newLayer(n *memnet.Network, id task.NodeID, prepare func(*transport.RaftLayerConfig)) *layerHost {
	h := &layerHost{host: n.Host(id)}
	cfg := transport.RaftLayerConfig{
		Self: id, Cluster: "cluster-x", Generation: 1,
		Session: func() transport.Session { return transport.Session{Counter: 1} },
		Dial: func(ctx context.Context, to task.NodeID) (net.Conn, error) {
			return h.host.Dial(ctx, to, "raft")
		},
		Refused: func(r *transport.Refusal) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.refusals = append(h.refusals, r)
		},
		Clock: memnet.NewClock(), Log: discard,
	}
	if prepare != nil {
		prepare(&cfg)
	}
	h.RaftLayer = transport.NewRaftLayer(cfg)
	ln := h.host.Listen("raft")
	h.serving.Go(func() { _ = h.Serve(ln) })
	return h
}

// vote asks a node for its vote and gives the error.
func vote(t *transport.RaftTransport, from, to task.NodeID, change func(*raft.RequestVoteRequest)) error {
	req := &raft.RequestVoteRequest{RPCHeader: header(from), Term: 5}
	if change != nil {
		change(req)
	}
	return t.RequestVote(raft.ServerID(to), raft.ServerAddress(to), req, &raft.RequestVoteResponse{})
}

func header(id task.NodeID) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: []byte(id)}
}

// answerAll answers the requests that pass the guards, until the transport is closed.
func answerAll(t *transport.RaftTransport, done <-chan struct{}) (seen func() int) {
	var mu sync.Mutex
	count := 0
	go func() {
		for {
			select {
			case rpc := <-t.Consumer():
				mu.Lock()
				count++
				mu.Unlock()
				var resp any = &raft.RequestVoteResponse{Granted: true}
				switch rpc.Command.(type) {
				case *raft.InstallSnapshotRequest:
					_, _ = io.Copy(io.Discard, rpc.Reader)
					resp = &raft.InstallSnapshotResponse{Success: true}
				case *raft.TimeoutNowRequest:
					resp = &raft.TimeoutNowResponse{}
				}
				rpc.Respond(resp, nil)
			case <-done:
				return
			}
		}
	}()
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}

// pairOf is two machines with Raft transports on them; close ends all.
type pairOf struct {
	n      *memnet.Network
	a, b   *layerHost
	ta, tb *transport.RaftTransport
	seen   func() int // requests that reached b's Raft
	done   chan struct{}
}

func newPair(prepareA, prepareB func(*transport.RaftLayerConfig)) *pairOf {
	p := &pairOf{n: memnet.New(), done: make(chan struct{})}
	p.a, p.b = newLayer(p.n, "a", prepareA), newLayer(p.n, "b", prepareB)
	p.ta, p.tb = transport.NewRaftTransport(p.a.RaftLayer), transport.NewRaftTransport(p.b.RaftLayer)
	p.tb.Guard(func() task.NodeID { return "a" }, func() bool { return true }, nobody)
	p.seen = answerAll(p.tb, p.done)
	return p
}

func (p *pairOf) close() {
	close(p.done)
	_ = p.ta.Close()
	_ = p.tb.Close()
	p.n.Close()
	p.a.Close()
	p.b.Close()
	p.a.serving.Wait()
	p.b.serving.Wait()
	time.Sleep(time.Minute) // raft's accept loops end at their next look
}

func TestRaftStreamsAreRefusedByName(t *testing.T) {
	removed := func(c *transport.RaftLayerConfig) {
		c.Admit = func(id task.NodeID, _ transport.Session) error {
			return fmt.Errorf("%w at index 17", transport.ErrRemoved)
		}
	}
	for _, c := range []struct {
		name string
		a, b func(*transport.RaftLayerConfig)
		want error
	}{
		{"as it should be", nil, nil, nil},
		{"another cluster", func(c *transport.RaftLayerConfig) { c.Cluster = "cluster-y" }, nil, transport.ErrWrongCluster},
		{"before a recovery", func(c *transport.RaftLayerConfig) { c.Generation = 0 }, nil, transport.ErrWrongGeneration},
		{"another node there", nil, func(c *transport.RaftLayerConfig) { c.Self = "z" }, transport.ErrWrongNode},
		{"another certificate", func(c *transport.RaftLayerConfig) { c.Self = "z" }, nil, transport.ErrWrongIdentity},
		{"removed", nil, removed, transport.ErrRemoved},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(c.a, c.b)
				defer p.close()
				err := vote(p.ta, p.a.Self, "b", nil)
				if !errors.Is(err, c.want) {
					t.Fatalf("%v, not %v", err, c.want)
				}
				if c.want == nil {
					return
				}
				synctest.Wait()
				for _, h := range []*layerHost{p.a, p.b} {
					if len(h.refusals) != 1 || !errors.Is(h.refusals[0], c.want) || h.refusals[0].By != "b" && h.refusals[0].By != "z" {
						t.Errorf("%s heard %v", h.Self, h.refusals)
					}
				}
				if p.seen() > 0 {
					t.Error("the request reached Raft")
				}
			})
		})
	}
}

func TestRaftRequestsMustBeTheirStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(nil, nil)
		defer p.close()
		for _, change := range []func(*raft.RequestVoteRequest){
			func(r *raft.RequestVoteRequest) { r.ID = []byte("z") },
			func(r *raft.RequestVoteRequest) { r.Addr = []byte("z") },
			func(r *raft.RequestVoteRequest) { r.Addr = nil },
		} {
			if err := vote(p.ta, "a", "b", change); err == nil || p.seen() != 0 {
				t.Errorf("a vote in a foreign name: %v", err)
			}
		}
		// The same for a snapshot: what follows on its stream must not be taken for part of it.
		size := 100_000
		req := &raft.InstallSnapshotRequest{RPCHeader: header("z"), Size: int64(size)}
		err := p.ta.InstallSnapshot("b", "b", req, &raft.InstallSnapshotResponse{}, io.LimitReader(zeros{}, int64(size)))
		if err == nil || p.seen() != 0 {
			t.Errorf("a snapshot in a foreign name: %v", err)
		}
		if err := vote(p.ta, "a", "b", nil); err != nil || p.seen() != 1 {
			t.Errorf("the next request: %v", err)
		}
	})
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func TestNoVoteWithAnEmptyLogAndNoTransferButByTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(nil, nil)
		defer p.close()
		leader, hasLog := task.NodeID("c"), false
		p.tb.Guard(func() task.NodeID { return leader }, func() bool { return hasLog }, nobody)
		prevote := func() error {
			return p.ta.RequestPreVote("b", "b", &raft.RequestPreVoteRequest{RPCHeader: header("a")}, &raft.RequestPreVoteResponse{})
		}
		transfer := func() error {
			return p.ta.TimeoutNow("b", "b", &raft.TimeoutNowRequest{RPCHeader: header("a")}, &raft.TimeoutNowResponse{})
		}
		if vote(p.ta, "a", "b", nil) == nil || prevote() == nil || transfer() == nil || p.seen() != 0 {
			t.Errorf("%d requests reached a Raft that must not hear them", p.seen())
		}
		hasLog, leader = true, "a"
		if err := errors.Join(vote(p.ta, "a", "b", nil), prevote(), transfer()); err != nil || p.seen() != 3 {
			t.Errorf("%d, %v", p.seen(), err)
		}
	})
}

func TestDropPeerClosesStreamsToTheOldPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(nil, nil)
		defer p.close()
		if err := vote(p.ta, "a", "b", nil); err != nil {
			t.Fatal(err)
		}
		p.n.BlackHole("b") // the pooled stream is dead, and nobody said so
		p.n.Restore("b")
		p.a.DropPeer("b")
		start := time.Now()
		_ = vote(p.ta, "a", "b", nil) // finds the closed stream in the pool
		if err := vote(p.ta, "a", "b", nil); err != nil || time.Since(start) > 0 {
			t.Errorf("after DropPeer: %v in %s", err, time.Since(start))
		}
	})
}

func TestARaftThatIsNotRunningSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(nil, nil)
		defer p.close()
		_ = p.tb.Close()
		if err := vote(p.ta, "a", "b", nil); !errors.Is(err, transport.ErrNotRunning) {
			t.Errorf("%v", err)
		}
		again := transport.NewRaftTransport(p.b.RaftLayer)
		defer again.Close()
		again.Guard(func() task.NodeID { return "" }, func() bool { return true }, nobody)
		answerAll(again, p.done)
		if err := vote(p.ta, "a", "b", nil); err != nil {
			t.Errorf("after the restart of Raft: %v", err)
		}
	})
}

func TestASilentDiallerHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(nil, nil)
		defer p.close()
		mute, err := p.n.Host("c").Dial(t.Context(), "b", "raft")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := vote(p.ta, "a", "b", nil); err != nil || time.Since(start) > 0 {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if _, err := mute.Read(make([]byte, 1)); err != io.EOF || time.Since(start) != transport.HandshakeTimeout {
			t.Errorf("the silent stream ended with %v after %s", err, time.Since(start))
		}
		// And the other way round: whoever is dialled and says nothing is given up in time.
		p.n.Freeze("b")
		p.a.DropPeer("b")
		_ = vote(p.ta, "a", "b", nil)
		start = time.Now()
		if err := vote(p.ta, "a", "b", nil); err == nil || time.Since(start) > transport.RaftTimeout {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		p.n.Thaw("b")
	})
}

// nobody stands by.
func nobody(task.NodeID) bool { return false }
