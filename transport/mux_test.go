package transport_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// serveWeb answers HTTP at a station; calls are refused.
func serveWeb(t *testing.T, s *station, join http.Handler) {
	background(t, func(ctx context.Context) error {
		return transport.Serve(ctx, s.mux, transport.Services{
			Calls: transport.HandlerFunc(func(context.Context, task.NodeID, transport.Method, []byte) (any, error) {
				return nil, task.ErrInvalid
			}),
			API: answers200, Join: join, Clock: s.clock, Log: discard,
		})
	})
	// Serve has opened its doors once somebody is let in.
	for range 1000 {
		if _, err := get(t, s, "/healthz"); err == nil {
			return
		}
	}
	t.Fatal("nothing is served")
}

// get asks a station's web, with a certificate or without.
func get(t *testing.T, s *station, path string, certs ...tls.Certificate) (int, error) {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certs},
	}}
	resp, err := client.Get("https://" + s.addr + path)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func TestStrangersReachJoinAndHealthOnly(t *testing.T) {
	l := newLAN(t, "home")
	a, b := l.station(t, "a"), l.station(t, "b")
	var asked []task.NodeID
	serveWeb(t, b, transport.JoinHandler(func(context.Context, transport.JoinRequest, string) (transport.JoinReply, error) {
		t.Error("a GET was taken for a join")
		return transport.JoinReply{}, nil
	}))
	for path, want := range map[string]int{
		"/healthz": 200, "/v1/join": 400, "/v1/status": 403, "/v1/jobs": 403, "/": 403, "/rpc/poll": 403, "/healthz/../v1/status": 403,
	} {
		if got, err := get(t, b, path); err != nil || got != want {
			t.Errorf("GET %s as a stranger: %d, %v; want %d", path, got, err, want)
		}
	}
	client := l.client(t, "anna@laptop").KeyPair()
	if got, err := get(t, b, "/v1/status", client); err != nil || got != 200 {
		t.Errorf("control: GET /v1/status as a client: %d, %v", got, err)
	}
	if got, err := get(t, b, "/v1/status", a.identity.KeyPair()); err != nil || got != 403 {
		t.Errorf("GET /v1/status as a member: %d, %v; want 403, a machine is no client", got, err)
	}
	// Nodes' calls are no part of the web, for nobody.
	if got, err := get(t, b, "/rpc/poll", client); err != nil || got != 200 {
		t.Errorf("GET /rpc/poll went %d, %v; want the API's answer", got, err)
	}
	for name, foreigner := range foreigners(t, l) {
		if got, err := get(t, b, "/healthz", foreigner.KeyPair()); err == nil && got != 200 {
			t.Errorf("%s: %d", name, got)
		}
		if got, err := get(t, b, "/v1/status", foreigner.KeyPair()); err == nil && got == 200 {
			t.Errorf("%s sees the status", name)
		}
	}
	l.remove(a.id)
	if got, err := get(t, b, "/v1/status", a.identity.KeyPair()); err == nil {
		t.Errorf("a removed node was answered %d", got)
	}
	_ = asked
}

func TestGarbageIsClosedQuietly(t *testing.T) {
	l := newLAN(t, "home")
	a, b := l.station(t, "a"), l.station(t, "b")
	in := countAt(t, b.mux.Open(transport.ALPNRaft))
	noise := make([]byte, 4096)
	_, _ = rand.Read(noise)
	for name, bytes := range map[string][]byte{
		"noise": noise, "HTTP": []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "Raft": []byte("LJR\x01\x00\x40"),
		"a record that is none": {0x16, 3, 1, 0xff, 0xff, 1, 2, 3}, "alert": {0x15, 3, 3, 0, 2, 2, 40}, "SSL 2": {0x80, 0x2e, 1, 0, 2},
	} {
		conn, err := net.Dial("tcp", b.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write(bytes)
		if tcp := conn.(*net.TCPConn); name == "SSL 2" || name == "a record that is none" {
			_ = tcp.CloseWrite() // these wait for more
		}
		ended(t, conn)
		_ = conn.Close()
	}
	if in.count() != 0 {
		t.Errorf("%d of them were handed out", in.count())
	}
	dial(t, a, b.id, transport.ALPNRaft)
}

// Half a handshake, and none at all, end after HandshakeTimeout.
func TestHandshakeHasADeadline(t *testing.T) {
	l := newLAN(t, "home")
	clock := newHandClock()
	b := l.stationOf(t, l.member(t, "b"), clock)
	silent, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	half, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	_, _ = half.Write([]byte{0x16, 3, 1, 2, 0, 1, 0, 1})
	clock.advance(t, 2, transport.HandshakeTimeout-1)
	_ = silent.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := silent.Read(make([]byte, 1)); err == io.EOF {
		t.Error("control: closed before its time")
	}
	clock.advance(t, 2, 1)
	ended(t, silent)
	ended(t, half)
}

// C47: 200 idle connections in every state a stranger can reach, from one address, and a node from that same address.
func TestIdleConnectionsStarveNobody(t *testing.T) {
	l := newLAN(t, "home")
	a, b := l.station(t, "a"), l.station(t, "b")
	countAt(t, b.mux.Open(transport.ALPNRaft))
	serveWeb(t, b, nil)
	var idle []net.Conn
	defer func() {
		for _, c := range idle {
			_ = c.Close()
		}
	}()
	for range 200 {
		raw, err := net.Dial("tcp", b.addr)
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, raw)
		guest, err := tls.Dial("tcp", b.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, guest)
	}
	limits := transport.DefaultMuxLimits()
	if s, g := b.mux.Strangers(), b.mux.Guests(); s > limits.HandshakesPerAddr || g > limits.GuestsPerAddr {
		t.Errorf("%d strangers and %d guests are open", s, g)
	}
	if b.mux.Guests() == 0 {
		t.Error("guests are counted as strangers")
	}
	ended(t, idle[0]) // the oldest went
	dial(t, a, b.id, transport.ALPNRaft)
	if got, err := get(t, b, "/healthz"); err != nil || got != 200 {
		t.Errorf("GET /healthz beside 400 idle connections: %d, %v", got, err)
	}
	if got, err := get(t, b, "/v1/status", l.client(t, "anna@laptop").KeyPair()); err != nil || got != 200 {
		t.Errorf("GET /v1/status beside 400 idle connections: %d, %v", got, err)
	}
}

