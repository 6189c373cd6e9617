package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/task"
)

func TestQueryFilters(t *testing.T) {
	b := newBench(t)
	at := func(index uint64) int64 { return 1_700_000_000_000 + int64(index)*60_000 }
	add := func(index uint64, e ...task.Event) {
		for i := range e {
			e[i].Index, e[i].N, e[i].Wall = index, i, at(index)
		}
		b.Append(e)
	}
	add(1, task.Event{Kind: task.EventLeaderElected, Node: "n1", NodeName: "mini-1"})
	add(2, task.Event{Kind: task.EventJobSubmit, Job: "j7", JobName: "transcode", By: "anna"})
	add(3, task.Event{Kind: task.EventLeaseGrant, Job: "j7", Stage: "segments", Shards: "0-63,70", Node: "n2", NodeName: "nas"},
		task.Event{Kind: task.EventLeaseGrant, Job: "j8", Stage: "main", Shards: "5", Node: "n1", NodeName: "mini-1"})
	add(4, task.Event{Kind: task.EventLeaseRenew, Job: "j7", Stage: "segments", Shards: "9", Node: "n2", NodeName: "nas"})
	add(5, task.Event{Kind: task.EventLeaseExpire, Job: "j7", Stage: "segments", Shards: "9", Node: "n2", NodeName: "nas"})
	add(6, task.Event{Kind: task.EventNodeOffline, Node: "n2", NodeName: "nas", Reason: `says "job":"j7" in it`})

	for _, c := range []struct {
		name string
		f    Filter
		want string
	}{
		{"all", Filter{}, "1.0 2.0 3.0 3.1 4.0 5.0 6.0"},
		{"from an entry", Filter{From: 4}, "4.0 5.0 6.0"},
		{"after a position", Filter{After: Position{3, 0}}, "3.1 4.0 5.0 6.0"},
		{"from and after: the later", Filter{From: 2, After: Position{3, 0}}, "3.1 4.0 5.0 6.0"},
		{"job", Filter{Job: "j7"}, "2.0 3.0 4.0 5.0"},
		{"stage", Filter{Job: "j7", Stage: "main"}, ""},
		{"shard in a group", Filter{Job: "j7", Shards: []task.Range{{First: 70, Last: 70}}}, "3.0"},
		{"shards", Filter{Shards: []task.Range{{First: 4, Last: 9}}}, "3.0 3.1 4.0 5.0"},
		{"node by id", Filter{Node: "n2"}, "3.0 4.0 5.0 6.0"},
		{"node by name", Filter{Node: "mini-1"}, "1.0 3.1"},
		{"kind", Filter{Kinds: []task.EventKind{"lease.grant", "job.submit"}}, "2.0 3.0 3.1"},
		{"noun", Filter{Kinds: []task.EventKind{"lease"}}, "3.0 3.1 4.0 5.0"},
		{"half a noun is none", Filter{Kinds: []task.EventKind{"lea", "lease.gr"}}, ""},
		{"since", Filter{Since: time.UnixMilli(at(5))}, "5.0 6.0"},
		{"first two", Filter{Limit: 2}, "1.0 2.0"},
		{"last two", Filter{Limit: 2, Tail: true}, "5.0 6.0"},
		{"last two of a job", Filter{Job: "j7", Limit: 2, Tail: true}, "4.0 5.0"},
		{"last after", Filter{After: Position{5, 0}, Limit: 9, Tail: true}, "6.0"},
	} {
		t.Run(c.name, func(t *testing.T) { b.t = t; b.wantPositions(c.f, c.want) })
	}
	b.t = t
	for _, f := range []Filter{{Limit: 2}, {Limit: 2, Tail: true}, {Job: "j7", Limit: 3}} {
		if _, more, err := b.Query(t.Context(), f); !more || err != nil {
			t.Errorf("%+v: more=%v, %v", f, more, err)
		}
	}
	for _, f := range []Filter{{Limit: 7}, {Limit: 7, Tail: true}, {Job: "j7", Limit: 4}, {}} {
		if _, more, err := b.Query(t.Context(), f); more || err != nil {
			t.Errorf("%+v: more=%v, %v", f, more, err)
		}
	}
}

