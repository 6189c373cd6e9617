package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
	"lanjobs/transport/memnet"
)

// serveCalls answers calls at a station.
func serveCalls(t testing.TB, s *station, h transport.Handler) {
	ln := s.mux.Open(transport.ALPNRPC)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- transport.ServeCalls(ctx, ln, h, s.clock, discard) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("ServeCalls: %v", err)
		}
	})
}

func (s *station) client(t testing.TB, local transport.Handler) *transport.Client {
	c := transport.NewClient(transport.ClientConfig{Self: s.id, Local: local, Dial: s.dialer.To(transport.ALPNRPC)})
	t.Cleanup(c.Close)
	return c
}

// echo answers a report with what it was asked, and who asked.
func echo(_ context.Context, from task.NodeID, method transport.Method, body []byte) (any, error) {
	var q transport.LogRequest
	if err := transport.Decode(body, &q); err != nil {
		return nil, err
	}
	return &transport.LogReply{Data: []byte(string(from) + " " + string(method) + " " + q.Stream), Next: q.From + 1, Done: true}, nil
}

func TestCallsOverTheNetworkAndAtHomeAreAlike(t *testing.T) {
	l := newLAN(t, "home")
	a, b := l.station(t, "a"), l.station(t, "b")
	problem := task.NewProblem(task.ErrStaleToken, "too late.", "let go")
	problem.Faults = []task.Fault{{Line: 3, Message: "x"}}
	fail := map[transport.Method]error{
		"stale": problem, "wrapped": fmt.Errorf("renew: %w", task.ErrNotFound), "other": errors.New("boom"),
		"leader": fmt.Errorf("no: %w", task.ErrNoLeader), "big": task.ErrTooLarge,
	}
	h := transport.HandlerFunc(func(ctx context.Context, from task.NodeID, m transport.Method, body []byte) (any, error) {
		switch {
		case fail[m] != nil:
			return nil, fail[m]
		case m == "nothing":
			return nil, nil
		}
		return echo(ctx, from, m, body)
	})
	serveCalls(t, b, h)
	c := a.client(t, h)
	for _, to := range []task.NodeID{a.id, b.id} {
		var reply transport.LogReply
		err := c.Call(t.Context(), to, transport.MethodReadLog, &transport.LogRequest{Stream: "stderr", From: 1 << 40}, &reply)
		if want := string(a.id) + " log.read stderr"; err != nil || string(reply.Data) != want || reply.Next != 1<<40+1 || !reply.Done {
			t.Errorf("reply %+v, %v; want %q", reply, err, want)
		}
		for m, sent := range fail {
			err := c.Call(t.Context(), to, m, &transport.Ack{}, &reply)
			p, ok := errors.AsType[*task.Problem](err)
			if want := task.Explain(sent); !ok || p.Error() != want.Error() || p.Code != want.Code || p.Hint != want.Hint ||
				p.Retryable != want.Retryable || len(p.Faults) != len(want.Faults) {
				t.Errorf("%s: %+v, want %+v", m, err, want)
			}
		}
		if err := c.Call(t.Context(), to, "stale", &transport.Ack{}, nil); !errors.Is(err, task.ErrStaleToken) {
			t.Errorf("sentinel is lost: %v", err)
		}
		if err := c.Call(t.Context(), to, "nothing", nil, nil); err != nil {
			t.Errorf("empty call: %v", err)
		}
		if err := c.Call(t.Context(), to, "x", "no message", &reply); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("a request of another kind: %v", err)
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	l := newLAN(t, "home")
	a, b := l.station(t, "a"), l.station(t, "b")
	big := make([]byte, transport.MaxMessageBytes)
	var served atomic.Int32
	h := transport.HandlerFunc(func(context.Context, task.NodeID, transport.Method, []byte) (any, error) {
		served.Add(1)
		return &transport.LogReply{Data: big}, nil
	})
	serveCalls(t, b, h)
	c := a.client(t, h)
	for _, to := range []task.NodeID{a.id, b.id} {
		if err := c.Call(t.Context(), to, "x", &transport.LogReply{Data: big}, nil); !errors.Is(err, task.ErrTooLarge) || served.Load() != 0 {
			t.Errorf("request too large: %v, served %d times", err, served.Load())
		}
		if err := c.Call(t.Context(), to, "x", &transport.Ack{}, nil); !errors.Is(err, task.ErrTooLarge) {
			t.Errorf("answer too large: %v", err)
		}
		served.Store(0)
	}
	// A peer that does not bound its own: with its length announced, and without.
	h2 := &http.Transport{Protocols: &http.Protocols{}, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return a.dialer.Dial(ctx, b.id, transport.ALPNRPC)
	}}
	h2.Protocols.SetUnencryptedHTTP2(true)
	defer h2.CloseIdleConnections()
	for _, announced := range []int64{transport.MaxMessageBytes + 1, -1} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://b/rpc/x", &endless{n: transport.MaxMessageBytes + 1})
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = announced
		resp, err := h2.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusRequestEntityTooLarge || served.Load() != 0 {
			t.Errorf("announced %d: status %d, served %d times", announced, resp.StatusCode, served.Load())
		}
		_ = resp.Body.Close()
	}
}

