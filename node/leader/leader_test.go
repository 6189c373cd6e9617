package leader

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// bubbleClock is time in a synctest bubble.
type bubbleClock struct{ start time.Time }

func (c bubbleClock) Boot() task.Boot                        { return task.Boot(time.Since(c.start)) }
func (c bubbleClock) Awake() time.Duration                   { return time.Since(c.start) }
func (c bubbleClock) Wall() time.Time                        { return time.Now() }
func (c bubbleClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
func (c bubbleClock) NewTimer(d time.Duration) task.Timer    { return bubbleTimer{time.NewTimer(d)} }

type bubbleTimer struct{ t *time.Timer }

func (t bubbleTimer) C() <-chan time.Time        { return t.t.C }
func (t bubbleTimer) Stop() bool                 { return t.t.Stop() }
func (t bubbleTimer) Reset(d time.Duration) bool { return t.t.Reset(d) }

// fakeLog is a log of one replica that commits after a moment, or not at all while it is held.
type fakeLog struct {
	mu     sync.Mutex
	s      *fsm.State
	index  uint64
	broken bool
	writes int
}

type fate struct {
	log   *fakeLog
	entry []byte
}

func (l *fakeLog) Propose(entry []byte) Future { return &fate{l, entry} }

func (l *fakeLog) Read(f func(*fsm.State)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l.s)
}

func (f *fate) Wait(ctx context.Context) ([]fsm.Result, error) {
	select {
	case <-time.After(2 * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	if f.log.broken {
		return nil, errors.New("leadership lost")
	}
	f.log.index++
	f.log.writes++
	r, _, err := f.log.s.Apply(f.log.index, f.entry)
	return r, err
}

// office is a leading leader with a registered node "b".
type office struct {
	t   *testing.T
	log *fakeLog
	l   *Leader
}

func lead(t *testing.T, f func(*office)) {
	synctest.Test(t, func(t *testing.T) {
		o := &office{t: t, log: &fakeLog{s: fsm.New()}}
		n := 0
		o.l = New(Config{Self: "a", Log: o.log, Clock: bubbleClock{time.Now()}, Slog: slog.New(slog.DiscardHandler),
			NewJobID: func() task.JobID { n++; return task.JobID("j" + string(rune('0'+n))) }})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); _ = o.l.Lead(ctx, 1) }()
		synctest.Wait()
		o.call("b", transport.MethodRegister, &transport.RegisterRequest{Info: task.NodeInfo{ID: "b", Name: "b", Slots: 4, Level: fsm.Level}, Incarnation: 1}, &transport.RegisterReply{})
		f(o)
		cancel()
		<-done
	})
}

func (o *office) try(from task.NodeID, m transport.Method, q, r any) error {
	body, err := transport.Encode(q)
	if err != nil {
		o.t.Fatal(err)
	}
	got, err := o.l.ServeCall(context.Background(), from, m, body)
	if err != nil {
		return err
	}
	if body, err = transport.Encode(got); err == nil {
		err = transport.Decode(body, r)
	}
	return err
}

func (o *office) call(from task.NodeID, m transport.Method, q, r any) {
	o.t.Helper()
	if err := o.try(from, m, q, r); err != nil {
		o.t.Fatalf("%s: %v", m, err)
	}
}

// hand submits one job.
func (o *office) hand(job fsm.SubmitJob) (fsm.Result, error) {
	results, errs := o.l.SubmitAll(context.Background(), []fsm.SubmitJob{job})
	return results[0], errs[0]
}

func (o *office) submit(shards int) task.JobID {
	o.t.Helper()
	st := task.StageSpec{Name: "main", Shards: shards, When: task.WhenSuccess, Run: "x", Lease: task.DefaultLease(task.Minute), Retry: task.DefaultRetry()}
	data, _ := json.Marshal(task.Spec{Name: "x", Queue: "default", Retain: task.Day, Stages: []task.StageSpec{st}})
	r, err := o.hand(fsm.SubmitJob{Spec: data, Digest: data})
	if err != nil || r.Err != nil {
		o.t.Fatal(err, r.Err)
	}
	return r.Job
}

func (o *office) poll(want int, holding ...task.Token) *transport.PollReply {
	o.t.Helper()
	r := &transport.PollReply{}
	o.call("b", transport.MethodPoll, &transport.PollRequest{Incarnation: 1, Want: want, Hold: 5 * task.Second, Holding: holding}, r)
	return r
}

