package transport_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"lanjobs/transport"
	"lanjobs/transport/memnet"
)

func TestDialledNodesKnowEachOther(t *testing.T) {
	l := newLAN(t, "home")
	a, b := l.station(t, "a"), l.station(t, "b")
	for _, alpn := range []string{transport.ALPNRaft, transport.ALPNGossip, transport.ALPNRPC} {
		ln := b.mux.Open(alpn)
		out := dial(t, a, b.id, alpn)
		in := accept(t, ln)
		if transport.PeerID(out) != b.id || transport.PeerID(in) != a.id {
			t.Errorf("%s: %q and %q think they talk to %q and %q", alpn, a.id, b.id, transport.PeerID(out), transport.PeerID(in))
		}
		go func() { _, _ = out.Write([]byte("hello")) }()
		buf := make([]byte, 5)
		if _, err := io.ReadFull(in, buf); err != nil || string(buf) != "hello" {
			t.Errorf("%s: read %q, %v", alpn, buf, err)
		}
	}
}

// Addresses are exchanged by DHCP (RAFT.md, finding 5). The control is DialAddr, which wants nobody in particular: it is let
// in by the very same node at the very same address.
func TestAnotherNodeAtTheAddressIsRefused(t *testing.T) {
	l := newLAN(t, "home")
	a, b, c := l.station(t, "a"), l.station(t, "b"), l.station(t, "c")
	countAt(t, c.mux.Open(transport.ALPNRaft))
	l.move(b.id, c.addr)

	_, err := a.dialer.Dial(t.Context(), b.id, transport.ALPNRaft)
	if !errors.Is(err, transport.ErrWrongNode) {
		t.Fatalf("dial of b at c's address: %v, want ErrWrongNode", err)
	}
	if r := a.refusals(); len(r) != 1 || r[0].By != a.id || r[0].To != c.id {
		t.Errorf("refusals %v, want one by a of c", r)
	}
	conn, err := a.dialer.DialAddr(t.Context(), c.addr, transport.ALPNRaft)
	if err != nil {
		t.Fatalf("control: without an identity to check %v, want a connection", err)
	}
	_ = conn.Close()

	// The right address beside the wrong one is found.
	countAt(t, b.mux.Open(transport.ALPNRaft))
	l.move(b.id, c.addr, b.addr)
	if conn := dial(t, a, b.id, transport.ALPNRaft); transport.PeerID(conn) != b.id {
		t.Errorf("reached %s", transport.PeerID(conn))
	}
}

func TestDialTriesAllAddresses(t *testing.T) {
	l := newLAN(t, "home")
	a, b := l.stationOf(t, l.member(t, "a"), memnet.NewClock()), l.station(t, "b")
	countAt(t, b.mux.Open(transport.ALPNRaft))
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	l.move(b.id, refusingAddr(t), silent.Addr().String(), b.addr)
	if conn := dial(t, a, b.id, transport.ALPNRaft); transport.PeerID(conn) != b.id {
		t.Errorf("reached %s", transport.PeerID(conn))
	}

	l.move(b.id, refusingAddr(t))
	_, err = a.dialer.Dial(t.Context(), b.id, transport.ALPNRaft)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial of a closed port: %v", err)
	}
	l.move(b.id)
	if _, err = a.dialer.Dial(t.Context(), b.id, transport.ALPNRaft); err == nil || err.Error() != "no address of it is known" {
		t.Errorf("dial of an unknown node: %v", err)
	}
	l.move(b.id, silent.Addr().String())
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("given up")
	cancel(gone)
	if _, err = a.dialer.Dial(ctx, b.id, transport.ALPNRaft); !errors.Is(err, gone) {
		t.Errorf("dial with an ended context: %v", err)
	}
}

// refusingAddr is an address at which nobody listens.
func refusingAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// The second address does not wait for the first to be given up.
func TestAddressesRace(t *testing.T) {
	l := newLAN(t, "home")
	clock := newHandClock()
	a, b := l.stationOf(t, l.member(t, "a"), clock), l.station(t, "b")
	countAt(t, b.mux.Open(transport.ALPNRaft))
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	l.move(b.id, silent.Addr().String(), b.addr)
	done := make(chan error, 1)
	go func() {
		conn, err := a.dialer.Dial(t.Context(), b.id, transport.ALPNRaft)
		if err == nil {
			_ = conn.Close()
		}
		done <- err
	}()
	clock.advance(t, 2, transport.DialStagger) // one timer bounds the first attempt, the other one its lead
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestVerdictsCrossTheWire(t *testing.T) {
	odd := errors.New("the moon is full")
	for _, reason := range []error{nil, transport.ErrRemoved, transport.ErrNotRunning, transport.ErrWrongCluster, odd} {
		var wire bytes.Buffer
		if err := transport.WriteVerdict(&wire, reason); err != nil {
			t.Fatal(err)
		}
		err := transport.ReadVerdict(&wire, "by", "to")
		var r *transport.Refusal
		switch {
		case reason == nil && err != nil:
			t.Errorf("welcome became %v", err)
		case reason == nil:
		case !errors.As(err, &r) || r.By != "by" || r.To != "to":
			t.Errorf("%v became %v", reason, err)
		case reason != odd && !errors.Is(err, reason), reason == odd && r.Reason.Error() != odd.Error():
			t.Errorf("%v became %v", reason, err)
		}
	}
	if err := transport.ReadVerdict(bytes.NewReader([]byte{4, 9, 'x'}), "by", "to"); err == nil {
		t.Error("half a verdict was taken")
	}
}

func TestSilentAddressIsGivenUp(t *testing.T) {
	l := newLAN(t, "home")
	clock := newHandClock()
	a, b := l.stationOf(t, l.member(t, "a"), clock), l.station(t, "b")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	l.move(b.id, silent.Addr().String())
	failed := make(chan error, 1)
	go func() {
		_, err := a.dialer.Dial(t.Context(), b.id, transport.ALPNRaft)
		failed <- err
	}()
	clock.advance(t, 1, transport.DialTimeout)
	if err := <-failed; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("dial of a silent address: %v", err)
	}
}

