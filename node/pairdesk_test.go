package node

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

func TestPairingLetsIn(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		s := l.join("pc-win", "mini-1")
		if w := l.desk.Waiting(); len(w) != 1 || w[0].Name != "pc-win" || w[0].OS != "windows" || w[0].Version != "1.4.0" || w[0].Address != "pc-win" || w[0].ID != "" || w[0].AskedSeconds != 1 {
			t.Fatalf("waiting: %+v", w)
		}
		v, err := l.check(s.code(t))
		if err != nil {
			t.Fatal(err)
		}
		if v.Node != s.id || v.ID == "" {
			t.Errorf("found %+v", v)
		}
		time.Sleep(2 * time.Second) // the person thinks
		if !s.heard(`typed on a member of "home"`) {
			t.Errorf("the machine says %q", s.said)
		}
		if _, err := l.desk.Approve(t.Context(), v.ID, transport.PairDecision{Worker: true}, "anna@mini-1"); err != nil {
			t.Fatal(err)
		}
		if _, err := l.desk.Approve(t.Context(), v.ID, transport.PairDecision{Worker: true}, "anna@mini-1"); err != nil {
			t.Errorf("a repeat: %v", err)
		}
		g, err := s.outcome()
		if err != nil {
			t.Fatal(err)
		}
		token, err := transport.ParseJoinToken(g.Token)
		if err != nil || !token.Matches(l.ca.Fingerprint()) || g.By != "anna@mini-1" || g.Cluster != "home" {
			t.Errorf("grant %+v, %v", g, err)
		}
		if len(l.tokens) != 1 || !bytes.Equal(transport.HashSecret(token.Secret), l.tokens[0].Hash) || l.tokens[0].Uses != 1 || !l.tokens[0].Worker || l.tokens[0].TTL != task.MillisOf(pairTokenTTL) {
			t.Errorf("tokens %+v", l.tokens)
		}
		if w := l.desk.Waiting(); len(w) != 0 {
			t.Errorf("still waiting: %+v", w)
		}
		if _, err := l.check(s.code(t)); err == nil {
			t.Error("the code works twice")
		}
	})
}

// TestPairingOneOfTwo: with more than one waiting, the code tells which; the other hears nothing and keeps its code.
func TestPairingOneOfTwo(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		a, b := l.join("pc-a", "mini-1"), l.join("pc-b", "mini-1")
		v, err := l.check(b.code(t))
		if err != nil || v.Name != "pc-b" {
			t.Fatalf("%+v, %v", v, err)
		}
		if _, err := l.desk.Approve(t.Context(), v.ID, transport.PairDecision{}, "anna"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.outcome(); err != nil {
			t.Error(err)
		}
		if v, err := l.check(a.code(t)); err != nil || v.Name != "pc-a" {
			t.Errorf("the other: %+v, %v", v, err)
		}
		if a.heard("code was typed that no") {
			t.Errorf("pc-a said %q", a.said)
		}
	})
}

func TestPairingWrongCode(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		_, err := l.check("00000000")
		refused(t, err, task.ErrNotAllowed, "No machine waits now.")
		s := l.join("pc-win", "mini-1")
		code := s.code(t)
		_, err = l.check(wrongCode(code))
		refused(t, err, task.ErrNotAllowed, "Codes have no I, L, O or U, work once, last 10 minutes.")
		refused(t, err, task.ErrNotAllowed, "Waiting now: pc-win (pc-win), ")
		refused(t, err, task.ErrNotAllowed, "If the code is right and fresh, someone may be altering the traffic.")
		time.Sleep(time.Second)
		if !s.heard("A code was typed that no waiting machine has. This one's is " + code.String()) {
			t.Errorf("the machine says %q", s.said)
		}
		if _, err := l.check(code); err != nil {
			t.Errorf("the right code afterwards: %v", err)
		}
	})
}

// TestPairingRests: five wrong codes in a row, then none is compared for a minute; a request that is sent again counts once.
func TestPairingRests(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		s := l.join("pc-win", "mini-1")
		code := s.code(t)
		for range wrongCodes - 1 {
			_, _ = l.check(wrongCode(code))
			time.Sleep(time.Second)
		}
		for range 3 {
			_, err := l.desk.Check(t.Context(), wrongCode(code), "the same")
			refused(t, err, task.ErrNotAllowed, "no waiting machine has the code")
		}
		_, err := l.check(code)
		refused(t, err, task.ErrNotAllowed, "pairing rests for 1m0s: 5 wrong codes were typed one after another.")
		time.Sleep(59 * time.Second)
		_, err = l.check(code)
		refused(t, err, task.ErrNotAllowed, "pairing rests for 1s")
		time.Sleep(2 * time.Second)
		if _, err = l.check(code); err != nil {
			t.Errorf("after the rest: %v", err)
		}
	})
}

