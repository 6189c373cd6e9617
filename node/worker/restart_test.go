package worker

import (
	"context"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
)

// An agent that ends leaves its tasks; the next one takes them over under the same leases, and nothing runs twice (R14, R44).
func TestRestartReattaches(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 2, task.DefaultLease(20*task.Second))
		n := l.node(2, 1, lasting(2*time.Minute))
		n.r.guard = true
		l.runs(n, 2)
		l.confirmed(2)
		if err := n.kill(); err != nil {
			t.Fatal(err)
		}
		if len(n.r.stopped()) != 0 {
			t.Fatal("the end of the agent stopped tasks")
		}
		l.sleep(5 * time.Second)
		n.r.newAgent()
		n.start()
		l.until(3*time.Minute, "both done", l.succeeded(2))
		if n.r.began() != 2 || len(n.r.stopped()) != 0 || len(l.g.expired)+len(l.g.freed) != 0 {
			t.Errorf("%d starts, stops %v, expired %v, freed %v", n.r.began(), n.r.stopped(), l.g.expired, l.g.freed)
		}
	})
}

// After a restart the terms of what runs are fetched again: the strict rule and the heartbeat apply as before.
func TestRestartLearnsTheTerms(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		strict := task.DefaultLease(task.DefaultTTL)
		strict.MaxRenewFailures = 3
		l.g.job("j1", 1, strict)
		n := l.node(1, 1, endless)
		l.runs(n, 1)
		l.confirmed(1)
		n.restart()
		l.sleep(time.Minute)
		before := l.g.see(&l.g.renews)
		l.sleep(10 * time.Minute)
		if got := l.g.see(&l.g.renews) - before; got < 19 || got > 21 {
			t.Errorf("%d renewals in ten minutes, want one each 30 s", got)
		}
		n.set(func(w *wire) { w.cutOut = true })
		l.until(2*time.Minute, "stopped by the strict rule", func() bool { return len(n.r.stopped()) == 1 })
	})
}

// What lapsed while no agent was there is killed before anything else is done.
func TestRestartKillsWhatLapsed(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 1, task.DefaultLease(20*task.Second))
		n := l.node(1, 1, stubborn)
		l.runs(n, 1)
		l.confirmed(1)
		_ = n.kill()
		l.sleep(18 * time.Second) // past the holder's deadline, not the granter's
		n.set(func(w *wire) { w.cutOut = true })
		n.r.newAgent()
		n.start()
		l.sleep(time.Millisecond)
		if s := n.r.stopped(); len(s) != 1 || s[0].grace != 0 || len(n.r.alive()) != 0 {
			t.Errorf("stops %+v", s)
		}
	})
}

// What the leader does not let a restarted node keep is killed at once, without grace, before it takes anything new (I13).
func TestNotKeptIsKilled(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 1, task.DefaultLease(task.DefaultTTL))
		n := l.node(1, 1, stubborn)
		l.runs(n, 1)
		l.confirmed(1)
		old := l.g.shards[0].token
		_ = n.kill()
		l.g.look(func() { l.g.end(l.g.shards[0], task.EndLeaseExpired, task.ShardPending) })
		n.r.onRun = func(a *task.Assignment) {
			for _, p := range n.r.alive() {
				t.Errorf("starts %v while %v runs", a.Token, p.Assignment.Token)
			}
		}
		n.set(func(w *wire) { w.renewGate = func() bool { return false } }) // no renewal tells it
		n.r.newAgent()
		n.start()
		l.until(10*time.Second, "the next attempt runs", func() bool { return n.r.began() == 2 })
		if s := n.r.stopped(); len(s) != 1 || s[0].x != old.Execution() || s[0].reason != task.StopFenced || s[0].grace != 0 {
			t.Errorf("stops %+v", s)
		}
	})
}

// A task ends while neither leader nor agent is there: its report is brought by the next agent, and accepted once.
func TestEndsAreReportedByTheNextAgent(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 2, task.DefaultLease(task.DefaultTTL))
		plan := func(a *task.Assignment) work { return work{takes: time.Duration(a.Shard+1) * 10 * time.Second} }
		n := l.node(2, 1, plan)
		l.runs(n, 2)
		l.confirmed(2)
		l.g.setDown(true)
		l.sleep(15 * time.Second) // one ends under the old agent
		_ = n.kill()
		l.sleep(10 * time.Second) // one without any
		n.r.newAgent()
		n.start()
		l.sleep(5 * time.Second)
		if s := n.w.Status(); s.Outbox != 2 || s.Registered {
			t.Errorf("status %+v", s)
		}
		l.g.setDown(false)
		l.until(10*time.Second, "both accepted", func() bool { _, f := n.r.count(); return l.succeeded(2)() && f == 2 })
		if n.r.began() != 2 || len(l.g.freed) != 0 || l.g.see(&l.g.stale) != 0 {
			t.Errorf("%d starts, freed %v, %d refused", n.r.began(), l.g.freed, l.g.see(&l.g.stale))
		}
	})
}

// Long without a leader, many times over: nothing is lost, whatever order ends, restarts and leaders come in.
func TestManyRestarts(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 40, task.DefaultLease(task.DefaultTTL))
		n := l.node(4, 1, lasting(3*time.Second))
		for i := range 20 {
			l.sleep(1700 * time.Millisecond)
			l.g.setDown(i%4 == 1)
			n.restart()
		}
		l.g.setDown(false)
		l.until(5*time.Minute, "all done", func() bool { _, f := n.r.count(); return l.succeeded(40)() && f == n.r.began() })
		if len(l.g.expired) != 0 {
			t.Errorf("expired %v", l.g.expired)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	err := New(Config{}).Run(context.Background())
	if err == nil {
		t.Fatal("ran without anything")
	}
	for _, part := range []string{"NodeInfo", "Incarnation", "Clock", "Control", "Runner"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
}
