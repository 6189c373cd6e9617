package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"lanjobs/task"
	"lanjobs/transport/memnet"
)

func TestLinesAreJSONThatGrepCanRead(t *testing.T) {
	b := newBench(t)
	e := entry(7, task.EventLeaseExpire)
	e[0].Reason, e[0].By = "<script>alert(1)</script>\nnew line", "anna"
	e[0].Load = &task.Load{CPU: math.NaN()}
	b.Append(e)
	b.query(Filter{})
	line := b.content()
	if strings.Count(line, "\n") != 1 || strings.Contains(line, "<script>") {
		t.Errorf("not one harmless line: %q", line)
	}
	if !strings.Contains(line, `"event":"lease.expire"`) || !strings.Contains(line, `"time":"2023-11-14T22:13:27.000Z"}`) {
		t.Errorf("line is %s", line)
	}
	var back task.Event
	if err := json.Unmarshal([]byte(line), &back); err != nil || back.Reason != e[0].Reason {
		t.Errorf("line reads as %+v, %v", back, err)
	}
	if !strings.Contains(b.log.String(), `level=INFO msg=lease.expire index=7 job=j7`) {
		t.Errorf("log is %s", b.log)
	}
}

func TestReplayAfterARestartIsSkipped(t *testing.T) {
	b := newBench(t)
	b.append(grants(1, 5))
	b.restart()
	b.log.Reset()
	b.append(grants(3, 6))
	b.wantPositions(Filter{}, "1.0 1.1 2.0 2.1 3.0 3.1 4.0 4.1 5.0 5.1 6.0 6.1")
	if n := strings.Count(b.log.String(), "\n"); n != 2 {
		t.Errorf("a replay was logged again: %s", b.log)
	}
}

func TestReplayAfterAnEntryWrittenInPart(t *testing.T) {
	b := newBench(t)
	b.append(grants(1, 2))
	b.stop()
	text := b.content()
	lines := strings.SplitAfter(text, "\n")
	for _, torn := range []string{lines[3][:20], lines[3][:len(lines[3])-1], strings.Repeat("\x00", 4096), "", lines[3][:20] + "\n", "{}\n"} {
		if err := os.WriteFile(b.path(), []byte(strings.Join(lines[:3], "")+torn), 0o600); err != nil {
			t.Fatal(err)
		}
		b.open()
		if got := b.Last(); got != (Position{2, 0}) {
			t.Errorf("after %q the log ends at %s", torn, got)
		}
		b.append(grants(1, 2))
		b.stop()
		if got := b.content(); got != text {
			t.Errorf("after the torn end %q the file is\n%s", torn, got)
		}
	}
}

func TestADamagedFileIsPutAsideAndItsLinesAreStillRead(t *testing.T) {
	b := newBench(t)
	b.append(grants(1, 6))
	b.stop()
	text := []byte(b.content())
	at := bytes.Index(text, []byte(`{"index":3,"n":0`))
	copy(text[at:], strings.Repeat("\x00", 30))
	if err := os.WriteFile(b.path(), text, 0o600); err != nil {
		t.Fatal(err)
	}
	b.open()
	if got := b.Last(); got != (Position{2, 1}) {
		t.Errorf("the log ends at %s", got)
	}
	b.wantPositions(Filter{}, "1.0 1.1 2.0 2.1 3.1 4.0 4.1 5.0 5.1 6.0 6.1")
	b.append(grants(5, 7)) // a snapshot covers the rest
	b.wantPositions(Filter{}, "1.0 1.1 2.0 2.1 3.1 4.0 4.1 5.0 5.1 6.0 6.1 7.0 7.1")
	b.wantPositions(Filter{Tail: true, Limit: 4}, "6.0 6.1 7.0 7.1")
	b.restart()
	if got := b.Last(); got != (Position{7, 1}) {
		t.Errorf("after a restart the log ends at %s", got)
	}
}

