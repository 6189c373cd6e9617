package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/task"
)

func TestSubmitWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.write("score.yaml", scoreFile)
		b.api.onSubmit = b.api.play(-1)
		b.expect(exitDone, "submit", "--wait", "score.yaml")
		if b.out.String() != "j000001\n" {
			t.Errorf("standard output %q: only the id belongs there", b.out)
		}
		b.wants("stderr", b.err.String(), "main 0/4 done, 4 running\n")
		b.wants("stderr", b.err.String(), "main 4/4 done, 0 running (succeeded)\n")
	})
}

func TestSubmitWaitFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.write("score.yaml", scoreFile)
		b.api.onSubmit = b.api.play(2)
		b.expect(exitBad, "submit", "score.yaml", "--wait")
		b.wants("stderr", b.err.String(), "main/2 dead: exit 1, attempt 3 of 3\n")
		b.wants("stderr", b.err.String(), "lanjobs: score j000001 failed: 1 of 4 shards dead.\n")
		b.wants("stderr", b.err.String(), "lanjobs retry j000001 --dead")
	})
}

func TestSubmitWaitSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.write("a.yaml", helloFile)
		b.write("b.yaml", scoreFile)
		b.api.onSubmit = b.api.play(-1)
		b.expect(exitDone, "submit", "a.yaml", "b.yaml", "--wait")
		if b.out.String() != "j000001\nj000002\n" {
			t.Errorf("standard output %q", b.out)
		}
		b.wants("stderr", b.err.String(), "score/main 4/4 done")
	})
}

// TestSubmitWaitSilence: a job that does nothing speaks every 30 s all the same, and not more often.
func TestSubmitWaitSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.write("score.yaml", scoreFile)
		b.expect(exitTimeout, "submit", "score.yaml", "--wait", "--timeout", "95s")
		if n := strings.Count(b.err.String(), "main 0/4 done"); n != 4 {
			t.Errorf("%d lines in 95 s, want 4:\n%s", n, b.err)
		}
		b.wants("stderr", b.err.String(), "lanjobs: 1m35s passed (--timeout); job j000001 goes on.\n")
	})
}

func TestWaitInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.write("score.yaml", scoreFile)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(errInterrupted) })
		if code := b.runCtx(ctx, "submit", "score.yaml", "--wait"); code != exitInterrupted {
			t.Errorf("exit %d", code)
		}
		b.wants("stderr", b.err.String(), "lanjobs: job j000001 goes on.\n      follow: lanjobs logs j000001 -f")
	})
}

// TestWaitThroughElection: who waits for a job also waits for a leader, and says so once.
func TestWaitThroughElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.write("score.yaml", scoreFile)
		b.api.onSubmit = func(j *fakeJob) {
			b.api.change(func() { b.api.leader = false })
			time.Sleep(3 * time.Minute)
			b.api.change(func() { b.api.leader = true })
			b.api.play(-1)(j)
		}
		b.expect(exitDone, "submit", "score.yaml", "--wait")
		if n := strings.Count(b.err.String(), "the cluster cannot take changes"); n != 1 {
			t.Errorf("told %d times:\n%s", n, b.err)
		}
	})
}

func TestBars(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		home(b)
		b.w.errTTY, b.w.size = true, func() (int, int) { return 79, 24 }
		video := b.api.jobs[2]
		b.api.events = nil
		f := &fakeJob{view: video.view}
		b.api.emit(f, task.Event{Kind: task.EventShardState, Stage: "segments", Shards: "1", To: "failed", Reason: "long ago"})
		time.AfterFunc(50*time.Millisecond, func() {
			b.api.change(func() {
				b.api.emit(f, task.Event{Kind: task.EventCheckpoint, Stage: "segments", Shards: "9", Seq: 3})
				b.api.emit(f, task.Event{Kind: task.EventLeaseExpire, Stage: "segments", Shards: "9", NodeName: "mini-2", Reason: "lease ended unrenewed"})
				b.api.emit(f, task.Event{Kind: task.EventLeaseGrant, Stage: "segments", Shards: "9", NodeName: "nas"})
			})
		})
		time.AfterFunc(time.Second, func() { b.api.change(func() { b.api.end(video, -1) }) })
		b.expect(exitDone, "retry", "--wait", "transcode")
		frames := strings.Split(b.err.String(), "\x1b[J")
		golden(t, "bars.txt", strings.NewReplacer("\x1b[K", "", "\x1b", "ESC").Replace(frames[1]+"\n…\n"+frames[len(frames)-2]))
	})
}