// Ids are drawn before the log, and short: two jobs may draw the same one while neither is stored.
func TestTwoJobsThatDrawOneIDAreBothTaken(t *testing.T) {
	lead(t, func(o *office) {
		draws := []task.JobID{"same", "same", "other"}
		o.l.cfg.NewJobID = func() task.JobID {
			id := draws[0]
			draws = draws[1:]
			return id
		}
		var both sync.WaitGroup
		var ids [2]task.JobID
		for i := range ids {
			both.Go(func() { ids[i] = o.submit(1) })
			synctest.Wait() // it is named
		}
		both.Wait()
		if slices.Sort(ids[:]); ids != [2]task.JobID{"other", "same"} {
			t.Fatal(ids)
		}
	})
}

func TestAPollBringsWorkAndAnEmptyOneComesBackAfterItsHold(t *testing.T) {
	lead(t, func(o *office) {
		start := time.Now()
		if r := o.poll(4); len(r.Assignments) != 0 || time.Since(start) != 5*time.Second {
			t.Fatalf("%+v after %s", r, time.Since(start))
		}
		o.submit(3)
		if r := o.poll(4); len(r.Assignments) != 3 || r.Assignments[0].MustRenew {
			t.Fatalf("%+v", r)
		}
	})
}

func TestAGrantWhoseAnswerWasLostIsSentAgainToBeRenewedFirst(t *testing.T) {
	lead(t, func(o *office) {
		o.submit(1)
		first := o.poll(4).Assignments
		again := o.poll(4).Assignments // it holds nothing, by its own word
		if len(again) != 1 || again[0].Token != first[0].Token || !again[0].MustRenew {
			t.Fatalf("%+v, then %+v", first, again)
		}
		if r := o.poll(4, first[0].Token); len(r.Assignments) != 0 {
			t.Fatalf("sent a third time: %+v", r)
		}
	})
}

func TestNobodySpeaksForAnother(t *testing.T) {
	lead(t, func(o *office) {
		err := o.try("b", transport.MethodRegister, &transport.RegisterRequest{Info: task.NodeInfo{ID: "c", Name: "c", Slots: 4}, Incarnation: 9}, &transport.RegisterReply{})
		if !errors.Is(err, task.ErrNotAllowed) {
			t.Fatalf("b registered c: %v", err)
		}
		o.submit(1)
		tok := o.poll(4).Assignments[0].Token
		o.call("c2", transport.MethodPoll, &transport.PollRequest{Incarnation: 1, Want: 1}, &transport.PollReply{})
		if err := o.try("c2", transport.MethodInputs, &transport.InputsRequest{Job: "j1", Token: tok, Stage: "main"}, &transport.InputsReply{}); !errors.Is(err, task.ErrStaleToken) {
			t.Fatalf("a stranger read with b's token: %v", err)
		}
	})
}

// TestWhatIsNotCommittedIsNotAcknowledged: a task goes on from what it was told is kept.
func TestWhatIsNotCommittedIsNotAcknowledged(t *testing.T) {
	lead(t, func(o *office) {
		id := o.submit(1)
		tok, ref := o.poll(4).Assignments[0].Token, task.ShardRef{Job: id}
		o.log.mu.Lock()
		o.log.broken = true
		o.log.mu.Unlock()
		for m, ask := range map[transport.Method]struct{ q, r any }{
			transport.MethodRenew:      {&transport.RenewRequest{Incarnation: 1, Tokens: []task.Token{tok}}, &transport.RenewReply{}},
			transport.MethodReport:     {&transport.ReportRequest{Incarnation: 1, Reports: transport.Reports{{Job: id, Token: tok}}}, &transport.ReportReply{}},
			transport.MethodCheckpoint: {&transport.CheckpointRequest{Ref: ref, Token: tok, Seq: 1, Data: []byte("1")}, &transport.Ack{}},
			transport.MethodOutput:     {&transport.OutputRequest{Ref: ref, Token: tok, Output: task.KV{Name: "n", Value: "v"}}, &transport.Ack{}},
			transport.MethodStatePut:   {&transport.StatePutRequest{Ref: ref, Token: tok, Key: "k", Value: []byte("v")}, &transport.StateValue{}},
		} {
			if err := o.try("b", m, ask.q, ask.r); !errors.Is(err, task.ErrNoLeader) {
				t.Errorf("%s was answered without a commit: %v", m, err)
			}
		}
	})
}

func TestAnIdleLeaderWritesNothing(t *testing.T) {
	lead(t, func(o *office) {
		synctest.Wait()
		before := o.log.writes
		for range 60 {
			o.poll(4) // the node's heartbeat
		}
		if n := o.log.writes - before; n != 0 {
			t.Fatalf("%d entries in five idle minutes", n)
		}
	})
}

