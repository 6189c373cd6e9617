package transport_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
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

// clusters that are not ours: another one, and one whose authority only claims our id.
func foreigners(t *testing.T, l *lan) map[string]*transport.Identity {
	other := newLAN(t, "garage")
	forged := transport.ForgedCA(l.info.ID, "home")
	info := l.info
	info.CACert = forged.CertPEM()
	return map[string]*transport.Identity{
		"another cluster":              other.member(t, "x"),
		"our id, forged by a stranger": issue(t, info, forged, "x"),
	}
}

func TestForeignNodeBehindAddressIsRefused(t *testing.T) {
	l := newLAN(t, "home")
	a := l.station(t, "a")
	for name, foreigner := range foreigners(t, l) {
		other := newLAN(t, "any")
		x := other.stationOf(t, foreigner, nil)
		countAt(t, x.mux.Open(transport.ALPNRaft))
		l.move(foreigner.NodeID, x.addr)
		_, err := a.dialer.Dial(t.Context(), foreigner.NodeID, transport.ALPNRaft)
		if !errors.Is(err, transport.ErrWrongCluster) {
			t.Errorf("%s: %v, want ErrWrongCluster", name, err)
		}
	}
}

// knock dials without looking at who answers, as an attacker would, and gives the verdict: code and text.
func knock(t *testing.T, addr, alpn string, certs ...tls.Certificate) (code byte, text string, err error) {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, &tls.Config{
		MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, NextProtos: []string{alpn}, Certificates: certs,
	})
	if err != nil {
		return 0, "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(untilHung))
	all, err := io.ReadAll(conn)
	if len(all) < 2 {
		return 0, "", errors.Join(errors.New("no verdict"), err)
	}
	return all[0], string(all[2:]), nil
}

func TestForeignNodeIsNotLetIn(t *testing.T) {
	l := newLAN(t, "home")
	b := l.station(t, "b")
	in := countAt(t, b.mux.Open(transport.ALPNRaft))
	for name, foreigner := range foreigners(t, l) {
		code, text, err := knock(t, b.addr, transport.ALPNRaft, foreigner.KeyPair())
		if code != 2 {
			t.Errorf("%s: verdict %d %q, %v; want 2 (wrong cluster)", name, code, text, err)
		}
	}
	if in.count() != 0 {
		t.Errorf("%d foreign connections were handed out", in.count())
	}
	// Control: the same client is let in with a certificate of the cluster.
	a := l.member(t, "a")
	conn, err := tls.Dial("tcp", b.addr, &tls.Config{
		InsecureSkipVerify: true, NextProtos: []string{transport.ALPNRaft}, Certificates: []tls.Certificate{a.KeyPair()},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var verdict [2]byte
	if _, err := io.ReadFull(conn, verdict[:]); err != nil || verdict[0] != 0 {
		t.Errorf("control: verdict %v, %v", verdict, err)
	}
}

func TestNodeProtocolsWantACertificate(t *testing.T) {
	l := newLAN(t, "home")
	b := l.station(t, "b")
	for _, alpn := range []string{transport.ALPNRaft, transport.ALPNGossip, transport.ALPNRPC} {
		in := countAt(t, b.mux.Open(alpn))
		if code, text, err := knock(t, b.addr, alpn); err == nil {
			t.Errorf("%s without a certificate: verdict %d %q", alpn, code, text)
		}
		if in.count() != 0 {
			t.Errorf("%s: a connection without a certificate was handed out", alpn)
		}
	}
	if _, err := tls.Dial("tcp", b.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"lanjobs-raft/0"}}); err == nil {
		t.Error("an unknown protocol was accepted")
	}
	if _, err := tls.Dial("tcp", b.addr, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}); err == nil {
		t.Error("TLS 1.2 was accepted")
	}
}

func TestProtocolThatNobodyServes(t *testing.T) {
	l := newLAN(t, "home")
	a, b := l.station(t, "a"), l.station(t, "b")
	if _, err := a.dialer.Dial(t.Context(), b.id, transport.ALPNRaft); !errors.Is(err, transport.ErrNotRunning) {
		t.Errorf("before Open: %v, want ErrNotRunning", err)
	}
	ln := b.mux.Open(transport.ALPNRaft)
	go func() {
		if c, err := ln.Accept(); err == nil {
			_ = c.Close()
		}
	}()
	dial(t, a, b.id, transport.ALPNRaft)
	_ = ln.Close()
	if _, err := a.dialer.Dial(t.Context(), b.id, transport.ALPNRaft); !errors.Is(err, transport.ErrNotRunning) {
		t.Errorf("after Close: %v, want ErrNotRunning", err)
	}
}

