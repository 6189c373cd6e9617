package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"lanjobs/task"
)

// held starts one endless attempt and returns it.
func (l *lab) held(ttl task.Millis) (*node, *task.Assignment) {
	l.g.job("j1", 1, task.DefaultLease(ttl))
	n := l.node(1, 1, func(*task.Assignment) work { return work{takes: -1, ends: time.Second} })
	l.runs(n, 1)
	l.confirmed(1)
	a := n.r.alive()[0].Assignment
	return n, &a
}

// A save returns only once the leader has it, and numbers go on from the assignment's (R26, I5, C34).
func TestCheckpointReturnsAfterTheAcknowledgement(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		ctx := context.Background()
		l.g.job("j1", 1, task.DefaultLease(task.DefaultTTL))
		l.g.shards[0].last = &task.Checkpoint{Seq: 50, Data: []byte("fifty")}
		n := l.node(1, 1, endless)
		l.runs(n, 1)
		a := n.r.alive()[0].Assignment
		if c := n.w.LastCheckpoint(&a); c == nil || c.Seq != 50 {
			t.Errorf("last %+v", c)
		}
		n.set(func(w *wire) { w.minDelay = 300 * time.Millisecond })
		began := time.Now()
		seq, err := n.w.Checkpoint(ctx, &a, []byte("one more"))
		if err != nil || seq != 51 || time.Since(began) < 600*time.Millisecond {
			t.Errorf("seq %d, %v, after %v", seq, err, time.Since(began))
		}
		if s := l.g.shards[0].last; s.Seq != 51 || string(s.Data) != "one more" {
			t.Errorf("stored %+v", s)
		}
		if c := n.w.LastCheckpoint(&a); c.Seq != 51 || string(c.Data) != "one more" {
			t.Errorf("last %+v", c)
		}
		if _, err := n.w.Checkpoint(ctx, &a, make([]byte, task.MaxCheckpointBytes+1)); !errors.Is(err, task.ErrTooLarge) {
			t.Errorf("too large: %v", err)
		}
	})
}

// Saves of one attempt go one after the other, and a number whose outcome is unknown is never used for other data.
func TestCheckpointNumbers(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n, a := l.held(task.DefaultTTL)
		n.set(func(w *wire) { w.delay = 50 * time.Millisecond })
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if _, err := n.w.Checkpoint(context.Background(), a, []byte(fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if s := l.g.shards[0].last; s.Seq != 20 {
			t.Errorf("stored %+v", s)
		}
		n.set(func(w *wire) { w.cutBack, w.delay = true, 0 })
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := n.w.Checkpoint(ctx, a, []byte("unknown outcome")); err == nil {
			t.Error("acknowledged over a cut wire")
		}
		n.set(func(w *wire) { w.cutBack = false })
		if c := n.w.LastCheckpoint(a); c.Seq != 20 {
			t.Errorf("last %+v: a save counts once it is acknowledged", c)
		}
		seq, err := n.w.Checkpoint(context.Background(), a, []byte("next"))
		if s := l.g.shards[0].last; err != nil || seq != 22 || string(s.Data) != "next" {
			t.Errorf("seq %d, %v, stored %+v", seq, err, s)
		}
	})
}

// The agent that reattached knows only the assignment's number; its saves must not be taken for repeats of older ones.
func TestCheckpointAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n, a := l.held(task.DefaultTTL)
		for i := range 100 {
			if _, err := n.w.Checkpoint(context.Background(), a, []byte(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
		n.restart()
		l.sleep(time.Second)
		seq, err := n.w.Checkpoint(context.Background(), a, []byte("after"))
		if s := l.g.shards[0].last; err != nil || seq <= 100 || seq > 300 || string(s.Data) != "after" {
			t.Errorf("seq %d, %v, stored %+v", seq, err, s)
		}
	})
}

