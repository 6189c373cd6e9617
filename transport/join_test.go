package transport_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"lanjobs/task"
	"lanjobs/transport"
)

// reception admits who comes with its token, as package node does.
type reception struct {
	lan   *lan
	token transport.JoinToken
	bend  func(transport.JoinRequest, *transport.JoinReply) // spoils the answer

	mu    sync.Mutex
	asked []transport.JoinRequest
}

func newReception(l *lan) *reception {
	return &reception{lan: l, token: transport.NewJoinToken(l.ca.Fingerprint())}
}

func (r *reception) admit(_ context.Context, q transport.JoinRequest, remote string) (transport.JoinReply, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, q)
	if host, _, err := net.SplitHostPort(remote); err != nil || host != "127.0.0.1" {
		return transport.JoinReply{}, errors.New("came from " + remote)
	}
	if !bytes.Equal(transport.HashSecret(q.TokenSecret), transport.HashSecret(r.token.Secret)) {
		return transport.JoinReply{}, task.NewProblem(task.ErrNotAllowed, "this token ended at 14:02 (tokens last 1h, 1 use).", "On a member: lanjobs token create")
	}
	cert, err := r.lan.ca.Issue(q.CSR, q.Info.ID)
	reply := transport.JoinReply{Cert: cert, Cluster: r.lan.info, Members: []transport.Member{{ID: "m", Name: "mini-1", Addrs: q.Addrs}}}
	if r.bend != nil {
		r.bend(q, &reply)
	}
	return reply, err
}

func (r *reception) heard() []transport.JoinRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// joiner is a machine that wants in.
func joiner(t *testing.T, s *station, peer, token string) transport.JoinConfig {
	t.Helper()
	i, err := transport.NewIdentity("pc-win")
	if err != nil {
		t.Fatal(err)
	}
	return transport.JoinConfig{
		Peer: peer, Token: token, Identity: i, Info: task.NodeInfo{ID: i.NodeID, Name: "pc-win"},
		Addrs: []string{"10.0.0.7:7420"}, Net: transport.DialTCP, Clock: s.clock,
	}
}

func TestJoinMakesAMember(t *testing.T) {
	l := newLAN(t, "home")
	b := l.station(t, "b")
	r := newReception(l)
	serveWeb(t, b, transport.JoinHandler(r.admit))
	cfg := joiner(t, b, b.addr, r.token.String())
	reply, err := transport.Join(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(reply.Members) != 1 || reply.Members[0].Addrs[0] != "10.0.0.7:7420" || reply.Cluster.Name != "home" {
		t.Errorf("reply %+v", reply)
	}
	if cfg.Identity.Member() {
		t.Error("Join changed the identity")
	}
	if err := cfg.Identity.Adopt(reply.Cluster, reply.Cert); err != nil {
		t.Fatal(err)
	}
	countAt(t, b.mux.Open(transport.ALPNRaft))
	dial(t, l.stationOf(t, cfg.Identity, nil), b.id, transport.ALPNRaft)
}

func TestTokenOfAnotherClusterStaysHere(t *testing.T) {
	l, other := newLAN(t, "home"), newLAN(t, "garage")
	b := l.station(t, "b")
	r := newReception(l)
	serveWeb(t, b, transport.JoinHandler(r.admit))
	way := newTap(t, b.addr)
	token := transport.NewJoinToken(other.ca.Fingerprint())
	_, err := transport.Join(t.Context(), joiner(t, b, way.addr, token.String()))
	here, there := other.ca.Fingerprint().String(), l.ca.Fingerprint().String()
	want := "127.0.0.1 is not the cluster this token was made for (token: CA " + here[:9] + "…, 127.0.0.1: CA " + there[:9] + "…)."
	p, ok := errors.AsType[*task.Problem](err)
	if !ok || p.Code != "not_allowed" || p.Detail != want || p.Hint != "Nothing was sent. Make a new one on a member: lanjobs token create" {
		t.Errorf("%+v, want %s", err, want)
	}
	if len(r.heard()) != 0 || bytes.Contains(way.sent(), []byte(token.Secret)) {
		t.Error("the secret was sent")
	}
}

// A man in the middle can show the authority's certificate, which everybody may see, but has no key that it signed for.
func TestBorrowedAuthorityIsNoProof(t *testing.T) {
	l := newLAN(t, "home")
	b := l.station(t, "b") // lends its clock
	r := newReception(l)
	forged := transport.ForgedCA(l.info.ID, "home")
	info := l.info
	info.CACert = forged.CertPEM()
	pair := issue(t, info, forged, "x").KeyPair()
	pair.Certificate[1] = l.ca.Cert().Raw
	heard := impostor(t, pair)
	_, err := transport.Join(t.Context(), joiner(t, b, heard.addr, r.token.String()))
	if !errors.Is(err, task.ErrNotAllowed) || !strings.Contains(err.Error(), "not signed by it") {
		t.Errorf("%v, want not_allowed", err)
	}
	if heard.wait() != 0 {
		t.Error("something was sent to the impostor")
	}
}

// impostor is a TLS server with any certificate that counts what it is told.
type impostorServer struct {
	addr string
	got  chan int
}

func impostor(t *testing.T, pair tls.Certificate) *impostorServer {
	t.Helper()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	s := &impostorServer{addr: ln.Addr().String(), got: make(chan int, 1)}
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		b, _ := io.ReadAll(conn)
		s.got <- len(b)
	}()
	t.Cleanup(func() { _ = ln.Close() })
	return s
}