// TestRemovedNodeIsPutOutAtOnce: at every protocol of nodes, whoever dialled whom.
func TestRemovedNodeIsPutOutAtOnce(t *testing.T) {
	for _, alpn := range []string{transport.ALPNRaft, transport.ALPNGossip, transport.ALPNRPC} {
		t.Run(alpn, func(t *testing.T) { removedIsPutOut(t, alpn) })
	}
}

func removedIsPutOut(t *testing.T, alpn string) {
	l := newLAN(t, "home")
	a, b, c := l.station(t, "a"), l.station(t, "b"), l.station(t, "c")
	ln, atA := b.mux.Open(alpn), a.mux.Open(alpn)
	countAt(t, c.mux.Open(alpn))
	fromA := dial(t, a, b.id, alpn)
	atB := accept(t, ln)
	toA := dial(t, b, a.id, alpn)
	accept(t, atA)
	out := dial(t, c, b.id, alpn) // another node's stays open
	atC := accept(t, ln)

	l.remove(a.id)
	b.trust.CloseNode(a.id)
	ended(t, fromA)
	ended(t, atB)
	ended(t, toA)
	for _, open := range [][2]net.Conn{{out, atC}, {atC, out}} {
		if _, err := open[0].Write([]byte("x")); err != nil {
			t.Errorf("a connection of another node was closed: %v", err)
		}
		if _, err := io.ReadFull(open[1], make([]byte, 1)); err != nil {
			t.Errorf("a connection of another node was closed: %v", err)
		}
	}

	// The removed node learns why; whether it knows of its removal itself or not.
	_, err := a.dialer.Dial(t.Context(), b.id, alpn)
	var refusal *transport.Refusal
	if !errors.As(err, &refusal) || !errors.Is(err, transport.ErrRemoved) || refusal.By != b.id {
		t.Errorf("dial by the removed node: %v, want ErrRemoved by b", err)
	}
	if _, err := b.dialer.DialAddr(t.Context(), a.addr, alpn); !errors.Is(err, transport.ErrRemoved) {
		t.Errorf("dial of the removed node's address: %v, want ErrRemoved", err)
	}
	l.move(a.id, refusingAddr(t)) // nothing is dialled
	if _, err := b.dialer.Dial(t.Context(), a.id, alpn); !errors.Is(err, transport.ErrRemoved) {
		t.Errorf("dial of the removed node: %v, want ErrRemoved", err)
	}
	// The refused one is closed just after its verdict.
	eventually(t, func() bool { return b.trust.Links(a.id) == 0 }, "connections of the removed node are left")
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

func TestIssueSignsOnlyForNodes(t *testing.T) {
	l := newLAN(t, "home")
	i, err := transport.NewIdentity("a")
	if err != nil {
		t.Fatal(err)
	}
	csr, err := i.CSR()
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]struct {
		csr string
		id  task.NodeID
	}{
		"no request": {"", i.NodeID}, "no PEM": {"x", i.NodeID}, "not a UUID": {csr, "../../x"}, "no id": {csr, ""},
		"broken signature": {csr[:len(csr)-60] + "AAAA" + csr[len(csr)-56:], i.NodeID},
	} {
		if _, err := l.ca.Issue(bad.csr, bad.id); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	// A certificate for another id is not adopted.
	cert, err := l.ca.Issue(csr, "6f1f0c9e-3f6a-4b1e-9c55-0d4c0a4d7a11")
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Adopt(l.info, cert); !errors.Is(err, transport.ErrWrongIdentity) || i.Member() {
		t.Errorf("adopted another node's certificate: %v", err)
	}
	// A member's certificate signs nobody.
	a := l.member(t, "a")
	if a.KeyPair().Leaf.IsCA {
		t.Error("a node's certificate is an authority's")
	}
	// The key of a request is told apart from that of another, and is the same again for the same node.
	h1, _ := transport.CSRKeyHash(csr)
	again, _ := i.CSR()
	h2, _ := transport.CSRKeyHash(again)
	other, _ := a.CSR()
	h3, _ := transport.CSRKeyHash(other)
	if string(h1) != string(h2) || string(h1) == string(h3) || len(h1) != 32 {
		t.Errorf("key hashes %x %x %x", h1, h2, h3)
	}
}