// Once the local deadline is past nothing is sent any more; a refusal by the leader fences the attempt (I11, C35).
func TestWritesOfAStaleHolder(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n, a := l.held(20 * task.Second)
		n.r.set(func(r *fakeRunner) { r.deaf = true })
		writes := 0
		l.g.look(func() { l.g.onWrite = func(task.Token, string) { writes++ } })
		ctx := context.Background()
		calls := map[string]func() error{
			"checkpoint": func() error { _, err := n.w.Checkpoint(ctx, a, nil); return err },
			"output":     func() error { return n.w.Output(ctx, a, task.KV{Name: "n"}, "") },
			"progress":   func() error { return n.w.Progress(ctx, a, "half") },
			"inputs":     func() error { _, err := n.w.Inputs(ctx, a, "main", "", false); return err },
			"state.get":  func() error { _, _, err := n.w.StateGet(ctx, a, "k"); return err },
			"state.put":  func() error { _, err := n.w.StatePut(ctx, a, "k", nil, nil, ""); return err },
			"confirm":    func() error { _, err := n.w.Confirm(ctx, a); return err },
			"defer":      func() error { return n.w.Defer(ctx, a, 0) },
		}
		for name, f := range calls {
			if name == "defer" {
				continue // ends it
			}
			if err := f(); err != nil {
				t.Errorf("%s under the lease: %v", name, err)
			}
		}
		n.pause(frozen)
		l.sleep(17 * time.Second)
		before := writes
		n.set(func(w *wire) { w.m = newMachine(1) }) // the wire is open, only the belief is over
		for name, f := range calls {
			if err := f(); !errors.Is(err, task.ErrStaleToken) {
				t.Errorf("%s after the deadline: %v", name, err)
			}
		}
		if writes != before {
			t.Errorf("%d writes arrived after the deadline", writes-before)
		}
	})
}

func TestRefusedWriteFences(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n, a := l.held(task.DefaultTTL)
		l.g.look(func() { l.g.end(l.g.shards[0], task.EndLeaseExpired, task.ShardFailed) })
		if err := n.w.Output(context.Background(), a, task.KV{Name: "n"}, ""); !errors.Is(err, task.ErrStaleToken) {
			t.Errorf("output: %v", err)
		}
		if s := n.r.stopped(); len(s) != 1 || s[0].reason != task.StopFenced || s[0].grace != 0 {
			t.Errorf("stops %+v", s)
		}
	})
}

func TestProgressIsThinned(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n, a := l.held(task.DefaultTTL)
		writes := 0
		l.g.look(func() { l.g.onWrite = func(task.Token, string) { writes++ } })
		for i := range 100 {
			if err := n.w.Progress(context.Background(), a, fmt.Sprintf("%d%%", i)); err != nil {
				t.Fatal(err)
			}
			l.sleep(100 * time.Millisecond)
		}
		if writes < 9 || writes > 11 {
			t.Errorf("%d notes in ten seconds, want one a second", writes)
		}
	})
}

// The same conditional write again is a repeat; another is not.
func TestStatePutRepeats(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n, a := l.held(task.DefaultTTL)
		var ids []string
		l.g.look(func() { l.g.onWrite = func(_ task.Token, what string) { ids = append(ids, what) } })
		one := uint64(1)
		put := func(value string, lost bool) {
			n.set(func(w *wire) { w.cutBack = lost })
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if _, err := n.w.StatePut(ctx, a, "k", []byte(value), &one, ""); (err != nil) != lost {
				t.Errorf("put %s: %v", value, err)
			}
		}
		put("x", true)
		put("x", false) // the helper repeats by itself
		put("x", false) // the task wants it again
		put("y", true)
		put("z", false)
		if len(ids) != 5 || ids[0] != ids[1] || ids[1] == ids[2] || ids[2] == ids[3] || ids[3] == ids[4] {
			t.Errorf("request ids %v", ids)
		}
		if value, version, err := n.w.StateGet(context.Background(), a, "k"); err != nil || version != 3 || !bytes.Equal(value, []byte("k")) {
			t.Errorf("state %s %d %v", value, version, err)
		}
		if in, err := n.w.Inputs(context.Background(), a, "main", "out", false); err != nil || len(in) != 1 || in[0].Name != "out" {
			t.Errorf("inputs %v %v", in, err)
		}
	})
}