func TestAFileOfNothingButDamageIsKept(t *testing.T) {
	b := newBench(t)
	b.stop()
	if err := os.WriteFile(b.path(), []byte("what is\nthis\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.open()
	b.append(grants(1, 1))
	b.wantPositions(Filter{}, "1.0 1.1")
}

func TestWhatWasSyncedSurvivesACrash(t *testing.T) {
	b := newBench(t)
	b.append(grants(1, 100))
	if err := b.Sync(); err != nil {
		t.Fatal(err)
	}
	b.crash()
	b.open()
	if got := b.Last(); got != (Position{100, 1}) {
		t.Errorf("the log ends at %s", got)
	}
}

func TestJumpedLeavesAGapThatEveryQueryShows(t *testing.T) {
	b := newBench(t)
	b.append(grants(1, 2))
	b.Jumped(50)
	b.append(grants(50, 51)) // 50 is in the snapshot: its events never come, but if they did they are no news
	b.wantPositions(Filter{}, "1.0 1.1 2.0 2.1 50.0 50.1 51.0 51.1")
	got := b.query(Filter{Job: "j7", Kinds: []task.EventKind{"job"}})
	if len(got) != 1 || got[0].Kind != EventGap || !strings.Contains(got[0].Reason, "entries after 2 up to 50") {
		t.Errorf("query gives %+v", got)
	}
	b.Jumped(51)
	if n := len(b.query(Filter{Kinds: []task.EventKind{EventGap}})); n != 1 {
		t.Errorf("%d gaps", n)
	}
}

func TestDiskRefusesThenTakesLinesAgain(t *testing.T) {
	b := newBench(t)
	b.append(grants(1, 1))
	b.query(Filter{})
	b.writing.Lock()
	good := b.file.f
	b.file.f, _ = os.Open(b.path()) // for reading only: every write fails
	b.writing.Unlock()
	b.append(grants(2, 3))
	if err := b.Sync(); err == nil {
		t.Error("Sync succeeded without a disk")
	}
	b.wantPositions(Filter{}, "1.0 1.1")
	big := entry(4, task.EventJobSubmit)
	big[0].Reason = strings.Repeat("x", maxPending)
	b.Append(big)
	b.append(grants(5, 9))
	b.query(Filter{})
	b.writing.Lock()
	_ = b.file.f.Close()
	b.file.f = good
	b.writing.Unlock()
	if err := b.Sync(); err != nil {
		t.Fatal(err)
	}
	b.append(grants(10, 10))
	events := b.query(Filter{})
	if got, want := positions(events), "1.0 1.1 2.0 2.1 3.0 3.1 4.0 9.1 10.0 10.1"; got != want {
		t.Errorf("query gives %s, want %s", got, want)
	}
	if g := events[7]; g.Kind != EventGap || !strings.HasPrefix(g.Reason, "10 events from 5.0 to 9.1 could not") {
		t.Errorf("gap is %+v", g)
	}
}

func TestAHalfWrittenLineIsTakenBack(t *testing.T) {
	b := newBench(t)
	b.append(grants(1, 1))
	b.query(Filter{})
	b.writing.Lock()
	if _, err := b.file.f.WriteString(`{"index":2,"n":`); err != nil {
		t.Fatal(err)
	}
	b.file.torn = true
	b.writing.Unlock()
	b.append(grants(2, 2))
	b.wantPositions(Filter{}, "1.0 1.1 2.0 2.1")
	if n := strings.Count(b.content(), "\n"); n != 4 {
		t.Errorf("file is %s", b.content())
	}
}

func TestConfigFaultsAreToldAtOnce(t *testing.T) {
	_, err := Open(Config{})
	for _, what := range []string{"Dir", "Clock", "Log", "MaxBytes", "MaxAge", "Keep"} {
		if err == nil || !strings.Contains(err.Error(), what+" is missing") {
			t.Errorf("%s is not told: %v", what, err)
		}
	}
}

func TestAFullQueueMakesApplyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memnet.NewClock()
		a, err := Open(DefaultConfig(t.TempDir(), c, slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		group := make([]task.Event, maxQueued)
		for i := range group {
			group[i] = task.Event{Index: 1, N: i, Kind: task.EventLeaseRenew}
		}
		a.Append(group)
		var waiting sync.WaitGroup
		waiting.Go(func() { a.Append(entry(2, task.EventLeaseRenew)) })
		synctest.Wait() // it waits: nobody writes
		a.mu.Lock()
		if a.queued != maxQueued {
			t.Errorf("%d queued", a.queued)
		}
		a.mu.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx) }()
		waiting.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if a.Last() != (Position{2, 0}) {
			t.Errorf("the log ends at %s", a.Last())
		}
		a.Append(entry(3, task.EventLeaseRenew)) // after the end: neither waits nor writes
	})
}

func TestLinesAreOnDiskWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.append(grants(1, 3))
		synctest.Wait()
		if n := strings.Count(b.content(), "\n"); n != 6 {
			t.Errorf("%d lines after the queue was empty", n)
		}
		b.stop()
	})
}

func BenchmarkAppend(b *testing.B) {
	a, err := Open(DefaultConfig(b.TempDir(), memnet.NewClock(), slog.New(slog.DiscardHandler)))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	b.ReportAllocs()
	i := uint64(0)
	for b.Loop() {
		i++
		g := make([]task.Event, 100)
		for n := range g {
			g[n] = task.Event{Index: i, N: n, Clock: 12345678, Wall: 1_700_000_000_000, Kind: task.EventLeaseRenew, Job: "j7k3q9", JobName: "transcode",
				Stage: "segments", Shards: fmt.Sprint(n), Attempt: 1, Execution: "x7", Token: 7, Node: "5b0c9a62-0000-4000-8000-000000000001", NodeName: "nas",
				TTL: 300_000, Expiry: 12645678, Load: &task.Load{CPU: 2.5, MemFreeMB: 1000, DiskFreeMB: 50000}}
		}
		a.Append(g)
	}
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}
