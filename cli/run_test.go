package cli

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/task"
)

// TestRunInside: without a node the job runs in this process, and its end is the command's.
func TestRunInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.up = false
		b.write("job.yaml", helloFile)
		b.api.onSubmit = b.api.play(-1)
		b.expect(exitDone, "run", "job.yaml")
		if b.out.String() != "first of 0\nlast of 0" || b.err.String() != "" {
			t.Errorf("stdout %q, stderr %q", b.out, b.err)
		}
		cfg := b.inside.cfg
		if !cfg.Embedded || cfg.DataDir != b.w.nodes.config().DataDir+"-run" || cfg.Exe != b.w.exe || cfg.Version != "1.4.0" {
			t.Errorf("config %+v", cfg)
		}
		if !b.inside.stopped || len(b.launched) > 0 {
			t.Errorf("node stopped: %t, launched: %q", b.inside.stopped, b.launched)
		}
		b.write("score.yaml", scoreFile)
		b.api.onSubmit = b.api.play(3)
		b.expect(exitBad, "run", "score.yaml")
		lines := strings.Split(b.out.String(), "\n")
		slices.Sort(lines)
		if len(lines) != 9 || lines[1] != "main/0 | first of 0" {
			t.Errorf("output %q", lines)
		}
		b.wants("stderr", b.err.String(), "lanjobs: score j000002 failed: 1 of 4 shards dead.")
		if strings.Contains(b.err.String(), "retry") {
			t.Errorf("names a command that nobody would answer: %s", b.err)
		}
	})
}

// TestRunInsideWaits: a job is handed in when its machine is there, or it would be told that nobody can run it.
func TestRunInsideWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.up = false
		b.write("job.yaml", helloFile)
		b.api.view.Nodes[0].State = "silent"
		time.AfterFunc(2*time.Second, func() { b.api.change(func() { b.api.view.Nodes[0].State = "ready" }) })
		start, submitted := time.Now(), time.Duration(0)
		b.api.onSubmit = func(j *fakeJob) {
			submitted = time.Since(start)
			b.api.play(-1)(j)
		}
		b.expect(exitDone, "run", "job.yaml")
		if submitted < 2*time.Second {
			t.Errorf("submitted after %s", submitted)
		}
		b.api.view.Nodes[0].State = "silent"
		b.expect(exitUnreachable, "run", "job.yaml")
	})
}

// TestRunBesideAnother: two runs at the same time use two folders.
func TestRunBesideAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.up = false
		b.write("job.yaml", helloFile)
		dir := b.w.nodes.config().DataDir + "-run"
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		unlock, free, err := lockFile(dir + "/run.lock")
		if err != nil || !free {
			t.Fatal(free, err)
		}
		b.api.onSubmit = b.api.play(-1)
		b.expect(exitDone, "run", "job.yaml")
		if b.inside.cfg.DataDir != dir+"-2" {
			t.Errorf("in %s", b.inside.cfg.DataDir)
		}
		unlock()
		b.expect(exitDone, "run", "job.yaml")
		if b.inside.cfg.DataDir != dir {
			t.Errorf("in %s", b.inside.cfg.DataDir)
		}
	})
}

// TestRunInsideInterrupted: Ctrl-C cancels the job, waits for its tasks, stops the node.
func TestRunInsideInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.up = false
		b.write("job.yaml", helloFile)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(errInterrupted) })
		if code := b.runCtx(ctx, "run", "job.yaml"); code != exitInterrupted {
			t.Errorf("exit %d: %s", code, b.err)
		}
		b.wants("stderr", b.err.String(), "lanjobs: hello was stopped.")
		if j := b.api.jobs[0]; j.view.State != task.JobCancelled || !b.inside.stopped || b.inside.atOnce {
			t.Errorf("job %s, node stopped %t", j.view.State, b.inside.stopped)
		}
	})
}

// TestRunInsideKilled: the second Ctrl-C waits for nothing.
func TestRunInsideKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.up = false
		b.write("job.yaml", helloFile)
		again := make(chan struct{})
		b.w.again = again
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { b.api.change(func() { b.api.leader = false }); cancel(errInterrupted) })
		time.AfterFunc(5*time.Second, func() { close(again) })
		start := time.Now()
		if code := b.runCtx(ctx, "run", "job.yaml"); code != exitInterrupted {
			t.Errorf("exit %d: %s", code, b.err)
		}
		if took := time.Since(start); took > 6*time.Second || !b.inside.atOnce {
			t.Errorf("took %s, told to stop at once: %t", took, b.inside.atOnce)
		}
	})
}