func TestNews(t *testing.T) {
	n := newNews()
	for _, e := range []task.Event{
		{Kind: task.EventLeaseGrant, Stage: "a", Shards: "0-3", NodeName: "nas"},
		{Kind: task.EventLeaseRelease, Stage: "a", Shards: "0", NodeName: "nas", Reason: "exit 0"},
		{Kind: task.EventLeaseRelease, Stage: "a", Shards: "1", NodeName: "nas", Reason: "exit 1"},
		{Kind: task.EventCheckpoint, Stage: "a", Shards: "2", Seq: 5},
		{Kind: task.EventLeaseExpire, Stage: "a", Shards: "2", NodeName: "nas", Reason: "lease ended unrenewed"},
		{Kind: task.EventLeaseGrant, Stage: "a", Shards: "1-2", NodeName: "pc"},
		{Kind: task.EventLeaseRelease, Stage: "a", Shards: "3", NodeName: "nas", Reason: "exit 2"},
		{Kind: task.EventLeaseGrant, Stage: "a", Shards: "3", NodeName: "nas"},
		{Kind: task.EventShardState, Stage: "a", Shards: "1", From: "running", To: "failed", Reason: "exit 1 is permanent"},
		{Kind: task.EventLeaseRelease, Stage: "a", Shards: "2", NodeName: "pc", Reason: "cancelled"},
		// A shard that succeeded has no checkpoint to resume at when it is run once more.
		{Kind: task.EventCheckpoint, Stage: "b", Shards: "0", Seq: 9},
		{Kind: task.EventLeaseRelease, Stage: "b", Shards: "0", NodeName: "pc", Reason: "exit 0"},
		{Kind: task.EventLeaseExpire, Stage: "b", Shards: "0", NodeName: "pc", Reason: "lost"},
		{Kind: task.EventLeaseGrant, Stage: "b", Shards: "0", NodeName: "nas"},
		{Kind: task.EventLeaseRelease, Stage: "a", Shards: "3", NodeName: "nas", Reason: "exit 64"},
		{Kind: task.EventShardState, Stage: "a", Shards: "3", NodeName: "nas", From: "running", To: "failed", Reason: "exit 64 is permanent"},
	} {
		n.add(e)
	}
	want := []string{
		"a/1 moved nas → pc: exit 1",
		"a/2 moved nas → pc: lease ended unrenewed; resumes at checkpoint 5",
		"a/3 ended on nas: exit 2",
		"a/3 again on nas",
		"a/1 dead: exit 1 is permanent",
		"b/0 moved pc → nas: lost",
		"a/3 dead: exit 64 is permanent",
	}
	if got := n.take(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("have %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	if got := n.take(); len(got) != 0 {
		t.Errorf("told twice: %q", got)
	}
}

func TestEventCursor(t *testing.T) {
	var c eventCursor
	got := ""
	for _, e := range []task.Event{{Index: 5}, {Index: 5, N: 1}, {Index: 5, N: 1}, {Index: 5}, {Index: 4, N: 9}, {Index: 7}, {Index: 7, N: 1}} {
		if c.pass(e) {
			got += fmt.Sprintf("%d.%d ", e.Index, e.N)
		}
	}
	if got != "5.0 5.1 7.0 7.1 " {
		t.Errorf("passed: %s", got)
	}
}

// Who stops waiting for several jobs is told of those that still run.
func TestJobsThatHaveEndedDoNotGoOn(t *testing.T) {
	ids := []task.JobID{"a", "b", "c"}
	views := []task.JobView{{ID: "a", State: task.JobSucceeded}, {ID: "b", State: task.JobRunning}}
	if got := unended(ids, views); !slices.Equal(got, []task.JobID{"b", "c"}) {
		t.Errorf("%v", got)
	}
	if got := unended(ids[:1], views); len(got) != 1 {
		t.Errorf("the last one ended just now: %v", got)
	}
}

// A job of which nothing runs says why: after a moment, when the reason becomes another one, and every 30 s.
func TestWaitingIsNeverSilent(t *testing.T) {
	var w waits
	j := &task.JobView{ID: "a", State: task.JobRunning, Note: "retry in 9s: exit 4 on nas"}
	for _, x := range []struct {
		at   time.Duration
		note string
		runs int
		want string
	}{
		{0, "retry in 9s: exit 4 on nas", 0, ""},
		{1, "retry in 8s: exit 4 on nas", 0, ""},
		{2, "retry in 7s: exit 4 on nas", 0, "waits: retry in 7s: exit 4 on nas"},
		{3, "retry in 6s: exit 4 on nas", 0, ""},
		{4, "queue small is full: 1 of 1", 0, "waits: queue small is full: 1 of 1"},
		{33, "queue small is full: 1 of 1", 0, ""},
		{34, "queue small is full: 1 of 1", 0, "waits: queue small is full: 1 of 1"},
		{35, "", 1, ""},
		{70, "queue small is full: 1 of 1", 0, ""},
		{72, "queue small is full: 1 of 1", 0, "waits: queue small is full: 1 of 1"},
	} {
		j.Note, j.Shards.Running = x.note, x.runs
		if got := w.update(j, x.at*time.Second); got != x.want {
			t.Errorf("at %d s: %q, want %q", x.at, got, x.want)
		}
	}
	j.State = task.JobFailed
	if got := w.update(j, time.Hour); got != "" {
		t.Errorf("it has ended: %q", got)
	}
}
