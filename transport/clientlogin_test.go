package transport_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"lanjobs/task"
	"lanjobs/transport"
)

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