// TestRunInsideBreaks: a node that breaks takes the job with it, and its reason is the command's.
func TestRunInsideBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.up = false
		b.write("job.yaml", helloFile)
		time.AfterFunc(3*time.Second, func() { b.breakDown() })
		b.expect(exitBad, "run", "job.yaml")
		b.wants("stderr", b.err.String(), "the node in this process ended: disk full")
	})
}

// TestRunInsideClears: what a killed run left is stopped, not run again.
func TestRunInsideClears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.up = false
		old := b.api.add(task.Spec{Name: "old"})
		b.write("job.yaml", helloFile)
		b.api.onSubmit = b.api.play(-1)
		b.expect(exitDone, "run", "job.yaml")
		b.wants("stderr", b.err.String(), "lanjobs: old j000001, left by an earlier run, is stopped.")
		if old.view.State != task.JobCancelled {
			t.Errorf("old job is %s", old.view.State)
		}
	})
}

func TestRunHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.write("score.yaml", scoreFile)
		b.api.onSubmit = b.api.play(-1)
		b.expect(exitDone, "run", "score.yaml")
		if b.inside != nil || strings.Count(b.out.String(), "\n") != 8 {
			t.Errorf("inside: %v, output %q", b.inside, b.out)
		}
		b.wants("stderr", b.err.String(), "score succeeded: 4/4 in 1s")
		ctx, cancel := context.WithCancelCause(t.Context())
		b.api.onSubmit = nil
		time.AfterFunc(3*time.Second, func() { cancel(errInterrupted) })
		if code := b.runCtx(ctx, "run", "score.yaml"); code != exitInterrupted || b.api.jobs[1].view.State.Final() {
			t.Errorf("exit %d, job %s", code, b.api.jobs[1].view.State)
		}
		b.wants("stderr", b.err.String(), "job j000002 goes on")
		b.expect(exitDone, "run", "--detach", "score.yaml")
		if b.out.String() != "j000003\n" {
			t.Errorf("output %q", b.out)
		}
	})
}

// quick is the spec that a quick command line makes.
func quick(t *testing.T, b *bench, line ...string) *task.Spec {
	t.Helper()
	b.expect(exitDone, append([]string{"run", "--detach"}, line...)...)
	var spec task.Spec
	if err := json.Unmarshal([]byte(b.api.requests[len(b.api.requests)-1].body), &spec); err != nil {
		t.Fatal(err)
	}
	return &spec
}

func TestRunQuick(t *testing.T) {
	b := newBench(t)
	spec := quick(t, b, "--", "/usr/bin/Echo.sh", "hi", "--wait", "{}")
	if st := spec.Stages[0]; spec.Name != "echo" || st.Workdir != b.w.dir || st.Shards != 1 || !slices.Equal(st.Command, []string{"/usr/bin/Echo.sh", "hi", "--wait", "{}"}) {
		t.Errorf("%s %+v", spec.Name, st)
	}
	spec = quick(t, b, "--shards", "5", "--require", "gpu=true,os in (linux,darwin)", "--on", "nas", "--workdir", "", "--", "x")
	if st := spec.Stages[0]; st.Shards != 5 || st.Workdir != "" || len(st.Require) != 3 || st.Require[1].String() != "os in (linux,darwin)" || st.Require[2].String() != "node=nas" {
		t.Errorf("%+v", st)
	}
	b.write("b.mov", "")
	b.write("a.mov", "")
	spec = quick(t, b, "--each", "*.mov", "--", "ffmpeg", "-i", "{}", "out/{/.}.mkv", "{//}:{/}:{#}", "{.}.x")
	want := []string{"ffmpeg", "-i", "${LANJOBS_ITEM}", "out/${LANJOBS_ITEM_STEM}.mkv", "${LANJOBS_ITEM_DIR}:${LANJOBS_ITEM_NAME}:${LANJOBS_SHARD}", "${LANJOBS_ITEM_DIR}/${LANJOBS_ITEM_STEM}.x"}
	if st := spec.Stages[0]; !slices.Equal(st.Items, []string{"a.mov", "b.mov"}) || !slices.Equal(st.Command, want) {
		t.Errorf("%q %q", st.Items, st.Command)
	}
	spec = quick(t, b, "--each", "*.mov", "--", "ls", "-l")
	if st := spec.Stages[0]; !slices.Equal(st.Command, []string{"ls", "-l", "${LANJOBS_ITEM}"}) {
		t.Errorf("%q", st.Command)
	}
}
