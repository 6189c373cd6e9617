package transport_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
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