func TestPairingRepeatedRequest(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		s := l.join("pc-win", "mini-1")
		first, err := l.desk.Check(t.Context(), s.code(t), "one")
		if err != nil {
			t.Fatal(err)
		}
		again, err := l.desk.Check(t.Context(), s.code(t), "one")
		if err != nil || again.ID != first.ID {
			t.Errorf("%+v, %v; want %s", again, err, first.ID)
		}
	})
}

func TestPairingRefused(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		s := l.join("pc-win", "mini-1")
		v, err := l.check(s.code(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.desk.Refuse(v.ID, "anna@mini-1"); err != nil {
			t.Fatal(err)
		}
		_, err = s.outcome()
		refused(t, err, task.ErrNotAllowed, "anna@mini-1 did not let this machine in. Nothing has been changed here")
		_, err = l.desk.Approve(t.Context(), v.ID, transport.PairDecision{}, "anna@mini-1")
		refused(t, err, task.ErrConflict, "refused meanwhile")
		if len(l.tokens) != 0 {
			t.Errorf("tokens %+v", l.tokens)
		}
	})
}

// TestPairingUncommitted: without a majority nothing is promised to the machine; the next try works.
func TestPairingUncommitted(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		s := l.join("pc-win", "mini-1")
		v, err := l.check(s.code(t))
		if err != nil {
			t.Fatal(err)
		}
		l.fail = task.NewProblem(task.ErrNoLeader, "no quorum", "")
		if _, err := l.desk.Approve(t.Context(), v.ID, transport.PairDecision{}, "anna"); !errors.Is(err, task.ErrNoLeader) {
			t.Fatal(err)
		}
		if _, err := l.desk.Approve(t.Context(), v.ID, transport.PairDecision{}, "anna"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.outcome(); err != nil {
			t.Error(err)
		}
	})
}

// TestPairingGivesUp: Ctrl-C on the machine is heard at once.
func TestPairingGivesUp(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		s := l.join("pc-win", "mini-1")
		s.cancel()
		if _, err := s.outcome(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if w := l.desk.Waiting(); len(w) != 0 {
			t.Errorf("still waiting: %+v", w)
		}
	})
}

// TestPairingEnds: a machine waits for ten minutes, one that vanished is forgotten within half of one.
func TestPairingEnds(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		s, gone := l.join("pc-win", "mini-1"), l.join("pc-gone", "mini-1")
		l.net.Isolate("pc-gone")
		time.Sleep(30 * time.Second)
		if w := l.desk.Waiting(); len(w) != 1 || w[0].Name != "pc-win" {
			t.Errorf("after 30 s: %+v", w)
		}
		time.Sleep(9*time.Minute + 20*time.Second)
		if w := l.desk.Waiting(); len(w) != 1 || w[0].AskedSeconds < 590 {
			t.Errorf("after 9m50s: %+v", w)
		}
		_, err := s.outcome()
		refused(t, err, task.ErrNotAllowed, "nobody typed this machine's code within 10 minutes. Nothing has been changed here.")
		if w := l.desk.Waiting(); len(w) != 0 {
			t.Errorf("still waiting: %+v", w)
		}
		_, err = gone.outcome()
		refused(t, err, task.ErrNotAllowed, "within 10 minutes")
		if !gone.heard("does not answer now; still waiting") {
			t.Errorf("pc-gone said %q", gone.said)
		}
	})
}

// TestPairingUndecided: a person who never answers does not block the machine: the same code can be typed again.
func TestPairingUndecided(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		s := l.join("pc-win", "mini-1")
		v, err := l.check(s.code(t))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(decideWithin + 10*time.Second)
		_, err = l.desk.Approve(t.Context(), v.ID, transport.PairDecision{}, "anna")
		refused(t, err, task.ErrNotFound, "this machine waits no longer")
		if _, err := l.check(s.code(t)); err != nil {
			t.Errorf("typed again: %v", err)
		}
	})
}

