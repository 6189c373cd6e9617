package cli

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/task"
)

// video is a finished job with output of two stages; shard b/1 ran twice.
func video(b *bench) *fakeJob {
	j := b.api.add(task.Spec{Name: "video", Stages: []task.StageSpec{{Name: "a", Shards: 1}, {Name: "b", Shards: 3}}})
	j.view.State = task.JobSucceeded
	j.logs = map[string]string{"a/0/1": "a0\n", "b/0/1": "b0 one\nb0 two\nb0 three\n", "b/1/1": "b1 first try\n", "b/1/2": "b1 second try\n", "b/2/1": "b2 without end"}
	for _, s := range []task.ShardView{{Stage: "a", Shard: 0, Attempt: 1}, {Stage: "b", Shard: 0, Attempt: 1}, {Stage: "b", Shard: 1, Attempt: 2}, {Stage: "b", Shard: 2, Attempt: 1}} {
		j.shards = append(j.shards, s)
		for k := 1; k <= s.Attempt; k++ {
			b.api.emit(j, task.Event{Kind: task.EventLeaseGrant, Stage: s.Stage, Shards: itoa(s.Shard), Attempt: k})
		}
	}
	return j
}

func TestLogs(t *testing.T) {
	b := newBench(t)
	video(b)
	one := b.api.add(task.Spec{Name: "one", Stages: []task.StageSpec{{Name: "main", Shards: 1}}})
	one.logs, one.shards = map[string]string{"main/0/1": "just this\nand that"}, []task.ShardView{{Stage: "main", Attempt: 1}}
	for line, want := range map[string]string{
		"logs one":                  "just this\nand that",
		"logs one --tail 1":         "and that",
		"logs one --stderr":         "",
		"logs video/a":              "a0\n",
		"logs video/b/1":            "b1 second try\n",
		"logs video/b/1#1":          "b1 first try\n",
		"logs video/b/0 --tail 2":   "b0 two\nb0 three\n",
		"logs video/b/1,2":          "b/1 | b1 second try\nb/2 | b2 without end\n",
		"logs video/b/0-1 --tail 1": "b/0 | b0 three\nb/1 | b1 second try\n",
		"logs video":                "a/0 | a0\nb/0 | b0 one\nb/0 | b0 two\nb/0 | b0 three\nb/1 | b1 second try\nb/2 | b2 without end\n",
		"logs -f one/0":             "just this\nand that",
	} {
		if strings.Contains(line, "-f") {
			b.api.emit(one, task.Event{Kind: task.EventLeaseGrant, Stage: "main", Shards: "0", Attempt: 1})
			one.view.State = task.JobSucceeded
		}
		b.expect(exitDone, strings.Fields(line)...)
		if b.out.String() != want {
			t.Errorf("%s:\n%q, want\n%q", line, b.out, want)
		}
	}
	b.expect(exitNotFound, "logs", "video/c/1")
	b.expect(exitNotFound, "logs", "vidoe")
	b.wants("stderr", b.err.String(), `Did you mean "video"`)
	b.expect(exitNotFound, "logs", "video/b/1#7")
	b.expect(exitUsage, "logs", "video/b/1#x")
}

// TestLogsFollow: what was there and what comes, each attempt once, until the job has ended.
func TestLogsFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		j := b.api.add(task.Spec{Name: "score", Stages: []task.StageSpec{{Name: "main", Shards: 3}}})
		go b.api.play(-1)(j)
		b.expect(exitDone, "logs", "score", "-f")
		lines := strings.Split(strings.TrimSuffix(b.out.String(), "\n"), "\n")
		slices.Sort(lines)
		want := "main/0 | first of 0,main/0 | last of 0,main/1 | first of 1,main/1 | last of 1,main/2 | first of 2,main/2 | last of 2"
		if strings.Join(lines, ",") != want {
			t.Errorf("have %q", lines)
		}
	})
}