// A connection that is closed or displaced is forgotten, so that the count does not creep up.
func TestClosedConnectionsAreNotCounted(t *testing.T) {
	l := newLAN(t, "home")
	b := l.station(t, "b")
	serveWeb(t, b, nil)
	for range 100 {
		conn, err := tls.Dial("tcp", b.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	eventually(t, func() bool { return b.mux.Guests()+b.mux.Strangers() == 0 }, "closed connections are still counted")
}

// C47: a recorded session played again. TLS makes it worthless; the test holds that nothing undoes that, as 0-RTT would.
func TestReplayedSessionIsWorthless(t *testing.T) {
	l := newLAN(t, "home")
	a, b := l.station(t, "a"), l.station(t, "b")
	ln := b.mux.Open(transport.ALPNRaft)
	tap := newTap(t, b.addr)
	l.move(b.id, tap.addr)
	out := dial(t, a, b.id, transport.ALPNRaft)
	in := accept(t, ln)
	_, _ = out.Write([]byte("grant"))
	if _, err := io.ReadFull(in, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	ended(t, in)

	again := countAt(t, ln)
	conn, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	record := tap.sent()
	if len(record) < 500 {
		t.Fatalf("control: only %d bytes were recorded", len(record))
	}
	_, _ = conn.Write(record)
	ended(t, conn)
	if again.count() != 0 {
		t.Error("a replayed session was handed out")
	}
}

// tap is a proxy that records what clients say.
type tap struct {
	addr, target string

	mu    sync.Mutex
	bytes bytes.Buffer
	conns []net.Conn
	cut   bool // what comes is swallowed, both ways
}

func newTap(t *testing.T, target string) *tap {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{addr: ln.Addr().String(), target: target}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			on, err := net.Dial("tcp", target)
			if err != nil {
				_ = conn.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, conn, on)
			p.mu.Unlock()
			wg.Go(func() { p.copy(on, conn, true) })
			wg.Go(func() { p.copy(conn, on, false) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		p.mu.Lock()
		conns := slices.Clone(p.conns)
		p.mu.Unlock()
		for _, c := range conns {
			_ = c.Close()
		}
		wg.Wait()
	})
	return p
}

func (p *tap) copy(to, from net.Conn, record bool) {
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		if record {
			p.bytes.Write(buf[:n])
		}
		cut := p.cut
		p.mu.Unlock()
		if cut {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (p *tap) sent() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Clone(p.bytes.Bytes())
}

func TestMuxEndsEverythingItLetIn(t *testing.T) {
	l := newLAN(t, "home")
	a := l.station(t, "a")
	i := l.member(t, "b")
	trust, err := transport.NewTrust(i, a.clock, nil)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.move(i.NodeID, listener.Addr().String())
	mux := transport.NewMux(transport.MuxConfig{
		Listener: listener, Trust: trust, Limits: transport.DefaultMuxLimits(), Clock: a.clock, Log: discard,
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mux.Run(ctx) }()
	ln := mux.Open(transport.ALPNRaft)
	out := dial(t, a, i.NodeID, transport.ALPNRaft)
	accept(t, ln)
	stranger, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	ended(t, out)
	ended(t, stranger)
	if _, err := ln.Accept(); err == nil {
		t.Error("the door is still open")
	}
	if err := mux.Run(t.Context()); err == nil {
		t.Error("a port that is closed was served")
	}
}
