package worker

import (
	"context"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
)

// Work that arrives when the node has just begun to end is given back at once, not left to run out (R7).
func TestShutdownDeclinesWhatIsOnItsWay(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n := l.node(2, 1, endless)
		n.set(func(w *wire) { w.minDelay = 200 * time.Millisecond })
		l.sleep(10 * time.Second)
		l.g.job("j1", 2, task.DefaultLease(task.DefaultTTL))
		l.sleep(100 * time.Millisecond) // granted, the answer is on the wire
		if s := l.g.tally(); s[task.ShardAssigned] != 2 {
			t.Fatalf("shards %v", s)
		}
		if err := n.w.Shutdown(context.Background(), 0); err != nil {
			t.Fatal(err)
		}
		l.until(3*time.Second, "given back", func() bool { return l.g.tally()[task.ShardPending] == 2 })
		if n.r.began() != 0 || len(l.g.expired) != 0 {
			t.Errorf("%d starts, expired %v", n.r.began(), l.g.expired)
		}
	})
}

// A shutdown releases every lease as soon as its process is gone (R7, C09).
func TestShutdownReleasesAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 3, task.DefaultLease(task.DefaultTTL))
		plan := func(a *task.Assignment) work { return work{takes: -1, ends: 2 * time.Second, ignores: a.Shard == 0} }
		n := l.node(3, 1, plan)
		l.runs(n, 3)
		began := time.Now()
		if err := n.w.Shutdown(context.Background(), 10*task.Second); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("took %v: the grace of the one that ignores SIGTERM", took)
		}
		for _, s := range l.g.shards {
			if s.state != task.ShardPending || len(s.ends) != 1 || s.ends[0] != task.EndShutdown {
				t.Errorf("shard %d: %v, ends %v", s.ref.Shard, s.state, s.ends)
			}
		}
		l.sleep(time.Minute)
		if n.r.began() != 3 {
			t.Error("takes work after a shutdown")
		}
	})
}

// A machine that was to leave its cluster and could not takes work again.
func TestWorksAgainAfterAShutdownForNothing(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 2, task.DefaultLease(task.DefaultTTL))
		n := l.node(2, 1, endless)
		l.runs(n, 2)
		if err := n.w.Shutdown(context.Background(), 0); err != nil {
			t.Fatal(err)
		}
		l.sleep(time.Minute)
		if n.r.began() != 2 {
			t.Fatal("takes work after a shutdown")
		}
		n.w.Reopen()
		l.until(time.Second, "both run again", func() bool { return n.r.began() == 4 })
	})
}

// Without a leader a shutdown does not wait for ever; the ends stay for the next start.
func TestShutdownWithoutLeader(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 1, task.DefaultLease(task.DefaultTTL))
		n := l.node(1, 1, endless)
		l.runs(n, 1)
		l.g.setDown(true)
		began := time.Now()
		err := n.w.Shutdown(context.Background(), task.Second)
		if err == nil || !strings.Contains(err.Error(), "1 ends not acknowledged") {
			t.Errorf("Shutdown: %v", err)
		}
		if took := time.Since(began); took > 7*time.Second {
			t.Errorf("took %v", took)
		}
		_ = n.kill()
		l.g.setDown(false)
		n.r.newAgent()
		n.start()
		l.until(10*time.Second, "released, and runs again", func() bool { return n.r.began() == 2 })
		if e := l.g.shards[0].ends; len(e) != 1 || e[0] != task.EndShutdown {
			t.Errorf("ends %v", e)
		}
	})
}
