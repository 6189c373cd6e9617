package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
	"lanjobs/transport/pake"
)

// login lets a person on a machine ask for access at peer.
func (l *pairLab) login(name, role, peer string) *stranger {
	l.t.Helper()
	dial := l.from("laptop")
	return l.stranger("", func(ctx context.Context, s *stranger) {
		access, err := transport.LoginByCode(ctx, transport.CodeLogin{Version: "1.4.0", Show: s.show, Say: s.say,
			LoginConfig: transport.LoginConfig{Peer: peer, Name: name, Role: role, Clock: l.clock, Net: dial},
			Approved: func(g transport.PairGrant) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.grant = &g
			}})
		s.mu.Lock()
		defer s.mu.Unlock()
		s.access, s.err = access, err
	})
}

// admit lets a client in by a token that the desk has made, as the ledger would.
func (l *pairLab) admit(_ context.Context, q transport.LoginRequest) (r transport.LoginReply, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unled > 0 {
		l.unled--
		return r, task.NewProblem(task.ErrNoLeader, "this machine does not lead now", "")
	}
	key, err := transport.CSRKeyHash(q.CSR)
	if err != nil {
		return r, err
	}
	for _, t := range l.tokens {
		if t.ID != pairTokenID(t.Hash, q.Name, "", key) {
			continue // see tokenMadeFor
		}
		if bytes.Equal(transport.HashSecret(q.TokenSecret), t.Hash) && t.Role != "" && (q.Role == "" || q.Role == string(t.Role)) {
			r = transport.LoginReply{ID: transport.ClientIDOf(key), Role: string(t.Role), ClusterID: l.info.ID, ClusterName: l.info.Name, CACert: l.info.CACert}
			r.Cert, err = l.ca.IssueClient(q.CSR, r.ID)
			return r, err
		}
	}
	return r, task.NewProblem(task.ErrNotAllowed, "no such token", "")
}

// TestPairingLogin: a person asks for one role and is given another; it is the key that the code stood for that is let in.
func TestPairingLogin(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		var key []byte
		l.serve("relay", l.info, l.ca, l.bent(func(q *transport.PairRequest) { key, _ = transport.CSRKeyHash(q.CSR) }, nil))
		s := l.login("anna@laptop", "viewer", "relay")
		if w := l.desk.Waiting(); len(w) != 1 || w[0].Name != "anna@laptop" || w[0].Role != "viewer" || w[0].Node != "" || w[0].Address != "laptop" {
			t.Fatalf("waiting: %+v", w)
		}
		v, err := l.check(s.code(t))
		if err != nil || v.Role != "viewer" {
			t.Fatalf("%+v, %v", v, err)
		}
		time.Sleep(2 * time.Second)
		if !s.heard(`typed on a member of "home"; a person there is asked whether to let you in`) {
			t.Errorf("it says %q", s.said)
		}
		for range 2 { // a repeat is harmless
			if v, err = l.desk.Approve(t.Context(), v.ID, transport.PairDecision{Role: "operator"}, "root@mini-1"); err != nil || v.Role != "operator" {
				t.Fatalf("%+v, %v", v, err)
			}
		}
		if _, err := s.outcome(); err != nil {
			t.Fatal(err)
		}
		if s.access.Role != "operator" || s.access.ID != transport.ClientIDOf(key) || s.grant.Role != "operator" || s.grant.By != "root@mini-1" {
			t.Errorf("access %s as %s, grant %+v; want the key %s", s.access.ID, s.access.Role, s.grant, transport.ClientIDOf(key))
		}
		if len(l.tokens) != 1 || l.tokens[0].Role != "operator" || l.tokens[0].Worker || l.tokens[0].Uses != 1 || l.tokens[0].TTL != task.MillisOf(pairTokenTTL) || l.tokens[0].By != "root@mini-1" {
			t.Errorf("tokens %+v", l.tokens)
		}
		err = l.desk.Refuse(v.ID, "root@mini-1")
		refused(t, err, task.ErrConflict, "lanjobs client rm anna@laptop")
	})
}