func (s *impostorServer) wait() int { return <-s.got }

func TestJoinFailuresSayWhatToDo(t *testing.T) {
	l := newLAN(t, "home")
	b := l.station(t, "b")
	r := newReception(l)
	serveWeb(t, b, transport.JoinHandler(r.admit))
	good := r.token.String()
	plain := http.Server{Handler: answers200}
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = plain.Serve(web) }()
	defer plain.Close()
	nobody := refusingAddr(t)
	_, port, _ := net.SplitHostPort(nobody)
	pair := newLAN(t, "x").member(t, "x").KeyPair()
	pair.Certificate = pair.Certificate[:1]
	bare := impostor(t, pair)

	for _, c := range []struct{ name, peer, token, code, want string }{
		{"nobody listens", nobody, good, "no_leader", "cannot reach " + nobody + " (connection refused). A firewall must let in TCP and UDP " + port + "."},
		{"no TLS", web.Addr().String(), good, "invalid", "no TLS is spoken there"},
		{"no cluster", bare.addr, good, "invalid", "no member of a lanjobs cluster"},
		{"token used up", b.addr, transport.NewJoinToken(l.ca.Fingerprint()).String(), "not_allowed", "this token ended at 14:02"},
		{"token cut off", b.addr, good[:40], "invalid", "cut off"},
		{"no machine", "http://mini-1/", good, "invalid", "no machine"},
		{"no such host", "no-such-host.invalid", good, "no_leader", "cannot reach no-such-host.invalid:7420 ("},
	} {
		_, err := transport.Join(t.Context(), joiner(t, b, c.peer, c.token))
		p, ok := errors.AsType[*task.Problem](err)
		if !ok || p.Code != c.code || !strings.Contains(p.Detail, c.want) {
			t.Errorf("%s: %v (%+v), want %s %q", c.name, err, p, c.code, c.want)
		}
		if err != nil && strings.Contains(err.Error(), r.token.Secret) {
			t.Errorf("%s: the secret is in the error: %v", c.name, err)
		}
	}
}

