package transport_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// client makes a client of the LAN's cluster.
func (l *lan) client(t testing.TB, name string) *transport.Access {
	t.Helper()
	return clientOf(t, l.info, l.ca, name)
}

func clientOf(t testing.TB, info transport.ClusterInfo, ca *transport.CA, name string) *transport.Access {
	t.Helper()
	a, err := ca.NewClient(info, name, "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestEveryDoorWantsItsOwnCertificate tries each kind of certificate at each door of the port (C47): those of nodes let nodes of the
// cluster in and nobody else, above all no client; the API answers clients of the cluster and nobody else, above all no node.
func TestEveryDoorWantsItsOwnCertificate(t *testing.T) {
	l, other := newLAN(t, "home"), newLAN(t, "garage")
	forged := transport.ForgedCA(l.info.ID, "home")
	forgedInfo := l.info
	forgedInfo.CACert = forged.CertPEM()
	removed := l.member(t, "removed")
	l.remove(removed.NodeID)
	node, client := l.member(t, "a"), l.client(t, "anna@laptop")
	kinds := []struct {
		name  string
		certs []tls.Certificate
		doors string // that open: "nodes", "api" or ""
	}{
		{"a node", []tls.Certificate{node.KeyPair()}, "nodes"},
		{"a client", []tls.Certificate{client.KeyPair()}, "api"},
		{"nothing", nil, ""},
		{"a removed node", []tls.Certificate{removed.KeyPair()}, ""},
		{"a node of another cluster", []tls.Certificate{other.member(t, "x").KeyPair()}, ""},
		{"a client of another cluster", []tls.Certificate{other.client(t, "x").KeyPair()}, ""},
		{"a node by a forged authority", []tls.Certificate{issue(t, forgedInfo, forged, "x").KeyPair()}, ""},
		{"a client by a forged authority", []tls.Certificate{clientOf(t, forgedInfo, forged, "x").KeyPair()}, ""},
		{"the authority itself", []tls.Certificate{{Certificate: [][]byte{l.ca.Cert().Raw}, PrivateKey: node.KeyPair().PrivateKey}}, ""},
		{"a node's certificate with another's key", []tls.Certificate{{Certificate: node.KeyPair().Certificate, PrivateKey: client.KeyPair().PrivateKey}}, ""},
		{"a client's certificate with another's key", []tls.Certificate{{Certificate: client.KeyPair().Certificate, PrivateKey: node.KeyPair().PrivateKey}}, ""},
	}
	for _, alpn := range []string{transport.ALPNRaft, transport.ALPNGossip, transport.ALPNRPC} {
		b := l.station(t, "b")
		in := countAt(t, b.mux.Open(alpn))
		for _, k := range kinds {
			if k.doors == "nodes" {
				continue
			}
			if code, text, err := knock(t, b.addr, alpn, k.certs...); err == nil && code == 0 {
				t.Errorf("%s at %s: verdict %d %q", k.name, alpn, code, text)
			}
		}
		// Control, and after it nobody else has come through.
		conn, err := tls.Dial("tcp", b.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}, Certificates: kinds[0].certs})
		if err != nil {
			t.Fatal(err)
		}
		var verdict [2]byte
		if _, err := io.ReadFull(conn, verdict[:]); err != nil || verdict[0] != 0 {
			t.Errorf("control: a node at %s: verdict %v, %v", alpn, verdict, err)
		}
		eventually(t, func() bool { return in.count() > 0 }, "control: a node's connection was not handed out")
		if n := in.count(); n != 1 {
			t.Errorf("%s: %d connections were handed out, want the node's alone", alpn, n)
		}
		_ = conn.Close()
	}
	b := l.station(t, "b")
	serveWeb(t, b, nil)
	for _, k := range kinds {
		got, err := get(t, b, "/v1/status", k.certs...)
		switch {
		case k.doors == "api" && (err != nil || got != 200):
			t.Errorf("control: %s at the API: %d, %v", k.name, got, err)
		case k.doors != "api" && err == nil && got != 403:
			t.Errorf("%s at the API: %d", k.name, got)
		}
	}
}