// TestLogsFollowRetry: a second attempt's output follows the first one's, also when its grant tells no number.
func TestLogsFollowRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		j := b.api.add(task.Spec{Name: "hello", Stages: []task.StageSpec{{Name: "main", Shards: 1}}})
		go func() {
			time.Sleep(time.Second)
			b.api.change(func() {
				b.api.emit(j, task.Event{Kind: task.EventLeaseGrant, Stage: "main", Shards: "0", Attempt: 1})
				j.logs["main/0/1"] = "one\n"
			})
			time.Sleep(5 * time.Second)
			b.api.change(func() {
				b.api.emit(j, task.Event{Kind: task.EventLeaseGrant, Stage: "main", Shards: "0"})
				b.api.emit(j, task.Event{Kind: task.EventLeaseGrant, Stage: "main", Shards: "0", Attempt: 2})
			})
			time.Sleep(time.Second) // the log comes after the grant
			b.api.change(func() { j.logs["main/0/2"], j.view.State = "two\n", task.JobSucceeded })
		}()
		b.expect(exitDone, "logs", "-f", "hello")
		if b.out.String() != "one\ntwo\n" {
			t.Errorf("have %q", b.out)
		}
	})
}

// TestLogsNewestChanges: the newest attempt is followed across its successor, whose output starts at its own beginning.
func TestLogsNewestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		j := b.api.add(task.Spec{Name: "hello", Stages: []task.StageSpec{{Name: "main", Shards: 1}}})
		j.logs["main/0/1"], j.running["main/0/1"] = "one one one\n", true
		b.api.emit(j, task.Event{Kind: task.EventLeaseGrant, Stage: "main", Shards: "0"})
		time.AfterFunc(2*time.Second, func() { b.api.change(func() { j.logs["main/0/2"] = "two\n" }) })
		time.AfterFunc(4*time.Second, func() { b.api.change(func() { j.view.State = task.JobSucceeded }) })
		b.expect(exitDone, "logs", "-f", "hello")
		if b.out.String() != "one one one\ntwo\n" {
			t.Errorf("have %q", b.out)
		}
	})
}

// TestLogsOfRunning: without -f, what there is now is all.
func TestLogsOfRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		j := b.api.add(task.Spec{Name: "hello", Stages: []task.StageSpec{{Name: "main", Shards: 1}}})
		j.logs["main/0/1"], j.running["main/0/1"] = "one\n", true
		b.expect(exitDone, "logs", "hello", "--timeout", "1m")
	})
}

// brokenPipe is standard output whose reader has gone.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// TestLogsReaderGone: who reads no more ends the command, although the job goes on.
func TestLogsReaderGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		j := b.api.add(task.Spec{Name: "hello", Stages: []task.StageSpec{{Name: "main", Shards: 1}}})
		j.logs["main/0/1"], j.running["main/0/1"] = "one\n", true
		b.api.emit(j, task.Event{Kind: task.EventLeaseGrant, Stage: "main", Shards: "0", Attempt: 1})
		b.w.stdout = brokenPipe{}
		b.expect(exitBad, "logs", "hello", "-f", "--timeout", "1m")
		b.wants("stderr", b.err.String(), "broken pipe")
		b.expect(exitBad, "logs", "hello")
	})
}

// TestLogsNoMachine: output on a machine that is away is said once and waited for while the job runs.
func TestLogsNoMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		j := b.api.add(task.Spec{Name: "hello", Stages: []task.StageSpec{{Name: "main", Shards: 1}}})
		b.api.emit(j, task.Event{Kind: task.EventLeaseGrant, Stage: "main", Shards: "0", Attempt: 1})
		j.logs["main/0/1"] = "one\n"
		b.expect(exitDone, "status")
		go func() {
			b.api.change(func() { b.api.outages = 3 })
			time.Sleep(30 * time.Second)
			b.api.change(func() { j.view.State = task.JobSucceeded })
		}()
		synctest.Wait()
		b.expect(exitDone, "logs", "-f", "hello")
		if b.out.String() != "one\n" {
			t.Errorf("have %q, stderr %q", b.out, b.err)
		}
	})
}

func TestSource(t *testing.T) {
	out := &safeBuffer{}
	s := &source{sink: &sink{out: out}, prefix: "a/0 | "}
	for _, piece := range []string{"on", "e\ntw", "o\n", "", "\n", "three"} {
		if _, err := s.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if want := "a/0 | one\na/0 | two\na/0 | \na/0 | three\n"; out.String() != want {
		t.Errorf("have %q, want %q", out, want)
	}
	long := &source{sink: &sink{out: &safeBuffer{}}, prefix: "x"}
	for range 100 {
		_, _ = long.Write(make([]byte, 4096))
	}
	if len(long.partial) > maxPartialLine+4096 {
		t.Errorf("a line without end is kept whole: %d bytes", len(long.partial))
	}
}