func TestUnusableJoinReplyIsNotTaken(t *testing.T) {
	l, other := newLAN(t, "home"), newLAN(t, "garage")
	b := l.station(t, "b")
	r := newReception(l)
	serveWeb(t, b, transport.JoinHandler(r.admit))
	for name, bend := range map[string]func(transport.JoinRequest, *transport.JoinReply){
		"another authority": func(_ transport.JoinRequest, r *transport.JoinReply) { r.Cluster.CACert = other.info.CACert },
		"another cluster, all of it": func(q transport.JoinRequest, r *transport.JoinReply) {
			r.Cluster = other.info
			r.Cert, _ = other.ca.Issue(q.CSR, q.Info.ID)
		},
		"another node":           func(_ transport.JoinRequest, r *transport.JoinReply) { r.Cert = l.member(t, "x").Cert },
		"no certificate":         func(_ transport.JoinRequest, r *transport.JoinReply) { r.Cert = "" },
		"no key":                 func(_ transport.JoinRequest, r *transport.JoinReply) { r.Cluster.GossipKey = nil },
		"another cluster's name": func(_ transport.JoinRequest, r *transport.JoinReply) { r.Cluster.ID = other.info.ID },
	} {
		r.mu.Lock()
		r.bend = bend
		r.mu.Unlock()
		if _, err := transport.Join(t.Context(), joiner(t, b, b.addr, r.token.String())); err == nil || !strings.Contains(err.Error(), "not usable") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a stranger can send to /v1/join by itself (C47).
func TestJoinDoorIsNarrow(t *testing.T) {
	l := newLAN(t, "home")
	b := l.station(t, "b")
	r := newReception(l)
	serveWeb(t, b, transport.JoinHandler(r.admit))
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"nothing": {"", 400}, "no JSON": {"x", 400}, "no token": {"{}", 403}, "empty token": {`{"token_secret":""}`, 403},
		"too much":    {`{"token_secret":"` + strings.Repeat("x", 300<<10) + `"}`, 400},
		"blanks":      {`{"token_secret":"  "}`, 403},
		"wrong token": {`{"token_secret":"00000000000000000000000000"}`, 403}, "cut by one": {`{"token_secret":"` + r.token.Secret[:25] + `"}`, 403},
	} {
		resp, err := client.Post("https://"+b.addr+"/v1/join", "application/json", strings.NewReader(c.body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != c.want || bytes.Contains(text, []byte(r.token.Secret)) {
			t.Errorf("%s: %d %s, want %d", name, resp.StatusCode, text, c.want)
		}
	}
	for _, q := range r.heard() {
		if q.TokenSecret == "" {
			t.Error("a request without a token was brought before the cluster")
		}
	}
}

func TestPeerIsReadAsTyped(t *testing.T) {
	for peer, want := range map[string]string{
		"mini-1": "mini-1:7420", "mini-1.local:99": "mini-1.local:99", "192.168.1.5": "192.168.1.5:7420", "192.168.1.5:7": "192.168.1.5:7",
		"fd00::1": "[fd00::1]:7420", "[fd00::1]": "[fd00::1]:7420", "[fd00::1]:80": "[fd00::1]:80", "fe80::1%eth0": "[fe80::1%eth0]:7420",
		"[fe80::1%eth0]:80": "[fe80::1%eth0]:80",
	} {
		if _, addr, err := transport.PeerAddr(peer); err != nil || addr != want {
			t.Errorf("%q: %s, %v; want %s", peer, addr, err, want)
		}
	}
	for _, peer := range []string{"", ":7420", "mini-1:", "mini-1:x", "mini-1:0", "mini-1:70000", "https://mini-1", "a b", "a@b", "a:b:c", "fd00::x", "[a:b]:80"} {
		if _, addr, err := transport.PeerAddr(peer); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%q: %s, %v", peer, addr, err)
		}
	}
}

// UX 1.5.
func TestUnreachedTextOnAMac(t *testing.T) {
	route := &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}
	p := transport.UnreachedText("darwin", "mini-1", "7420", route, true)
	if p.Code != "no_leader" || p.Detail+" "+p.Hint != "cannot reach mini-1:7420 (no route to host), although this Mac has a route to it. macOS may be blocking lanjobs: "+
		"System Settings > Privacy & Security > Local Network. A system service is exempt: sudo lanjobs service install" {
		t.Errorf("%+v", p)
	}
	for _, p := range []*task.Problem{
		transport.UnreachedText("darwin", "mini-1", "7420", route, false), transport.UnreachedText("linux", "mini-1", "7420", route, true),
	} {
		if p.Detail != "cannot reach mini-1:7420 (no route to host). A firewall must let in TCP and UDP 7420." ||
			p.Hint != `If "lanjobs status" on mini-1 says "this machine only", run "lanjobs init" there first.` {
			t.Errorf("%+v", p)
		}
	}
}
