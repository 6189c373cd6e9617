package transport_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

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
