package node

import (
	"errors"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// TestPairingBeforeALeader: a machine that asks a member during an election waits for it and then shows its code; without any leader it
// gives up, and where nobody answers at all it says so at once.
func TestPairingBeforeALeader(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		lead := func(now bool) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.leads = now
		}
		lead(false)
		s := l.join("pc-win", "mini-1")
		time.Sleep(10 * time.Second)
		select {
		case <-s.ended:
			t.Fatalf("it has given up: %v", s.err)
		default:
		}
		if len(s.codes) > 0 {
			t.Errorf("a code that nobody waits for: %q", s.codes)
		}
		lead(true)
		time.Sleep(3 * time.Second)
		if _, err := l.check(s.code(t)); err != nil {
			t.Error(err)
		}

		lead(false)
		start := time.Now()
		_, err := l.join("mini-3", "mini-1").outcome()
		refused(t, err, task.ErrNoLeader, "")
		if took := time.Since(start); took < 30*time.Second || took > time.Minute {
			t.Errorf("it gave up after %s", took)
		}
		start = time.Now()
		_, err = l.join("mini-4", "nowhere").outcome()
		refused(t, err, task.ErrNoLeader, "cannot reach nowhere")
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("nobody is there, and it waited %s", took)
		}
	})
}

// TestLoginBeforeALeader: the same with a token.
func TestLoginBeforeALeader(t *testing.T) {
	pairing(t, func(t *testing.T, l *pairLab) {
		token := transport.NewJoinToken(l.ca.Fingerprint())
		cfg := transport.LoginConfig{Peer: "mini-1", Token: token.String(), Name: "anna@laptop", Clock: l.clock, Net: l.from("laptop")}
		l.unled = 3
		_, err := transport.Login(t.Context(), cfg)
		refused(t, err, task.ErrNotAllowed, "no such token") // the leader's word, after three answers without one
		if l.unled != 0 {
			t.Errorf("%d answers were not waited for", l.unled)
		}
		l.unled = 1000
		start := time.Now()
		_, err = transport.Login(t.Context(), cfg)
		if _, plain := err.(*task.Problem); !plain || !errors.Is(err, task.ErrNoLeader) {
			t.Errorf("%T %v", err, err)
		}
		if took := time.Since(start); took < 30*time.Second || took > time.Minute {
			t.Errorf("it gave up after %s", took)
		}
	})
}