// TestPairingLimits: eight machines, four of one address; a name that is taken is refused before anybody types a code.
func TestPairingLimits(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		l.net.Host("pc-0").Move("crowd:1")
		for _, name := range []string{"pc-1", "pc-2", "pc-3", "pc-4"} {
			l.net.Host(task.NodeID(name)).Move("crowd:" + name[3:] + "000")
		}
		for _, name := range []string{"pc-0", "pc-1", "pc-2", "pc-3"} {
			l.join(name, "mini-1").code(t)
		}
		_, err := l.join("pc-4", "mini-1").outcome()
		refused(t, err, task.ErrConflict, "too many machines wait")
		for _, name := range []string{"pc-5", "pc-6", "pc-7", "pc-8"} {
			l.join(name, "mini-1").code(t)
		}
		for _, name := range []string{"pc-9", "pc-10", "pc-11"} { // the crowd gives way until nobody has more than one place
			s := l.join(name, "mini-1")
			if v, err := l.check(s.code(t)); err != nil || v.Name != name {
				t.Errorf("%s: %+v, %v", name, v, err)
			}
		}
		_, err = l.join("mini-1x", "mini-1").outcome()
		refused(t, err, task.ErrConflict, "too many")
	})
	pairing(t, func(t *testing.T, l *pairLab) {
		l.net.Host("mini-1") // the name is that of the member; its address stays
		s := l.joinAs("mini-1", "other", "mini-1")
		_, err := s.outcome()
		refused(t, err, task.ErrConflict, `already has a machine called "mini-1"`)
	})
}

// TestPairingNewLeader: the machines bring all that a new leader must know.
func TestPairingNewLeader(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		s := l.join("pc-win", "mini-1")
		l.elect()
		time.Sleep(transport.PairHold + time.Second)
		v, err := l.check(s.code(t))
		if err != nil {
			t.Fatal(err)
		}
		// Lost between the code and the decision: the person types the code again, nothing else.
		l.elect()
		_, err = l.at().Approve(t.Context(), v.ID, transport.PairDecision{}, "anna")
		refused(t, err, task.ErrNotFound, "the leader has changed meanwhile")
		time.Sleep(transport.PairHold + time.Second)
		if v, err = l.check(s.code(t)); err != nil {
			t.Fatal(err)
		}
		if _, err := l.at().Approve(t.Context(), v.ID, transport.PairDecision{}, "anna"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.outcome(); err != nil {
			t.Error(err)
		}
	})
}

// TestPairingWithoutLeader: the machine waits on, and a leader that lost its office says so within a second.
func TestPairingWithoutLeader(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		s := l.join("pc-win", "mini-1")
		l.mu.Lock()
		l.leads = false
		l.mu.Unlock()
		time.Sleep(leadTick + 500*time.Millisecond)
		if !s.heard("does not answer now; still waiting") {
			t.Errorf("the machine says %q", s.said)
		}
		l.mu.Lock()
		l.leads = true
		l.mu.Unlock()
		time.Sleep(2 * time.Second)
		if _, err := l.check(s.code(t)); err != nil {
			t.Error(err)
		}
	})
}

// TestPairingManyCodes: a code is compared with so many others and no more.
func TestPairingManyCodes(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		s := l.join("pc-win", "mini-1")
		first := s.code(t)
		for range transport.MaxPairTries {
			if _, err := l.check(wrongCode(first)); err == nil {
				t.Fatal("a wrong code was found")
			}
			l.desk.mu.Lock()
			l.desk.wrong, l.desk.rest = 0, 0
			l.desk.mu.Unlock()
			time.Sleep(time.Second)
		}
		if s.code(t) == first || !s.heard("has a new one") {
			t.Errorf("after %d wrong codes it still shows %s; it said %q", transport.MaxPairTries, first, s.said)
		}
		if _, err := l.check(first); err == nil {
			t.Error("the old code works")
		}
		if _, err := l.check(s.code(t)); err != nil {
			t.Errorf("the new code: %v", err)
		}
	})
}

// TestPairingStranger: what a stranger says is checked before a person sees it.
func TestPairingStranger(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		id := strings.Repeat("a", 32)
		for what, claim := range map[string]string{
			"control signs":  `{"node":"3f0c4d52-6f0e-4d0c-9d53-2b1a6f1f8a11","name":"pc","os":"linux\u001b[2J","arch":"amd64","version":"1"}`,
			"a name of two":  `{"node":"3f0c4d52-6f0e-4d0c-9d53-2b1a6f1f8a11","name":"pc win","os":"linux","arch":"amd64","version":"1"}`,
			"a long version": `{"node":"3f0c4d52-6f0e-4d0c-9d53-2b1a6f1f8a11","name":"pc","os":"linux","arch":"amd64","version":"` + strings.Repeat("1", 41) + `"}`,
			"no node":        `{"name":"pc","os":"linux","arch":"amd64","version":"1"}`,
			"no JSON":        `{`,
		} {
			if _, err := l.desk.Ask(t.Context(), transport.PairRequest{ID: id, Claim: []byte(claim), Share: make([]byte, 32)}, "10.0.0.9"); !errors.Is(err, task.ErrInvalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
