package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// Answers to reports are lost: they are repeated, accepted once, and forgotten by the runner only then (R20).
func TestReportsAreRepeatedUntilAcknowledged(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 20, task.DefaultLease(task.DefaultTTL))
		n := l.node(4, 1, lasting(100*time.Millisecond))
		l.runs(n, 4)
		n.set(func(w *wire) { w.cutBack = true })
		l.until(10*time.Second, "the reports arrive", l.succeeded(4))
		if _, forgotten := n.r.count(); forgotten != 0 {
			t.Fatalf("%d forgotten before the acknowledgement", forgotten)
		}
		l.sleep(20 * time.Second)
		n.set(func(w *wire) { w.cutBack = false })
		l.until(time.Minute, "all done", func() bool { _, f := n.r.count(); return l.succeeded(20)() && f == 20 })
		repeated := 0
		for tok, times := range l.g.reports {
			repeated += times - 1
			if times < 1 {
				t.Errorf("report of %v accepted %d times", tok, times)
			}
		}
		if len(l.g.reports) != 20 || repeated == 0 || l.g.see(&l.g.stale) != 0 {
			t.Errorf("%d accepted, %d repeats, %d refused", len(l.g.reports), repeated, l.g.see(&l.g.stale))
		}
	})
}

// What a report is answered decides about it alone.
func TestReportCodes(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 4, task.DefaultLease(task.DefaultTTL))
		n := l.bareNode(4, 1, lasting(100*time.Millisecond))
		tries := map[int]int{}
		l.g.answer = func(r task.Report) (string, bool) {
			tries[r.Shard]++
			s := l.g.shards[r.Shard]
			switch {
			case r.Shard == 0:
				return "", false
			case r.Shard == 1 && tries[1] < 4:
				return "no_leader", true
			case r.Shard == 1:
				return "", false
			}
			if s.state.Leased() {
				l.g.end(s, r.Outcome.End, task.ShardFailed)
			}
			return []string{2: "stale_token", 3: "internal"}[r.Shard], true
		}
		n.start()
		l.until(30*time.Second, "all settled", func() bool { _, f := n.r.count(); return f == 4 })
		if want := map[int]int{0: 1, 1: 4, 2: 1, 3: 1}; fmt.Sprint(tries) != fmt.Sprint(want) {
			t.Errorf("tries %v, want %v", tries, want)
		}
		if n.w.Status().Outbox != 0 {
			t.Error("outbox not empty")
		}
	})
}

// A success whose outputs the cluster does not take is a failure that says so. Without a report its lease would run out, and the shard
// would run again for ever.
func TestRefusedOutputsAreAFailure(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 1, task.DefaultLease(task.DefaultTTL))
		var told []task.Report
		l.g.answer = func(r task.Report) (string, bool) {
			told = append(told, r)
			if len(r.Outputs) > 0 {
				return "too_large", true
			}
			return "", false
		}
		n := l.node(1, 1, func(*task.Assignment) work { return work{outputs: []task.KV{{Name: "a", Value: "b"}}} })
		l.until(30*time.Second, "reported", func() bool { _, f := n.r.count(); return f > 0 })
		l.g.mu.Lock()
		defer l.g.mu.Unlock()
		if len(told) < 2 {
			t.Fatalf("told %+v", told)
		}
		first, second := told[0], told[1]
		if o := second.Outcome; first.Outcome.ExitCode != 0 || second.Token != first.Token || o.End != task.EndExited || o.ExitCode != outputsRefused || !strings.Contains(o.Message, "too_large") {
			t.Errorf("%+v", second)
		}
	})
}

// groupControl watches report requests, and refuses as a whole those with a bad report.
type groupControl struct {
	Control
	mu          sync.Mutex
	sizes       []int
	flying, top int
	bad         task.Token
	delay       time.Duration
}

func (c *groupControl) Report(_ context.Context, r *transport.ReportRequest) (*transport.ReportReply, error) {
	c.mu.Lock()
	c.sizes = append(c.sizes, len(r.Reports))
	c.flying++
	c.top = max(c.top, c.flying)
	c.mu.Unlock()
	time.Sleep(c.delay)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flying--
	if slices.ContainsFunc(r.Reports, func(r task.Report) bool { return r.Token == c.bad }) {
		return nil, task.NewProblem(task.ErrInvalid, "cannot be read", "")
	}
	return &transport.ReportReply{Codes: make([]string, len(r.Reports))}, nil
}

func (c *groupControl) Register(context.Context, *transport.RegisterRequest) (*transport.RegisterReply, error) {
	return &transport.RegisterReply{}, nil
}

func (c *groupControl) Poll(ctx context.Context, _ *transport.PollRequest) (*transport.PollReply, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// alone runs a worker over a Control of its own.
func (l *lab) alone(c Control, store Store) *Worker {
	m := newMachine(1)
	r := newFakeRunner(m, endless)
	w := New(Config{NodeInfo: func() task.NodeInfo { return task.NodeInfo{ID: "alone", Slots: 2} }, Incarnation: 1, Clock: m, Control: c, Runner: r, Store: store})
	ctx, cancel := context.WithCancel(context.Background())
	l.wg.Go(func() {
		if err := w.Run(ctx); err != nil {
			l.t.Error(err)
		}
	})
	l.wg.Go(func() { <-l.stop; cancel(); r.close() })
	return w
}

func TestReportsGoInGroups(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		c := &groupControl{delay: 10 * time.Millisecond, bad: 700}
		w := l.alone(c, nil)
		l.sleep(time.Second)
		for i := range 3*maxReports + 1 {
			w.outbox.add(task.Report{Token: task.Token(i + 1)}, false)
		}
		kick(w.outboxKick)
		l.until(time.Minute, "all but the bad one are settled", func() bool { return w.outbox.len() == 0 })
		if c.top != maxReportFlights || c.sizes[0] != maxReports {
			t.Errorf("%d at once, groups %v", c.top, c.sizes)
		}
		// Three full groups and a rest, one of them again one by one.
		if len(c.sizes) != 4+maxReports {
			t.Errorf("%d requests: %v", len(c.sizes), c.sizes)
		}
	})
}