type endless struct{ n int }

func (z *endless) Read(b []byte) (int, error) {
	if z.n == 0 {
		return 0, io.EOF
	}
	n := min(len(b), z.n)
	z.n -= n
	return n, nil
}
func (z *endless) Close() error { return nil }

func TestUnreachableSaysWhoAndWhy(t *testing.T) {
	l := newLAN(t, "home")
	a, b := l.station(t, "a"), l.station(t, "b")
	c := transport.NewClient(transport.ClientConfig{
		Self: a.id, Dial: a.dialer.To(transport.ALPNRPC), Name: func(task.NodeID) string { return "mini-1" },
	})
	defer c.Close()
	nobody := refusingAddr(t)
	l.move(b.id, nobody)
	err := c.Call(t.Context(), b.id, "x", nil, nil)
	if want := "cannot reach mini-1 (" + nobody + ": connection refused)"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if !errors.Is(err, task.ErrNoLeader) || !errors.Is(err, syscall.ECONNREFUSED) || !task.Explain(err).Retryable {
		t.Errorf("%v is not ErrNoLeader and ECONNREFUSED", err)
	}
	l.move(b.id, b.addr)
	if err := c.Call(t.Context(), b.id, "x", nil, nil); !errors.Is(err, transport.ErrNotRunning) || !errors.Is(err, task.ErrNoLeader) {
		t.Errorf("nobody serves calls: %v", err)
	}
	l.remove(b.id)
	if err := c.Call(t.Context(), b.id, "x", nil, nil); !errors.Is(err, transport.ErrRemoved) {
		t.Errorf("removed: %v", err)
	}
}

// parked is a handler that holds every call until its context ends, and tells why it did.
type parked struct{ begun, ended chan error }

func (p parked) ServeCall(ctx context.Context, _ task.NodeID, _ transport.Method, _ []byte) (any, error) {
	p.begun <- nil
	<-ctx.Done()
	p.ended <- ctx.Err()
	return nil, ctx.Err()
}

func TestParkedCallEndsWithItsCaller(t *testing.T) {
	l := newLAN(t, "home")
	a, b := l.station(t, "a"), l.station(t, "b")
	h := parked{make(chan error, 1), make(chan error, 1)}
	serveCalls(t, b, h)
	c := a.client(t, h)
	enough := errors.New("enough")
	for _, to := range []task.NodeID{a.id, b.id} {
		ctx, cancel := context.WithCancelCause(t.Context())
		failed := make(chan error, 1)
		go func() { failed <- c.Call(ctx, to, "poll", nil, nil) }()
		<-h.begun
		cancel(enough)
		if err := <-failed; !errors.Is(err, enough) || !errors.Is(err, task.ErrNoLeader) {
			t.Errorf("call: %v, want the cause of its end", err)
		}
		<-h.ended
	}
}