// TestPairingKindsApart: a decision about a machine lets no person in, and the reverse; the code stays good for the right one.
func TestPairingKindsApart(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		person, machine := l.login("anna@laptop", "viewer", "mini-1"), l.join("pc-win", "mini-1")
		for s, wrong := range map[*stranger][]transport.PairDecision{
			person:  {{}, {Worker: true}, {Worker: true, Role: "viewer"}, {Role: "boss"}},
			machine: {{Role: "viewer"}, {Role: "admin"}, {Role: "operator", Worker: true}},
		} {
			v, err := l.check(s.code(t))
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range wrong {
				if _, err := l.desk.Approve(t.Context(), v.ID, d, "root"); !errors.Is(err, task.ErrInvalid) {
					t.Errorf("%s, role %q: %+v: %v", v.Name, v.Role, d, err)
				}
			}
			again, err := l.check(s.code(t))
			if err != nil || again.ID != v.ID {
				t.Errorf("typed again: %+v, %v; want %s", again, err, v.ID)
			}
			if len(l.tokens) != 0 {
				t.Fatalf("tokens %+v", l.tokens)
			}
		}
	})
}

// TestPairingAlteredKind: a relay passes one kind of request off as the other, or alters what the person is shown of it.
func TestPairingAlteredKind(t *testing.T) {
	machine := `{"node":"3f0c4d52-6f0e-4d0c-9d53-2b1a6f1f8a11","name":"pc","os":"linux","arch":"amd64","version":"1.4.0"}`
	change := func(from, to string) func([]byte) []byte {
		return func(b []byte) []byte {
			if !bytes.Contains(b, []byte(from)) {
				t.Errorf("%s has no %s", b, from)
			}
			return bytes.Replace(b, []byte(from), []byte(to), 1)
		}
	}
	for what, c := range map[string]struct {
		person bool
		alter  func([]byte) []byte
		shown  string // what the altered request asks for
	}{
		"a login as a machine": {person: true, alter: func([]byte) []byte { return []byte(machine) }, shown: ""},
		"a machine as a login": {alter: func([]byte) []byte {
			return []byte(`{"name":"anna@laptop","os":"linux","arch":"amd64","version":"1.4.0","role":"admin"}`)
		}, shown: "admin"},
		"the role":     {person: true, alter: change(`"role":"viewer"`, `"role":"admin"`), shown: "admin"},
		"the name":     {person: true, alter: change(`anna@laptop`, `root@laptop`), shown: "viewer"},
		"a role twice": {person: true, alter: change(`"role":"viewer"`, `"role":"admin","role":"viewer"`), shown: "viewer"},
	} {
		t.Run(what, func(t *testing.T) {
			pairing(t, func(t *testing.T, l *pairLab) {
				l.serve("relay", l.info, l.ca, l.bent(func(q *transport.PairRequest) { q.Claim = c.alter(q.Claim) }, nil))
				var s *stranger
				if c.person {
					s = l.login("anna@laptop", "viewer", "relay")
				} else {
					s = l.join("pc", "relay")
				}
				if w := l.desk.Waiting(); len(w) != 1 || w[0].Role != c.shown {
					t.Fatalf("waiting: %+v", w)
				}
				_, err := l.check(s.code(t))
				refused(t, err, task.ErrNotAllowed, "no waiting machine has the code")
			})
		})
	}
}