// Reports that nobody can take for the time being do not hold up the others, and are not repeated as fast as can be.
func TestStuckReportsHoldUpNobody(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 100, task.DefaultLease(task.DefaultTTL))
		n := l.bareNode(8, 1, instant)
		stuck := 0
		l.g.look(func() {
			l.g.answer = func(r task.Report) (string, bool) {
				if r.Shard < 4 {
					stuck++
				}
				return "no_leader", r.Shard < 4
			}
		})
		n.start()
		l.until(10*time.Second, "the others done", l.succeeded(96))
		l.sleep(20 * time.Second)
		if n.w.Status().Outbox != 4 || l.g.see(&stuck) > 4*20 {
			t.Errorf("%d in the outbox, %d tries", n.w.Status().Outbox, l.g.see(&stuck))
		}
	})
}

func TestGroupsAreBoundedByBytes(t *testing.T) {
	o := newOutbox()
	big := []task.KV{{Name: "n", Value: strings.Repeat("v", 60<<10)}}
	for i := range 40 {
		o.add(task.Report{Token: task.Token(i + 1), Outcome: task.Outcome{End: task.EndExited}, Outputs: big}, true)
	}
	if got, _ := o.take(0); len(got) != 18 {
		t.Errorf("a group of %d reports of 60 KB", len(got))
	}
	o.add(task.Report{Token: 50, Outcome: task.Outcome{End: task.EndSignal, Message: strings.Repeat("ä", 400), Tail: strings.Repeat("t", 5<<10)}, Outputs: big}, true)
	o.add(task.Report{Token: 50, Outcome: task.Outcome{End: task.EndExited}}, true) // an attempt ends once
	last := o.all[50].report
	if len(last.Outcome.Message) > task.MaxMessageLength || len(last.Outcome.Tail) != task.MaxTailBytes || last.Outputs != nil || last.Outcome.End != task.EndSignal {
		t.Errorf("kept %d bytes of message, %d of tail, %d outputs, end %s", len(last.Outcome.Message), len(last.Outcome.Tail), len(last.Outputs), last.Outcome.End)
	}
}

// Ends without an exit record go to disk once they have to wait, as a group, survive the agent, and leave the disk after
// the acknowledgement.
func TestWaitingReportsSurviveTheAgent(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 3, task.DefaultLease(task.DefaultTTL))
		n := l.bareNode(3, 1, func(*task.Assignment) work { return work{fail: "no shell"} })
		n.r.onRun = nil
		arrived := 0
		l.g.answer = func(r task.Report) (string, bool) {
			if arrived++; arrived <= 6 {
				return "no_leader", true
			}
			l.g.end(l.g.find(r.Token), r.Outcome.End, task.ShardFailed)
			return "", true
		}
		n.start()
		l.until(10*time.Second, "stored", func() bool { n.store.mu.Lock(); defer n.store.mu.Unlock(); return len(n.store.data) == 3 })
		for key, value := range n.store.data {
			var r task.Report
			if err := json.Unmarshal(value, &r); err != nil || r.Outcome.Message != "no shell" || !strings.HasPrefix(key, reportPrefix) {
				t.Errorf("%s: %s (%v)", key, value, err)
			}
		}
		n.restart()
		l.until(10*time.Second, "reported", func() bool { return l.g.tally()[task.ShardFailed] == 3 })
		l.until(time.Second, "removed", func() bool { n.store.mu.Lock(); defer n.store.mu.Unlock(); return len(n.store.data) == 0 })
		if len(l.g.freed) != 0 {
			t.Errorf("registration freed %v though their reports wait", l.g.freed)
		}
		if n.store.puts > 3 {
			t.Errorf("%d transactions for three reports that ended together", n.store.puts)
		}
	})
}

// A broken store costs the durability of a few notes, not the work.
func TestBrokenStore(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.g.job("j1", 2, task.DefaultLease(task.DefaultTTL))
		n := l.node(1, 1, func(a *task.Assignment) work {
			if a.Attempt == 1 {
				return work{fail: "no shell"}
			}
			return work{}
		})
		l.sleep(time.Millisecond)
		n.store.fail(errors.New("disk full"))
		l.g.answer = func(task.Report) (string, bool) { return "no_leader", time.Since(l.g.origin) < 5*time.Second }
		l.until(time.Minute, "done", l.succeeded(2))
	})
}

func TestStoreThatCannotBeReadStopsTheStart(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n := l.bareNode(1, 1, endless)
		n.store.fail(errors.New("disk gone"))
		n.start()
		err := n.kill()
		if err == nil || !strings.Contains(err.Error(), "read outbox") {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestUnknownNotesAreRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n := l.bareNode(1, 1, endless)
		n.store.data = map[string][]byte{"defer/1f": []byte("5"), "defer/x": nil, "what/1": nil, "report/2": []byte("{")}
		n.start()
		l.until(time.Second, "removed", func() bool { n.store.mu.Lock(); defer n.store.mu.Unlock(); return len(n.store.data) == 0 })
	})
}