func TestCallsShareOneConnection(t *testing.T) {
	l := newLAN(t, "home")
	a, b := l.station(t, "a"), l.station(t, "b")
	serveCalls(t, b, transport.HandlerFunc(echo))
	var dials atomic.Int32
	c := transport.NewClient(transport.ClientConfig{Self: a.id, Dial: func(ctx context.Context, id task.NodeID) (net.Conn, error) {
		dials.Add(1)
		return a.dialer.Dial(ctx, id, transport.ALPNRPC)
	}})
	defer c.Close()
	var wg sync.WaitGroup
	for range 2000 {
		wg.Go(func() {
			var reply transport.LogReply
			if err := c.Call(t.Context(), b.id, "x", &transport.LogRequest{}, &reply); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if dials.Load() != 1 {
		t.Errorf("%d connections for 2000 calls at once", dials.Load())
	}
}

// The book has learned a new address: calls under way on the old connection fail, the next one goes to the new place.
func TestDroppedPeerIsDialledAnew(t *testing.T) {
	l := newLAN(t, "home")
	a, b := l.station(t, "a"), l.station(t, "b")
	h := parked{make(chan error, 1), make(chan error, 100)}
	serveCalls(t, b, transport.HandlerFunc(func(ctx context.Context, from task.NodeID, m transport.Method, body []byte) (any, error) {
		if m == "park" {
			return h.ServeCall(ctx, from, m, body)
		}
		return &transport.Ack{Seq: 7}, nil
	}))
	c := a.client(t, nil)
	for round := range 20 {
		way := newTap(t, b.addr)
		l.move(b.id, way.addr)
		failed := make(chan error, 1)
		go func() { failed <- c.Call(t.Context(), b.id, "park", nil, nil) }()
		select {
		case <-h.begun:
		case err := <-failed:
			t.Fatalf("round %d: %v", round, err)
		}
		if round%2 == 0 {
			l.move(b.id, b.addr)
			way.mu.Lock()
			way.cut = true // the old way is dead, but nobody says so
			way.mu.Unlock()
		}
		c.DropPeer(b.id)
		if err := <-failed; !errors.Is(err, task.ErrNoLeader) {
			t.Fatalf("call over the dropped connection: %v", err)
		}
		var reply transport.Ack
		if err := c.Call(t.Context(), b.id, "x", nil, &reply); err != nil || reply.Seq != 7 {
			t.Fatalf("call after the drop: %+v, %v", reply, err)
		}
		c.DropPeer(b.id)
	}
}

// A peer that has gone to sleep answers no pings: its calls end without a deadline of their own.
func TestSleepingPeerIsNoticed(t *testing.T) {
	for _, asleep := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			n := memnet.New()
			defer n.Close()
			a, b := n.Host("a"), n.Host("b")
			clock := memnet.NewClock()
			h := parked{make(chan error, 1), make(chan error, 1)}
			ctx, cancel := context.WithCancel(t.Context())
			served := make(chan error, 1)
			ln := b.Listen("rpc")
			go func() { served <- transport.ServeCalls(ctx, ln, h, clock, discard) }()
			c := transport.NewClient(transport.ClientConfig{Self: "a", Dial: func(ctx context.Context, id task.NodeID) (net.Conn, error) {
				return a.Dial(ctx, id, "rpc")
			}})
			failed := make(chan error, 1)
			go func() { failed <- c.Call(t.Context(), "b", "poll", nil, nil) }()
			<-h.begun
			if asleep {
				n.Cut("a", "b")
			}
			select {
			case err := <-failed:
				if !asleep || !errors.Is(err, task.ErrNoLeader) {
					t.Errorf("asleep %v: %v", asleep, err)
				}
				if clock.Awake() > 15*time.Second {
					t.Errorf("noticed after %v", clock.Awake())
				}
			case <-time.After(time.Hour):
				if asleep {
					t.Error("a parked call waits for a sleeping peer for ever")
				}
			}
			select {
			case <-h.ended: // the serving side has noticed too
			case <-time.After(time.Minute):
				if asleep {
					t.Error("a parked call is held for a sleeping peer for ever")
				}
			}
			c.Close()
			cancel()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestServingEndsParkedCalls(t *testing.T) {
	l := newLAN(t, "home")
	a, b := l.station(t, "a"), l.station(t, "b")
	h := parked{make(chan error, 1), make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	ln := b.mux.Open(transport.ALPNRPC)
	go func() { served <- transport.ServeCalls(ctx, ln, h, b.clock, discard) }()
	c := a.client(t, nil)
	failed := make(chan error, 1)
	go func() { failed <- c.Call(t.Context(), b.id, "poll", nil, nil) }()
	<-h.begun
	cancel()
	if err := <-served; err != nil {
		t.Errorf("ServeCalls: %v", err)
	}
	<-h.ended
	if err := <-failed; err == nil {
		t.Error("the call succeeded")
	}
	if err := c.Call(t.Context(), b.id, "poll", nil, nil); !errors.Is(err, transport.ErrNotRunning) {
		t.Errorf("a call afterwards: %v", err)
	}
}

func TestCallsNeedAnIdentity(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // its connections prove nothing
	if err != nil {
		t.Fatal(err)
	}
	clock := memnet.NewClock()
	background(t, func(ctx context.Context) error {
		return transport.ServeCalls(ctx, ln, transport.HandlerFunc(echo), clock, discard)
	})
	c := transport.NewClient(transport.ClientConfig{Self: "a", Dial: func(ctx context.Context, _ task.NodeID) (net.Conn, error) {
		return transport.DialTCP(ctx, ln.Addr().String())
	}})
	defer c.Close()
	if err := c.Call(t.Context(), "b", "x", nil, nil); !errors.Is(err, task.ErrNotAllowed) {
		t.Errorf("a call by nobody: %v", err)
	}
}

func BenchmarkCall(b *testing.B) {
	l := newLAN(b, "home")
	one, two := l.station(b, "a"), l.station(b, "b")
	serveCalls(b, two, transport.HandlerFunc(echo))
	c := one.client(b, nil)
	text := strings.Repeat("x", 100)
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			var reply transport.LogReply
			if err := c.Call(context.Background(), two.id, "x", &transport.LogRequest{Stream: text}, &reply); err != nil {
				b.Fatal(err)
			}
		}
	})
}