// older is a leader that has the right code and answers a request under a protocol, whatever the request asks for, as one does that knows of
// machines only. It tells whether the other side gave a proof, and gives it a grant for a machine.
func (l *pairLab) older(protocol string, code func() transport.PairCode) (ask func(context.Context, transport.PairRequest, string) (transport.PairReply, error), proven func() bool) {
	var mu sync.Mutex
	var proof bool
	waited := map[string]bool{}
	var keys *pake.Keys
	ca := l.ca.Fingerprint()
	ask = func(_ context.Context, q transport.PairRequest, _ string) (transport.PairReply, error) {
		mu.Lock()
		defer mu.Unlock()
		r := transport.PairReply{State: transport.PairWaiting, Round: q.Round}
		proof = proof || q.Proof != nil
		if !waited[q.ID] || q.GiveUp {
			waited[q.ID] = true
			return r, nil
		}
		if q.Proof != nil && keys.Check(q.Proof) == nil {
			sealed, err := transport.PairGrant{Token: transport.NewJoinToken(ca).String(), By: "root", Cluster: "home"}.Seal(keys)
			r.State, r.Sealed = transport.PairApproved, sealed
			return r, err
		}
		key, err := transport.CSRKeyHash(q.CSR)
		if err != nil {
			return r, err
		}
		terms := pake.Terms{Code: []byte(code()), Channel: pake.Channel(protocol, key, ca[:]), Session: fmt.Appendf(nil, "%s/%d", q.ID, q.Round)}
		if r.Share, keys, err = pake.Answer(terms, q.Share, q.Claim); err != nil {
			return r, err
		}
		r.State, r.Proof = transport.PairChallenge, keys.Proof
		return r, nil
	}
	return ask, func() bool { mu.Lock(); defer mu.Unlock(); return proof }
}

// TestPairingLoginOlderLeader: a leader that takes a login for a machine's request gets no proof, so it can let nobody in; and what is
// sealed for a machine is nothing to a person.
func TestPairingLoginOlderLeader(t *testing.T) {
	for protocol, want := range map[string]bool{"lanjobs pairing/1": false, "lanjobs login pairing/1": true} {
		pairing(t, func(t *testing.T, l *pairLab) {
			var s *stranger
			ready := make(chan struct{})
			ask, proven := l.older(protocol, func() transport.PairCode { <-ready; return s.code(t) })
			l.serve("older", l.info, l.ca, ask)
			s = l.login("anna@laptop", "viewer", "older")
			close(ready)
			time.Sleep(time.Second)
			if proven() != want {
				t.Errorf("under %q: a proof: %v, want %v", protocol, proven(), want)
			}
			if want {
				_, err := s.outcome()
				refused(t, err, task.ErrNotAllowed, "older let you in, but what it sent was altered")
			}
		})
	}
}

// TestPairingLoginRefusedByOlderLeader: as such a leader answers in fact, the person is told at once what to do.
func TestPairingLoginRefusedByOlderLeader(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		l.serve("older", l.info, l.ca, func(context.Context, transport.PairRequest, string) (transport.PairReply, error) {
			return transport.PairReply{}, task.NewProblem(task.ErrInvalid, "not a request to pair: no node", "")
		})
		_, err := l.login("anna@laptop", "operator", "older").outcome()
		refused(t, err, task.ErrInvalid, "its version is older than this one. On a member: lanjobs token create --role operator; then here: lanjobs login older --token-file -")
	})
}