func TestACancelReachesTheHolderAtOnce(t *testing.T) {
	lead(t, func(o *office) {
		id := o.submit(1)
		tok := o.poll(4).Assignments[0].Token
		got := make(chan *transport.PollReply, 1)
		go func() { got <- o.poll(3, tok) }()
		synctest.Wait()
		start := time.Now()
		if r, err := o.l.Propose(context.Background(), &fsm.CancelJob{Job: id}); err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		r := <-got
		if len(r.Orders) != 1 || r.Orders[0].Token != tok || r.Orders[0].Reason != task.StopCancel || time.Since(start) > time.Second {
			t.Fatalf("%+v after %s", r, time.Since(start))
		}
	})
}

func TestASilentNodeIsRecordedOnce(t *testing.T) {
	lead(t, func(o *office) {
		time.Sleep(3 * time.Minute)
		o.log.Read(func(s *fsm.State) {
			if s.Node("b").Online {
				t.Error("b is still online after three silent minutes")
			}
		})
		if r := o.poll(1); !r.Unregistered {
			t.Errorf("its question is answered by %+v: it has not said how long it was away", r)
		}
		o.back(7*time.Hour + 12*time.Minute)
		o.log.Read(func(s *fsm.State) {
			if n := s.Node("b"); !n.Online || n.Reason != "slept 7h12m" {
				t.Errorf("b is back and recorded as online %v, %q", n.Online, n.Reason)
			}
		})
	})
}

// A job that may only start within an hour keeps no disk awake until then, and ends when the hour is over.
func TestAStartWithinIsWaitedForInSilence(t *testing.T) {
	lead(t, func(o *office) {
		st := task.StageSpec{Name: "main", Shards: 1, When: task.WhenSuccess, Run: "x", Lease: task.DefaultLease(task.Minute), Retry: task.DefaultRetry(),
			Require: []task.Requirement{{Label: "gpu", Op: task.OpExists}}}
		data, _ := json.Marshal(task.Spec{Name: "x", Queue: "default", Retain: task.Day, StartWithin: task.Hour, Stages: []task.StageSpec{st}})
		r, err := o.hand(fsm.SubmitJob{Spec: data, Digest: data})
		if err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		synctest.Wait()
		before, start := o.log.writes, time.Now()
		for time.Since(start) < 59*time.Minute {
			o.poll(4)
		}
		if n := o.log.writes - before; n != 0 {
			t.Errorf("%d entries while it waited", n)
		}
		for time.Since(start) < 61*time.Minute {
			o.poll(4)
		}
		o.log.Read(func(s *fsm.State) {
			if j := s.Job(r.Job); j.State != task.JobExpired {
				t.Errorf("it is %s", j.State)
			}
		})
	})
}

// R16: who says that it sleeps is taken at its word until it registers again, whatever arrives late of it.
func TestANodeThatSleeps(t *testing.T) {
	lead(t, func(o *office) {
		id := o.submit(3)
		known := o.poll(1).Assignments[0].Token
		o.poll(2, known) // its answer is lost
		o.sleep(known)
		o.log.Read(func(s *fsm.State) {
			if n := s.Node("b"); n.Online || n.Reason != task.ReasonAsleep || s.Held("b") != 1 || s.Lease(known) == nil {
				t.Errorf("online %v (%s), %d leases", n.Online, n.Reason, s.Held("b"))
			}
			if sh := s.Job(id).Shard(0, 1); sh.State != task.ShardPending || sh.Losses != 0 || sh.Fails != 0 {
				t.Errorf("what never reached it: %+v", sh)
			}
		})
		if r := o.poll(4, known); !r.Unregistered {
			t.Errorf("a late poll is answered by %+v", r)
		}
		if _, err := o.renew(known); err != nil {
			t.Errorf("what it kept is not renewed: %v", err)
		}
		time.Sleep(2 * time.Second)
		o.log.Read(func(s *fsm.State) {
			if n := s.Node("b"); n.Online || n.Reason != task.ReasonAsleep {
				t.Errorf("woken by a late message: online %v (%s)", n.Online, n.Reason)
			}
		})
		if keep := o.back(0, known, known+1); len(keep) != 1 || keep[0] != known {
			t.Errorf("it keeps %v", keep)
		}
		o.log.Read(func(s *fsm.State) {
			if n := s.Node("b"); !n.Online || n.Reason != "" {
				t.Errorf("online %v (%s)", n.Online, n.Reason)
			}
		})
		if r := o.poll(2, known); len(r.Assignments) == 0 {
			t.Error("it gets nothing after it is back")
		}
	})
}

func TestSleepLengths(t *testing.T) {
	for d, want := range map[time.Duration]string{40 * time.Second: "40s", 89 * time.Second: "1m", 7*time.Hour + 12*time.Minute + 20*time.Second: "7h12m", 2 * time.Hour: "2h0m"} {
		if got := sleepLength(d); got != want {
			t.Errorf("%s: %q", d, got)
		}
	}
}