// TestQueryAcrossFiles compares forward and backward reading with the same events in memory, over many small files.
func TestQueryAcrossFiles(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxBytes, c.Keep = 900, 1000 })
	var all []task.Event
	for i := uint64(1); i <= 300; i++ {
		g := entry(i, []task.EventKind{task.EventLeaseGrant, task.EventLeaseRenew, task.EventJobState}[:1+i%3]...)
		g[0].Job = task.JobID(fmt.Sprintf("j%d", i%7))
		all = append(all, g...)
		b.Append(g)
		if i%5 == 0 {
			b.query(Filter{Limit: 1})
		}
	}
	if n := len(b.oldFiles()); n < 20 {
		t.Fatalf("only %d old files", n)
	}
	for from := uint64(0); from <= 302; from += 23 {
		for _, job := range []task.JobID{"", "j3", "j9"} {
			var want []task.Event
			for _, e := range all {
				if e.Index >= from && (job == "" || e.Job == job) {
					want = append(want, e)
				}
			}
			b.wantPositions(Filter{From: from, Job: job}, positions(want))
			b.wantPositions(Filter{From: from, Job: job, Limit: 10}, positions(want[:min(10, len(want))]))
			b.wantPositions(Filter{From: from, Job: job, Limit: 10, Tail: true}, positions(want[max(0, len(want)-10):]))
		}
	}
}

func TestLinesLongerThanTheBuffer(t *testing.T) {
	b := newBench(t)
	for i := uint64(1); i <= 3; i++ {
		g := entry(i, task.EventLeaseGrant)
		g[0].Shards = strings.Repeat("1,3,5,7,", readBytes/6) + "9"
		b.Append(g)
	}
	b.wantPositions(Filter{}, "1.0 2.0 3.0")
	b.wantPositions(Filter{Tail: true, Limit: 2}, "2.0 3.0")
	b.restart()
	if b.Last() != (Position{3, 0}) {
		t.Errorf("the log ends at %s", b.Last())
	}
}

func TestAnUnfinishedLineIsNotRead(t *testing.T) {
	b := newBench(t)
	b.append(grants(1, 1))
	b.query(Filter{})
	b.writing.Lock()
	if _, err := b.file.f.WriteString(`{"index":2,"n":0,"clock":0,"event":"job.state"}`); err != nil {
		t.Fatal(err)
	}
	b.writing.Unlock()
	b.wantPositions(Filter{}, "1.0 1.1")
	b.wantPositions(Filter{Tail: true, Limit: 3}, "1.0 1.1")
}

func TestQueryEndsWithItsContext(t *testing.T) {
	b := newBench(t)
	b.append(grants(1, 3000))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("client left"))
	for _, f := range []Filter{{}, {Tail: true, Limit: 5000}} {
		if _, _, err := b.Query(ctx, f); err == nil || !strings.Contains(err.Error(), "client left") {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// follower collects what Follow gives.
type follower struct {
	mu     sync.Mutex
	events []task.Event
	cancel context.CancelFunc
	done   chan error
}

func (b *bench) follow(f Filter) *follower {
	ctx, cancel := context.WithCancel(context.Background())
	fl := &follower{cancel: cancel, done: make(chan error, 1)}
	go func() {
		fl.done <- b.Follow(ctx, f, func(events []task.Event) error {
			fl.mu.Lock()
			defer fl.mu.Unlock()
			fl.events = append(fl.events, events...)
			return nil
		})
	}()
	return fl
}

func (f *follower) positions() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return positions(f.events)
}

func (f *follower) stop(t *testing.T) {
	t.Helper()
	f.cancel()
	if err := <-f.done; !errors.Is(err, context.Canceled) {
		t.Errorf("follow ended with %v", err)
	}
}

func TestFollowGoesOnThroughRotations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) { c.MaxBytes, c.Keep = 900, 1000 })
		b.append(grants(1, 2))
		all, late := b.follow(Filter{}), b.follow(Filter{After: Position{2, 0}, Kinds: []task.EventKind{"lease.grant"}})
		synctest.Wait()
		want, wantLate := []task.Event{}, []task.Event{}
		for i := uint64(1); i <= 40; i++ {
			g := entry(i, task.EventLeaseGrant, task.EventLeaseConfirm)
			want = append(want, g...)
			if i > 2 {
				wantLate = append(wantLate, g[0])
				b.Append(g)
				synctest.Wait()
			}
		}
		if got := all.positions(); got != positions(want) {
			t.Errorf("followed %s", got)
		}
		if got := late.positions(); got != positions(wantLate) {
			t.Errorf("followed %s, want %s", got, positions(wantLate))
		}
		all.stop(t)
		late.stop(t)
		b.stop()
	})
}

func TestASlowFollowerIsToldOfWhatItMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, small)
		b.append(grants(1, 1))
		var got []task.Event
		hold := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- b.Follow(ctx, Filter{}, func(events []task.Event) error {
				got = append(got, events...)
				<-hold
				return nil
			})
		}()
		synctest.Wait()
		for i := uint64(2); i <= 60; i++ { // far more than the files that are kept
			b.append(grants(i, i))
			synctest.Wait()
		}
		close(hold)
		synctest.Wait()
		cancel()
		<-done
		i := slices.IndexFunc(got, func(e task.Event) bool { return e.Kind == EventGap })
		if i != 2 || !strings.Contains(got[i].Reason, "events after 1.1 up to entry") {
			t.Fatalf("gap at %d of %s", i, positions(got))
		}
		if last := At(&got[len(got)-1]); last != (Position{60, 1}) {
			t.Errorf("the last event followed is %s", last)
		}
		b.stop()
	})
}

func TestFromAnEntryThatIsNoLongerKept(t *testing.T) {
	b := newBench(t, small)
	for i := uint64(1); i <= 60; i++ {
		b.append(grants(i, i))
		b.query(Filter{Limit: 1})
	}
	got := b.query(Filter{From: 3})
	if got[0].Kind != EventGap || got[0].N != -1 || got[1].Index != got[0].Index {
		t.Errorf("query gives %s", positions(got))
	}
	if all := b.query(Filter{}); all[0].Kind == EventGap {
		t.Error("who asks for all that is kept misses nothing")
	}
}

func TestFollowEndsWhenItsReaderFails(t *testing.T) {
	b := newBench(t)
	b.append(grants(1, 1))
	gone := errors.New("pipe closed")
	if err := b.Follow(t.Context(), Filter{}, func([]task.Event) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("follow ended with %v", err)
	}
}

// TestManyAtOnce runs a writer, syncs, queries and followers together over rotations; run it with -race.
func TestManyAtOnce(t *testing.T) {
	b := newBench(t, func(c *Config) {
		c.MaxBytes, c.Keep, c.Log = 20_000, 1000, slog.New(slog.DiscardHandler)
	})
	const entries = 600
	followers := []*follower{b.follow(Filter{}), b.follow(Filter{Kinds: []task.EventKind{"lease.confirm"}})}
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for i := range 3 {
		readers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				events, _, err := b.Query(t.Context(), Filter{Tail: i == 0, Limit: 50, From: uint64(n % 100)})
				if err != nil {
					t.Error(err)
					return
				}
				for k := 1; k < len(events); k++ {
					if !At(&events[k-1]).Less(At(&events[k])) {
						t.Errorf("out of order: %s", positions(events))
					}
				}
				if i == 2 {
					if err := b.Sync(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	b.append(grants(1, entries))
	b.wantPositions(Filter{From: entries}, fmt.Sprintf("%d.0 %d.1", entries, entries))
	close(stop)
	readers.Wait()
	for i, f := range followers {
		want := entries * (2 - i)
		for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			f.mu.Lock()
			n := len(f.events)
			f.mu.Unlock()
			if n >= want {
				break
			}
		}
		f.mu.Lock()
		if n := len(f.events); n != want {
			t.Errorf("follower %d got %d of %d events", i, n, want)
		}
		f.mu.Unlock()
		f.stop(t)
	}
}

func TestOldNames(t *testing.T) {
	now := time.Date(2026, 11, 29, 16, 0, 0, 0, time.UTC)
	o, ok := parseOldName(oldName(18231, now))
	if !ok || o.first != 18231 || !o.since.Equal(now) {
		t.Errorf("parsed %+v, %v", o, ok)
	}
	for _, name := range []string{"audit.jsonl", "audit-x-20261129T160000Z.jsonl", "audit-1.jsonl", "audit-1-2.jsonl", "other", "audit-00000000000000018231-20261129T160000Z.jsonl.gz"} {
		if _, ok := parseOldName(name); ok {
			t.Errorf("%s was taken for an old file", name)
		}
	}
}

func TestOthersFilesInTheFolderAreLeftAlone(t *testing.T) {
	b := newBench(t, small)
	note := filepath.Join(b.cfg.Dir, "audit-notes.txt")
	if err := os.WriteFile(note, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= 60; i++ {
		b.append(grants(i, i))
		b.query(Filter{Limit: 1})
	}
	if _, err := os.Stat(note); err != nil {
		t.Error(err)
	}
}