// TestPairingRoomAfterDecision: who was decided on takes no place on the list from those who come next.
func TestPairingRoomAfterDecision(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		for range maxApplicantsPerHost + 1 { // all from one host
			s := l.login("anna@laptop", "viewer", "mini-1")
			v, err := l.check(s.code(t))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.desk.Approve(t.Context(), v.ID, transport.PairDecision{Role: "viewer"}, "root"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.outcome(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestPairingLoginRefused(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		s := l.login("anna@laptop", "admin", "mini-1")
		v, err := l.check(s.code(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.desk.Refuse(v.ID, "root@mini-1"); err != nil {
			t.Fatal(err)
		}
		_, err = s.outcome()
		refused(t, err, task.ErrNotAllowed, "root@mini-1 did not let you in. Nothing has been changed here")
		if len(l.tokens) != 0 || s.grant != nil {
			t.Errorf("tokens %+v, grant %+v", l.tokens, s.grant)
		}
	})
}

// TestPairingLoginStranger: what cannot be let in, or could mislead on a screen, is refused before anybody types a code.
func TestPairingLoginStranger(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		i, err := transport.NewIdentity("x")
		if err != nil {
			t.Fatal(err)
		}
		csr, err := i.CSR()
		if err != nil {
			t.Fatal(err)
		}
		ask := func(claim string) error {
			_, err := l.desk.Ask(t.Context(), transport.PairRequest{ID: strings.Repeat("a", 32), Claim: []byte(claim), CSR: csr, Share: make([]byte, 32)}, "10.0.0.9")
			return err
		}
		const rest = `"os":"linux","arch":"amd64","version":"1"`
		for what, claim := range map[string]string{
			"a role that is none": `{"name":"anna@laptop","role":"boss",` + rest + `}`,
			"both kinds":          `{"node":"3f0c4d52-6f0e-4d0c-9d53-2b1a6f1f8a11","name":"pc","role":"viewer",` + rest + `}`,
			"a worker":            `{"name":"anna@laptop","role":"viewer","worker":true,` + rest + `}`,
			"no name":             `{"role":"viewer",` + rest + `}`,
			"two words":           `{"name":"anna as viewer","role":"admin",` + rest + `}`,
			"control signs":       `{"name":"anna\u001b[2J","role":"viewer",` + rest + `}`,
			"turned around":       `{"name":"\u202eanna","role":"viewer",` + rest + `}`,
			"a long name":         `{"name":"` + strings.Repeat("a", 65) + `","role":"viewer",` + rest + `}`,
			"a person's name":     `{"node":"3f0c4d52-6f0e-4d0c-9d53-2b1a6f1f8a11","name":"anna@laptop",` + rest + `}`,
		} {
			if err := ask(claim); !errors.Is(err, task.ErrInvalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := ask(`{"name":"zoë@laptop","role":"viewer",` + rest + `}`); err != nil {
			t.Errorf("a good one: %v", err)
		}
	})
}

// TestPairingLoginBelowItsLevel: while a member is too old for logins, whoever asks for one is told so at once, and not after a person
// has typed a code and said yes; machines join as ever.
func TestPairingLoginBelowItsLevel(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		l.tooOld = task.NewProblem(task.ErrConflict, "this needs a newer lanjobs on every machine; nas runs 1.3.0", "Copy the new binary to nas and start it again.")
		s := l.login("anna@laptop", "admin", "mini-1")
		_, err := s.outcome()
		refused(t, err, task.ErrConflict, "nas runs 1.3.0")
		if len(s.codes) > 0 && len(l.desk.Waiting()) > 0 {
			t.Errorf("it waits under %v", s.codes)
		}
		l.join("pc", "mini-1").code(t)
	})
}

// TestATokenOfACodeIsForWhoHadTheCode: under another name or with another key it lets nobody in, and is not used up.
func TestATokenOfACodeIsForWhoHadTheCode(t *testing.T) {
	hash, key := []byte("hash of the secret"), []byte("key")
	s := fsm.New()
	s.ApplyBatch(1, &fsm.Batch{Commands: []fsm.Command{
		&fsm.InitCluster{ID: "c1", Name: "home"},
		&fsm.CreateToken{ID: pairTokenID(hash, "anna@laptop", "", key), Hash: hash, TTL: task.Minute, Uses: 1, Role: fsm.RoleViewer},
		&fsm.CreateToken{ID: "t1", Hash: []byte("by a person"), TTL: task.Minute, Uses: 1, Role: fsm.RoleViewer}}})
	if len(s.JoinTokens()) != 2 {
		t.Fatal("no tokens")
	}
	for _, c := range []struct {
		hash, name string
		node       task.NodeID
		key        string
		ok         bool
	}{
		{"hash of the secret", "anna@laptop", "", "key", true},
		{"hash of the secret", "root@mini-1", "", "key", false},
		{"hash of the secret", "anna@laptop", "", "other", false},
		{"hash of the secret", "anna@laptop", "n1", "key", false},
		{"by a person", "anybody", "", "any", true},
		{"unknown", "anybody", "", "any", true}, // the ledger refuses it
	} {
		err := tokenMadeFor(s, []byte(c.hash), c.name, c.node, []byte(c.key))
		if (err == nil) != c.ok || err != nil && !errors.Is(err, task.ErrNotAllowed) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