// A request id that the task gives stands for itself; without one each output is a write of its own.
func TestRequestIDsOfTheTask(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n, a := l.held(task.DefaultTTL)
		var ids []string
		l.g.look(func() { l.g.onWrite = func(_ task.Token, what string) { ids = append(ids, what) } })
		ctx, one := context.Background(), uint64(1)
		for _, id := range []task.RequestID{"mine", "mine", "", ""} {
			if err := n.w.Output(ctx, a, task.KV{Name: "n"}, id); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []task.RequestID{"a", "a", "b"} {
			if _, err := n.w.StatePut(ctx, a, "k", []byte("x"), &one, id); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{"output mine", "output mine", "", "", "state a", "state a", "state b"}
		if len(ids) != len(want) {
			t.Fatalf("writes %q", ids)
		}
		for i, w := range want {
			if w != "" && ids[i] != w {
				t.Errorf("write %d is %q, want %q", i, ids[i], w)
			}
		}
		if ids[2] == "output " || ids[3] == "output " || ids[2] == ids[3] {
			t.Errorf("outputs without an id: %q", ids[2:4])
		}
	})
}

func TestConfirm(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n, a := l.held(task.DefaultTTL)
		l.sleep(20 * time.Second)
		asked := n.Boot()
		d, err := n.w.Confirm(context.Background(), a)
		if err != nil || d.End < asked.Add(240*time.Second) {
			t.Errorf("believes until %v after asking, %v", d.End.Sub(asked), err)
		}
		// Many at once share requests.
		before := l.g.see(&l.g.renews)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if _, err := n.w.Confirm(context.Background(), a); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := l.g.see(&l.g.renews) - before; got > 3 {
			t.Errorf("%d requests for 50 confirmations", got)
		}
		// One that is asked for while a renewal is under way is not content with that.
		n.set(func(w *wire) { w.minDelay = time.Second })
		before = l.g.see(&l.g.renews)
		l.until(time.Minute, "a heartbeat arrives", func() bool { return l.g.see(&l.g.renews) > before })
		asked = n.Boot()
		if d, err := n.w.Confirm(context.Background(), a); err != nil || d.End < asked.Add(240*time.Second) || n.Boot() > asked.Add(4*time.Second) {
			t.Errorf("confirmed until %v after %v, %v", d.End.Sub(asked), n.Boot().Sub(asked), err)
		}
		n.set(func(w *wire) { w.minDelay = time.Millisecond })
		n.set(func(w *wire) { w.cutOut = true })
		if _, err := n.w.Confirm(context.Background(), a); !errors.Is(err, task.ErrNoLeader) {
			t.Errorf("over a cut wire: %v", err)
		}
		n.set(func(w *wire) { w.cutOut = false })
		l.g.look(func() { l.g.end(l.g.shards[0], task.EndLeaseExpired, task.ShardFailed) })
		if _, err := n.w.Confirm(context.Background(), a); !errors.Is(err, task.ErrStaleToken) {
			t.Errorf("of a lost lease: %v", err)
		}
	})
}

// A task that defers ends, and runs again after its wait; a restart of the agent in between forgets nothing.
func TestDefer(t *testing.T) {
	for _, restart := range []bool{false, true} {
		bubble(t, func(t *testing.T, l *lab) {
			n, a := l.held(task.DefaultTTL)
			var got []task.Outcome
			l.g.answer = func(r task.Report) (string, bool) { got = append(got, r.Outcome); return "", false }
			if err := n.w.Defer(context.Background(), a, 10*task.Minute); err != nil {
				t.Fatal(err)
			}
			if restart {
				n.restart()
			}
			l.until(10*time.Second, "released", func() bool { return l.g.tally()[task.ShardPending] == 1 })
			if len(got) != 1 || got[0].End != task.EndDeferred || got[0].Wait != 10*task.Minute {
				t.Errorf("reported %+v", got)
			}
			l.until(11*time.Minute, "runs again", func() bool { return n.r.began() == 2 })
			if len(n.store.data) != 0 {
				t.Errorf("left in the store: %v", n.store.data)
			}
		})
	}
}