// TestClientIsKnownByItsCertificate: the API hears which client asks, and by which key.
func TestClientIsKnownByItsCertificate(t *testing.T) {
	l := newLAN(t, "home")
	b := l.station(t, "b")
	anna := l.client(t, "anna@laptop")
	var heard transport.ClientProof
	background(t, func(ctx context.Context) error {
		return transport.Serve(ctx, b.mux, transport.Services{Calls: refuseCalls, API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			heard = transport.ClientFrom(r.Context())
			if id := transport.PeerFrom(r.Context()); id != "" {
				t.Errorf("a client passes as node %s", id)
			}
		}), Clock: b.clock, Log: discard})
	})
	door := doorOf(t, anna, b)
	if err := ask(t, door, "/v1/status"); err != nil {
		t.Fatal(err)
	}
	if heard.ID != anna.ID || transport.ClientIDOf(heard.Key) != anna.ID {
		t.Errorf("heard %+v, want %s", heard, anna.ID)
	}
}

var refuseCalls = transport.HandlerFunc(func(context.Context, task.NodeID, transport.Method, []byte) (any, error) {
	return nil, task.ErrInvalid
})

// doorOf leads a client to stations.
func doorOf(t *testing.T, a *transport.Access, to ...*station) http.RoundTripper {
	t.Helper()
	for _, s := range to {
		a.Members = append(a.Members, transport.Member{ID: s.id, Name: "m", Addrs: []string{s.addr}})
	}
	door, err := transport.AccessDoor(a, transport.DialTCP, to[0].clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(door.(interface{ CloseIdleConnections() }).CloseIdleConnections)
	return door
}

func ask(t *testing.T, door http.RoundTripper, path string) error {
	t.Helper()
	return transport.NewAPIClient(door).Get(t.Context(), path, nil)
}

// TestRemovedClientIsCutOff: its open connections are closed, a stream in the middle included; those of others stay.
func TestRemovedClientIsCutOff(t *testing.T) {
	l := newLAN(t, "home")
	b := l.station(t, "b")
	anna, ben := l.client(t, "anna@laptop"), l.client(t, "ben@pc")
	background(t, func(ctx context.Context) error {
		return transport.Serve(ctx, b.mux, transport.Services{Calls: refuseCalls, Clock: b.clock, Log: discard, API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "first\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})})
	})
	open := func(a *transport.Access) io.ReadCloser {
		resp, err := transport.NewAPIClient(doorOf(t, a, b)).Open(t.Context(), http.MethodGet, "/v1/events", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		if _, err := io.ReadFull(resp.Body, make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		return resp.Body
	}
	hers, his := open(anna), open(ben)
	if n := b.trust.Clients(); n != 2 {
		t.Fatalf("%d connections of clients", n)
	}
	b.trust.CloseClients(func(id string) bool { return id == anna.ID })
	ended := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(hers)
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the stream of a removed client ended like a complete one")
		}
	case <-time.After(untilHung):
		t.Fatal("the stream of a removed client is still open")
	}
	if n := b.trust.Clients(); n != 1 {
		t.Errorf("%d connections of clients are left, want 1", n)
	}
	_ = his.Close()
	eventually(t, func() bool { return b.trust.Clients() == 0 }, "a closed connection is still listed")
}

// TestClientFollowsTheCluster: the members it knows are tried in order; what does not answer, answers for another cluster or knows no
// leader is passed over.
func TestClientFollowsTheCluster(t *testing.T) {
	l := newLAN(t, "home")
	serve := func(s *station, h http.HandlerFunc) {
		background(t, func(ctx context.Context) error {
			return transport.Serve(ctx, s.mux, transport.Services{Calls: refuseCalls, API: h, Clock: s.clock, Log: discard})
		})
	}
	var mu sync.Mutex
	asked := map[string]int{}
	count := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		asked[name]++
	}
	lost, good := l.station(t, "lost"), l.station(t, "good")
	serve(lost, func(w http.ResponseWriter, _ *http.Request) {
		count("lost")
		transport.WriteProblem(w, task.NewProblem(task.ErrNoLeader, "no leader is known now", ""))
	})
	serve(good, func(http.ResponseWriter, *http.Request) { count("good") })
	foreign := newLAN(t, "garage").station(t, "x")
	serve(foreign, func(http.ResponseWriter, *http.Request) { count("foreign") })

	anna := l.client(t, "anna@laptop")
	anna.Members = []transport.Member{{ID: "gone", Addrs: []string{refusingAddr(t)}}}
	door := doorOf(t, anna, foreign, lost, good)
	if err := ask(t, door, "/v1/jobs"); !errors.Is(err, task.ErrNoLeader) {
		t.Errorf("at the member without a leader: %v", err)
	}
	for range 3 {
		if err := ask(t, door, "/v1/jobs"); err != nil {
			t.Errorf("after that: %v", err)
		}
	}
	if asked["lost"] != 1 || asked["good"] != 3 || asked["foreign"] != 0 {
		t.Errorf("asked %v", asked)
	}

	alone := l.client(t, "ben@pc")
	alone.Members = []transport.Member{{ID: "x", Addrs: []string{foreign.addr}}}
	alone.Peer = ""
	door, err := transport.AccessDoor(alone, transport.DialTCP, good.clock)
	if err != nil {
		t.Fatal(err)
	}
	if err := ask(t, door, "/v1/jobs"); !errors.Is(err, task.ErrNotAllowed) || !strings.Contains(err.Error(), `no machine of "home" answers`) {
		t.Errorf("only another cluster answers: %v", err)
	}
	alone.Members, alone.Peer = nil, refusingAddr(t)
	if door, err = transport.AccessDoor(alone, transport.DialTCP, good.clock); err != nil {
		t.Fatal(err)
	}
	if err := ask(t, door, "/v1/jobs"); !errors.Is(err, task.ErrNoLeader) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("nobody answers: %v", err)
	}
}

// loginDesk admits who comes with its token, as package node does.
type loginDesk struct {
	lan   *lan
	token transport.JoinToken
	bend  func(*transport.LoginReply)

	mu    sync.Mutex
	asked []transport.LoginRequest
}

func (d *loginDesk) admit(_ context.Context, q transport.LoginRequest) (transport.LoginReply, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, q)
	if !bytes.Equal(transport.HashSecret(q.TokenSecret), transport.HashSecret(d.token.Secret)) {
		return transport.LoginReply{}, task.NewProblem(task.ErrNotAllowed, "this login token is not known here", "")
	}
	key, err := transport.CSRKeyHash(q.CSR)
	if err != nil {
		return transport.LoginReply{}, err
	}
	id := transport.ClientIDOf(key)
	cert, err := d.lan.ca.IssueClient(q.CSR, id)
	r := transport.LoginReply{ID: id, Role: "viewer", Cert: cert, ClusterID: d.lan.info.ID, ClusterName: "home", CACert: d.lan.info.CACert,
		Members: []transport.Member{{ID: "m", Name: "mini-1", Addrs: []string{"10.0.0.7:7420"}}}}
	if d.bend != nil {
		d.bend(&r)
	}
	return r, err
}

