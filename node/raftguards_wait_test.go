package node

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/transport/memnet"
)

// Everything asked of a leader without a quorum ends within the caller's own deadline.
func TestFuturesWithoutAQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, true, "a", "b", "c")
		defer l.close()
		l.nodes["a"].tune = sleeper // it goes on believing that it leads, so that nothing fails by itself
		l.bootstrap("a", "b", "c")
		l.start("a", "b", "c")
		a := l.leadBy("a")
		l.level(5 * time.Second)
		l.net.Isolate("a")
		clock := memnet.NewClock()
		for name, ask := range map[string]func() raft.Future{
			"Apply":        func() raft.Future { return a.raft.Apply([]byte("x"), time.Second) },
			"Barrier":      func() raft.Future { return a.raft.Barrier(time.Second) },
			"VerifyLeader": func() raft.Future { return a.raft.VerifyLeader() },
			"AddNonvoter":  func() raft.Future { return a.raft.AddNonvoter("d", "d", 0, time.Second) },
			"Transfer":     func() raft.Future { return a.raft.LeadershipTransferToServer("b", "b") },
		} {
			start := time.Now()
			err := waitFuture(t.Context(), clock, ask(), 2*time.Second)
			if err == nil || time.Since(start) > 3*time.Second {
				t.Errorf("%s: %v after %s", name, err, time.Since(start))
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(ErrLeadershipLost)
		if err := waitFuture(ctx, clock, a.raft.Barrier(time.Second), time.Minute); !errors.Is(err, ErrLeadershipLost) {
			t.Errorf("with an ended context: %v", err)
		}
	})
}

// hangingStore never ends a write while it hangs.
type hangingStore struct {
	RaftStore
	hang chan struct{} // nil = well; closed = well again
}

func (h *hangingStore) StoreLogs(logs []*raft.Log) error {
	if h.hang != nil {
		<-h.hang
	}
	return h.RaftStore.StoreLogs(logs)
}

// raft#498: a future may never end, here because the leader's disk hangs (raft#503). The control run waits for the future alone.
func TestFutureOfAHangingDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, true, "a", "b", "c")
		defer l.close()
		disk := &hangingStore{RaftStore: l.nodes["a"].store}
		l.nodes["a"].store = disk
		l.bootstrap("a", "b", "c")
		l.start("a", "b", "c")
		a := l.leadBy("a")
		l.level(5 * time.Second)
		disk.hang = make(chan struct{})
		defer close(disk.hang)

		future := &watchedFuture{Future: a.raft.Apply([]byte("x"), time.Second)}
		start := time.Now()
		if err := waitFuture(t.Context(), memnet.NewClock(), future, 2*time.Second); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if future.ended.Load() {
			t.Error("control: the future ended by itself")
		}
	})
}

// watchedFuture tells whether it has ended.
type watchedFuture struct {
	raft.Future
	ended atomic.Bool
}

func (f *watchedFuture) Error() error {
	defer f.ended.Store(true)
	return f.Future.Error()
}

// slowStore is a disk that takes its time.
type slowStore struct {
	RaftStore
	sync time.Duration
}

func (s slowStore) StoreLogs(logs []*raft.Log) error {
	time.Sleep(s.sync)
	return s.RaftStore.StoreLogs(logs)
}

// Heartbeats wait behind disk writes here (#695), so a lease shorter than those makes leaders flap. Guard: RaftConfig follows the
// disk's worst sync. The control run does not know of it.
func TestLeaseFollowsTheDisk(t *testing.T) {
	for _, known := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			const worst = 700 * time.Millisecond
			l := newLab(t, true, "a", "b", "c")
			defer l.close()
			for _, n := range l.nodes {
				n.store = slowStore{n.store, worst}
				n.tune = func(c *raft.Config) {
					if known {
						*c = *RaftConfig(n.id, 1, worst, silent)
					}
				}
			}
			l.bootstrap("a", "b", "c")
			l.start("a", "b", "c")
			until(20*time.Second, func() bool { return l.leads() != nil })
			time.Sleep(10 * time.Second)
			first := highestTerm(l)
			failed := 0
			for range 10 {
				n := l.leads()
				if n == nil || n.apply("x", 10*time.Second) != nil {
					failed++
				}
				time.Sleep(time.Second)
			}
			elections := highestTerm(l) - first
			if known && (elections > 0 || failed > 0) || !known && (elections == 0 || failed == 0) {
				t.Errorf("the disk is known: %v; %d elections, %d of 10 commands failed", known, elections, failed)
			}
		})
	}
}

func highestTerm(l *lab) (term uint64) {
	for _, n := range l.nodes {
		term = max(term, n.raft.CurrentTerm())
	}
	return term
}