func TestSpecsAreFetchedOncePerJob(t *testing.T) {
	s := newSpecs()
	of := func(job task.JobID) *task.Assignment { return &task.Assignment{Job: job} }
	fetched := map[task.JobID]int{}
	var mu sync.Mutex
	fetch := func(_ context.Context, job task.JobID) (*task.Spec, int, error) {
		mu.Lock()
		defer mu.Unlock()
		fetched[job]++
		if job == "bad" {
			return nil, 0, errBadSpec
		}
		return &task.Spec{Name: string(job)}, maxSpecBytes / 4, nil
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if spec, err := s.get(context.Background(), of("a"), fetch); err != nil || spec.Name != "a" {
				t.Error(spec, err)
			}
		})
	}
	wg.Wait()
	for range 2 {
		if _, err := s.get(context.Background(), of("bad"), fetch); !errors.Is(err, errBadSpec) {
			t.Error(err)
		}
	}
	for _, job := range []task.JobID{"b", "c", "d", "a", "e", "a", "b"} { // four fit
		_, _ = s.get(context.Background(), of(job), fetch)
	}
	if want := map[task.JobID]int{"a": 1, "b": 2, "c": 1, "d": 1, "e": 1, "bad": 2}; fmt.Sprint(fetched) != fmt.Sprint(want) {
		t.Errorf("fetched %v, want %v", fetched, want)
	}
	if s.used.Len() != 4 || len(s.byKey) != 4 || s.bytes != maxSpecBytes {
		t.Errorf("%d kept, %d known, %d bytes", s.used.Len(), len(s.byKey), s.bytes)
	}
}

// A spec that came with assignments serves all jobs of the same digest; one that cannot be read is fetched.
func TestSpecsThatComeWithAssignments(t *testing.T) {
	s := newSpecs()
	fetch := func(_ context.Context, job task.JobID) (*task.Spec, int, error) {
		return &task.Spec{Name: "fetched for " + string(job)}, 1, nil
	}
	s.put("digest", `{"name":"sent"}`)
	s.put("torn", `{"name":`)
	for _, c := range []struct{ job, digest, want string }{
		{"a", "digest", "sent"}, {"b", "digest", "sent"}, {"c", "torn", "fetched for c"}, {"d", "torn", "fetched for c"}, {"e", "", "fetched for e"},
	} {
		spec, err := s.get(context.Background(), &task.Assignment{Job: task.JobID(c.job), SpecDigest: c.digest}, fetch)
		if err != nil || spec.Name != c.want {
			t.Errorf("%s by %q: %v %v, want %s", c.job, c.digest, spec, err, c.want)
		}
	}
}

func TestStatus(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n, a := l.held(task.DefaultTTL)
		l.sleep(10 * time.Second)
		n.set(func(w *wire) { w.cutOut = true })
		l.sleep(40 * time.Second)
		s := n.w.Status()
		if !s.Registered || s.Slots != 1 || s.Free != 0 || len(s.Attempts) != 1 || s.SinceRenewal < 40*time.Second || s.Failures == 0 || s.LastError == "" {
			t.Errorf("%+v", s)
		}
		at := s.Attempts[0]
		if at.Token != a.Token || at.State != "running" || at.Failures == 0 || at.Left <= 0 || at.UntilTerm >= at.Left {
			t.Errorf("%+v", at)
		}
	})
}

var _ Control = (*wire)(nil)
var _ Control = (*groupControl)(nil)