// C48: clocks that are off by more than a year, on one side or on both in opposite directions, and a dead battery.
func TestWrongClocksDoNotMatter(t *testing.T) {
	const year = 400 * 24 * time.Hour
	since1970 := time.Since(time.Unix(0, 0))
	for name, off := range map[string][2]time.Duration{
		"ahead": {year, 0}, "behind": {-year, 0}, "apart": {-year, year}, "battery": {time.Minute - since1970, 0}, "far": {0, 100 * year},
	} {
		l := newLAN(t, "home")
		clocks := [2]*handClock{newHandClock(), newHandClock()}
		clocks[0].wrong, clocks[1].wrong = off[0], off[1]
		a, b := l.stationOf(t, l.member(t, "a"), clocks[0]), l.stationOf(t, l.member(t, "b"), clocks[1])
		countAt(t, b.mux.Open(transport.ALPNRaft))
		if _, err := a.dialer.Dial(t.Context(), b.id, transport.ALPNRaft); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// Control: what a certificate of a year, checked the usual way, would have said.
		usual := &x509.Certificate{NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour)}
		valid := func(now time.Time) bool { return now.After(usual.NotBefore) && now.Before(usual.NotAfter) }
		if valid(a.clock.Wall()) && valid(b.clock.Wall()) {
			t.Errorf("%s: control: these clocks are not wrong", name)
		}
	}
	// And no date that another issuer wrote is looked at.
	cert := newLAN(t, "home").member(t, "a").KeyPair().Leaf
	if now := time.Now(); cert.NotBefore.Year() != 1970 || cert.NotAfter.Year() != 9999 || now.Before(cert.NotBefore) {
		t.Errorf("certificate from %v to %v", cert.NotBefore, cert.NotAfter)
	}
}

// C48, step 2: certificates of a new authority are brought in under running connections.
func TestAuthorityIsExchanged(t *testing.T) {
	l := newLAN(t, "home")
	a, b := l.station(t, "a"), l.station(t, "b")
	ln := b.mux.Open(transport.ALPNRaft)
	old := dial(t, a, b.id, transport.ALPNRaft)
	oldIn := accept(t, ln)

	next := transport.ForgedCA(l.info.ID, "home")
	reissue := func(s *station, trusted string) {
		t.Helper()
		csr, err := s.identity.CSR()
		if err != nil {
			t.Fatal(err)
		}
		cert, err := next.Issue(csr, s.id)
		if err != nil {
			t.Fatal(err)
		}
		info := l.info
		info.CACert = trusted
		if err := s.identity.Adopt(info, cert); err != nil {
			t.Fatal(err)
		}
		if err := s.trust.Use(s.identity); err != nil {
			t.Fatal(err)
		}
	}
	both := next.CertPEM() + l.ca.CertPEM()
	reissue(b, both) // b is the first; a still has the old certificate and knows only the old authority
	conn, err := b.dialer.Dial(t.Context(), a.id, transport.ALPNRaft)
	if !errors.Is(err, transport.ErrWrongCluster) && !errors.Is(err, transport.ErrNotRunning) {
		t.Errorf("a knows the new authority before it was told: %v, %v", conn, err)
	}
	reissue(a, both)
	dial(t, a, b.id, transport.ALPNRaft)
	accept(t, ln)
	reissue(a, next.CertPEM())
	reissue(b, next.CertPEM())
	dial(t, a, b.id, transport.ALPNRaft)
	accept(t, ln)

	late := l.station(t, "late") // was away all the time
	if _, err := late.dialer.Dial(t.Context(), b.id, transport.ALPNRaft); !errors.Is(err, transport.ErrWrongCluster) {
		t.Errorf("a certificate of the dropped authority: %v, want ErrWrongCluster", err)
	}
	if _, err := old.Write([]byte("x")); err != nil {
		t.Errorf("the old connection broke: %v", err)
	}
	if _, err := io.ReadFull(oldIn, make([]byte, 1)); err != nil {
		t.Errorf("the old connection broke: %v", err)
	}
}
