package transport_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// lan is a cluster on the loopback: an authority, and what the address books of its stations say.
type lan struct {
	info transport.ClusterInfo
	ca   *transport.CA

	mu      sync.Mutex
	addrs   map[task.NodeID][]string
	removed map[task.NodeID]bool
}

func newLAN(t testing.TB, name string) *lan {
	t.Helper()
	info, ca, err := transport.NewCluster(name)
	if err != nil {
		t.Fatal(err)
	}
	return &lan{info: info, ca: ca, addrs: map[task.NodeID][]string{}, removed: map[task.NodeID]bool{}}
}

// Lookup is transport.Resolver.
func (l *lan) Lookup(id task.NodeID) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addrs[id]
}

func (l *lan) move(id task.NodeID, addrs ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addrs[id] = addrs
}

func (l *lan) remove(id task.NodeID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removed[id] = true
}

func (l *lan) isRemoved(id task.NodeID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.removed[id]
}

// member makes an identity with a certificate of the cluster.
func (l *lan) member(t testing.TB, name string) *transport.Identity {
	t.Helper()
	return issue(t, l.info, l.ca, name)
}

func issue(t testing.TB, info transport.ClusterInfo, ca *transport.CA, name string) *transport.Identity {
	t.Helper()
	i, err := transport.NewIdentity(name)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := i.CSR()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := ca.Issue(csr, i.NodeID)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Adopt(info, cert); err != nil {
		t.Fatal(err)
	}
	return i
}

// station is a node's port and dialler.
type station struct {
	id       task.NodeID
	identity *transport.Identity
	clock    task.Clock
	trust    *transport.Trust
	mux      *transport.Mux
	dialer   *transport.Dialer
	addr     string

	mu      sync.Mutex
	refused []*transport.Refusal
}

// station starts a node that is listed in the book of its LAN.
func (l *lan) station(t testing.TB, name string) *station {
	t.Helper()
	return l.stationOf(t, l.member(t, name), nil)
}

// stationOf starts a node with an identity of choice. Without a clock of choice its time stands still: no time-out fires, however
// slow the machine that runs the test is.
func (l *lan) stationOf(t testing.TB, i *transport.Identity, clock task.Clock) *station {
	t.Helper()
	if clock == nil {
		clock = newHandClock()
	}
	s := &station{id: i.NodeID, identity: i, clock: clock}
	trust, err := transport.NewTrust(i, clock, l.isRemoved)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.trust, s.addr = trust, ln.Addr().String()
	s.mux = transport.NewMux(transport.MuxConfig{
		Listener: ln, Trust: trust, Limits: transport.DefaultMuxLimits(), Clock: clock, Log: discard,
	})
	s.dialer = transport.NewDialer(transport.DialerConfig{
		Trust: trust, Book: l, Net: transport.DialTCP, Clock: clock,
		Refused: func(r *transport.Refusal) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.refused = append(s.refused, r)
		},
	})
	l.move(s.id, s.addr)
	background(t, s.mux.Run)
	return s
}

// refusals are what the dialler was told so far.
func (s *station) refusals() []*transport.Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*transport.Refusal(nil), s.refused...)
}

// background runs f until the test ends.
func background(t testing.TB, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
}

// accept takes the next connection of a door, or fails.
func accept(t *testing.T, ln net.Listener) net.Conn {
	t.Helper()
	type accepted struct {
		conn net.Conn
		err  error
	}
	c := make(chan accepted, 1)
	go func() {
		conn, err := ln.Accept()
		c <- accepted{conn, err}
	}()
	select {
	case a := <-c:
		if a.err != nil {
			t.Fatal(a.err)
		}
		t.Cleanup(func() { _ = a.conn.Close() })
		return a.conn
	case <-time.After(untilHung):
		t.Fatal("nobody came")
		return nil
	}
}

// counter accepts everything at a door and tells how much that was.
type counter struct {
	mu    sync.Mutex
	conns []net.Conn
	done  chan struct{}
}

func countAt(t *testing.T, ln net.Listener) *counter {
	c := &counter{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			c.mu.Lock()
			c.conns = append(c.conns, conn)
			c.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		<-c.done
		for _, conn := range c.conns {
			_ = conn.Close()
		}
	})
	return c
}

func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}

// untilHung ends a test that hangs; nothing takes so long.
const untilHung = time.Minute

// ended waits until the other side has closed a connection.
func ended(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(untilHung))
	buf := make([]byte, 4096)
	for {
		if _, err := c.Read(buf); err != nil {
			if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
				t.Fatal("the connection is still open")
			}
			return
		}
	}
}

// eventually waits for what another goroutine is about to do.
func eventually(t *testing.T, done func() bool, otherwise string) {
	t.Helper()
	for deadline := time.Now().Add(untilHung); !done(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal(otherwise)
		}
	}
}

func dial(t *testing.T, s *station, to task.NodeID, alpn string) net.Conn {
	t.Helper()
	conn, err := s.dialer.Dial(t.Context(), to, alpn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// answers200 is an http.Handler that has nothing to say.
var answers200 = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// handClock is a task.Clock that stands still until it is moved by hand.
type handClock struct {
	mu     sync.Mutex
	now    time.Duration
	wrong  time.Duration // of the wall clock
	timers map[*handTimer]struct{}
	more   chan struct{} // closed and replaced with each new timer
}

func newHandClock() *handClock {
	return &handClock{timers: map[*handTimer]struct{}{}, more: make(chan struct{})}
}

func (c *handClock) Awake() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}
func (c *handClock) Boot() task.Boot { return task.Boot(c.Awake()) }
func (c *handClock) Wall() time.Time { return time.Now().Add(c.wrong) }
func (c *handClock) After(d time.Duration) <-chan time.Time {
	return c.NewTimer(d).C()
}

func (c *handClock) NewTimer(d time.Duration) task.Timer {
	t := &handTimer{clock: c, c: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

// advance moves the clock once at least n timers are running.
func (c *handClock) advance(t *testing.T, n int, d time.Duration) {
	t.Helper()
	for {
		c.mu.Lock()
		more := c.more
		if len(c.timers) >= n {
			break
		}
		c.mu.Unlock()
		select {
		case <-more:
		case <-time.After(untilHung):
			t.Fatalf("no %d timers are running", n)
		}
	}
	defer c.mu.Unlock()
	c.now += d
	for timer := range c.timers {
		if timer.at <= c.now {
			delete(c.timers, timer)
			timer.c <- time.Time{}
		}
	}
}

type handTimer struct {
	clock *handClock
	at    time.Duration
	c     chan time.Time
}

func (t *handTimer) C() <-chan time.Time { return t.c }
func (t *handTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	_, running := t.clock.timers[t]
	delete(t.clock.timers, t)
	return running
}
func (t *handTimer) Reset(d time.Duration) bool {
	running := t.Stop()
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	t.at = t.clock.now + d
	t.clock.timers[t] = struct{}{}
	close(t.clock.more)
	t.clock.more = make(chan struct{})
	return running
}
