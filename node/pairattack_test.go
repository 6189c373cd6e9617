package node

import (
	"slices"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// TestPairingInterceptor: whoever stands in between with an authority of its own, and passes everything on, lets the right code
// fail, and both sides say what that may mean.
func TestPairingInterceptor(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		l.interceptor("evil", nil)
		s := l.join("pc-win", "evil")
		_, err := l.check(s.code(t))
		refused(t, err, task.ErrNotAllowed, "someone may be altering the traffic")
		time.Sleep(2 * time.Second)
		if !s.heard("if that is what was typed, somebody may be altering the traffic") {
			t.Errorf("the machine says %q", s.said)
		}
		if len(l.tokens) != 0 {
			t.Errorf("tokens %+v", l.tokens)
		}
	})
}

// TestPairingControl: the same way without an authority of its own works, so that it is the authority that was noticed.
func TestPairingControl(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		l.serve("relay", l.info, l.ca, l.desk.Ask)
		s := l.join("pc-win", "relay")
		if _, err := l.check(s.code(t)); err != nil {
			t.Error(err)
		}
	})
}

// TestPairingAltered: a member that is broken, or has been taken over, relays but alters one thing on the way.
func TestPairingAltered(t *testing.T) {
	own, err := transport.NewIdentity("evil")
	if err != nil {
		t.Fatal(err)
	}
	csr, err := own.CSR()
	if err != nil {
		t.Fatal(err)
	}
	for what, bend := range map[string]struct {
		request func(*transport.PairRequest)
		reply   func(*transport.PairReply)
	}{
		"the name":           {request: func(q *transport.PairRequest) { q.Claim = slices.Concat(q.Claim[:len(q.Claim)-1], []byte(`,"x":1}`)) }},
		"the key":            {request: func(q *transport.PairRequest) { q.CSR = csr }},
		"the round":          {request: func(q *transport.PairRequest) { q.Round += 7 }, reply: func(r *transport.PairReply) { r.Round -= 7 }},
		"the id":             {request: func(q *transport.PairRequest) { q.ID = "b" + q.ID[1:] + "b" }},
		"the leader's share": {reply: func(r *transport.PairReply) { swap(r.Share) }},
		"the leader's proof": {reply: func(r *transport.PairReply) { swap(r.Proof) }},
		"a reflected share":  {reply: func(r *transport.PairReply) { r.Share = make([]byte, 32) }},
	} {
		t.Run(what, func(t *testing.T) {
			pairing(t, func(t *testing.T, l *pairLab) {
				l.serve("relay", l.info, l.ca, l.bent(bend.request, bend.reply))
				s := l.join("pc-win", "relay")
				_, err := l.check(s.code(t))
				refused(t, err, task.ErrNotAllowed, "no waiting machine has the code")
			})
		})
	}
}

// TestPairingAlteredProof: the machine believes the leader, and its answer is spoilt on the way: the leader does not.
func TestPairingAlteredProof(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		l.serve("relay", l.info, l.ca, l.bent(func(q *transport.PairRequest) { swap(q.Proof) }, nil))
		s := l.join("pc-win", "relay")
		_, err := l.check(s.code(t))
		refused(t, err, task.ErrNotAllowed, "no waiting machine has the code")
	})
}

// TestPairingAlteredGrant: a token that was not sealed by the leader is not used, and the machine says why.
func TestPairingAlteredGrant(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		l.serve("relay", l.info, l.ca, l.bent(nil, func(r *transport.PairReply) { swap(r.Sealed) }))
		s := l.join("pc-win", "relay")
		v, err := l.check(s.code(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.desk.Approve(t.Context(), v.ID, transport.PairDecision{}, "anna"); err != nil {
			t.Fatal(err)
		}
		_, err = s.outcome()
		refused(t, err, task.ErrNotAllowed, "what it sent was altered")
	})
}

// TestPairingEarlyApproval: "approved" without a proof of the code is nothing.
func TestPairingEarlyApproval(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		l.interceptor("evil", func(r *transport.PairReply) {
			*r = transport.PairReply{State: transport.PairApproved, Round: r.Round, Sealed: make([]byte, 80), By: "anna"}
		})
		s := l.join("pc-win", "evil")
		time.Sleep(time.Minute)
		select {
		case <-s.ended:
			t.Errorf("it ended with %+v, %v", s.grant, s.err)
		default:
		}
	})
}

// TestPairingAnotherClusterNow: the port answers with another authority than before.
func TestPairingAnotherClusterNow(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		s := l.join("pc-win", "mini-1")
		s.code(t)
		l.stop[0]()
		l.stop = l.stop[1:]
		info, ca := l.cluster("home")
		l.serve("mini-1", info, ca, l.desk.Ask)
		_, err := s.outcome()
		refused(t, err, task.ErrNotAllowed, "is another cluster than a moment ago")
	})
}