// desk serves a loginDesk at a station.
func desk(t *testing.T, l *lan, s *station) *loginDesk {
	d := &loginDesk{lan: l, token: transport.NewJoinToken(l.ca.Fingerprint())}
	background(t, func(ctx context.Context) error {
		return transport.Serve(ctx, s.mux, transport.Services{Calls: refuseCalls, API: answers200, Login: transport.LoginHandler(d.admit), Clock: s.clock, Log: discard})
	})
	eventually(t, func() bool { _, err := get(t, s, "/healthz"); return err == nil }, "nothing is served")
	return d
}

func TestLoginMakesAClient(t *testing.T) {
	l, other := newLAN(t, "home"), newLAN(t, "garage")
	b := l.station(t, "b")
	d := desk(t, l, b)
	way := newTap(t, b.addr)
	cfg := transport.LoginConfig{Peer: way.addr, Token: transport.NewJoinToken(other.ca.Fingerprint()).String(), Name: "anna@laptop", Net: transport.DialTCP, Clock: b.clock}
	if _, err := transport.Login(t.Context(), cfg); !errors.Is(err, task.ErrNotAllowed) || !strings.Contains(err.Error(), "is not the cluster this token was made for") {
		t.Errorf("token of another cluster: %v", err)
	}
	if len(d.asked) != 0 {
		t.Fatal("the secret was sent to a cluster that it is not for")
	}
	cfg.Token = d.token.String()
	a, err := transport.Login(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(way.sent(), []byte(d.token.Secret)) {
		t.Error("the secret crossed the network in the clear")
	}
	if a.Role != "viewer" || a.ClusterName != "home" || len(a.Members) != 1 || a.Addrs()[0] != "10.0.0.7:7420" || a.Addrs()[1] != way.addr {
		t.Errorf("%+v", a)
	}
	a.Members = nil
	if err := ask(t, doorOf(t, a, b), "/v1/status"); err != nil {
		t.Errorf("with the new access: %v", err)
	}
	// What a client gets must not make it a machine.
	reply, err := d.admit(t.Context(), d.asked[0])
	text, _ := json.Marshal(reply)
	if err != nil || bytes.Contains(bytes.ToLower(text), []byte("gossip")) {
		t.Errorf("%v: %s", err, text)
	}
	for name, bend := range map[string]func(*transport.LoginReply){
		"another's id":      func(r *transport.LoginReply) { r.ID = "c0123456789a" },
		"another authority": func(r *transport.LoginReply) { r.CACert = other.info.CACert },
		"another cluster":   func(r *transport.LoginReply) { r.ClusterID = other.info.ID },
		"no certificate":    func(r *transport.LoginReply) { r.Cert = "" },
	} {
		d.bend = bend
		if _, err := transport.Login(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "not usable") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLoginDoorIsNarrow(t *testing.T) {
	l := newLAN(t, "home")
	b := l.station(t, "b")
	d := desk(t, l, b)
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for name, body := range map[string]string{
		"no secret": `{"csr":"x","name":"a"}`, "no name": `{"token_secret":"x"}`, "blank name": `{"token_secret":"x","name":"a b"}`,
		"control signs": `{"token_secret":"x","name":"a\u001b[2J"}`, "long name": `{"token_secret":"x","name":"` + strings.Repeat("a", 65) + `"}`, "no JSON": "x",
	} {
		resp, err := web.Post("https://"+b.addr+"/v1/login", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode < 400 {
			t.Errorf("%s: %s", name, resp.Status)
		}
	}
	if got, err := get(t, b, "/v1/login"); err != nil || got != 400 {
		t.Errorf("GET: %d, %v", got, err)
	}
	if len(d.asked) != 0 {
		t.Errorf("the desk was asked %d times", len(d.asked))
	}
}

// TestAccessIsKept: what was written is read back, and what is damaged is refused.
func TestAccessIsKept(t *testing.T) {
	l := newLAN(t, "home")
	a, dir := l.client(t, "anna@laptop"), t.TempDir()
	a.Members = []transport.Member{{ID: "m", Name: "mini-1", Addrs: []string{"10.0.0.7:7420"}}}
	names, texts, err := a.Text()
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), texts[i], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	back, err := transport.LoadAccess(dir)
	if err != nil || back.ID != a.ID || back.Addrs()[0] != "10.0.0.7:7420" {
		t.Fatalf("%+v, %v", back, err)
	}
	for _, spoil := range []func(string) string{
		func(s string) string { return strings.Replace(s, a.ID, "c0123456789a", 1) },
		func(s string) string { return strings.Replace(s, "BEGIN PRIVATE", "BEGIN PUBLIC", 1) },
		func(s string) string { return s[:len(s)/2] },
	} {
		if err := os.WriteFile(filepath.Join(dir, transport.AccessFile), []byte(spoil(string(texts[1]))), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := transport.LoadAccess(dir); err == nil || errors.Is(err, os.ErrNotExist) {
			t.Errorf("a damaged file: %v", err)
		}
	}
	if _, err := transport.LoadAccess(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
