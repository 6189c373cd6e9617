//go:build linux

package runner

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
)

func (b *bench) client(x task.ExecutionID) *TaskClient {
	b.tb.Helper()
	p := b.r.paths(x)
	c, err := NewTaskClient(func(name string) string {
		return map[string]string{"LANJOBS_SOCKET": p.socket, "LANJOBS_STOP": p.stop}[name]
	}, SystemClock())
	if err != nil {
		b.tb.Fatal(err)
	}
	b.tb.Cleanup(c.http.CloseIdleConnections)
	return c
}

func TestTaskClient(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x := b.sleeper()
	c, ctx := b.client(x), context.Background()
	if info, err := c.Info(ctx); err != nil || info.ExecutionID != x {
		t.Errorf("info %+v %v", info, err)
	}
	if _, ok, err := c.Checkpoint(ctx); ok || err != nil {
		t.Errorf("a checkpoint: %v %v", ok, err)
	}
	if seq, err := c.SaveCheckpoint(ctx, []byte("part 1")); seq != 1 || err != nil {
		t.Errorf("save: %d %v", seq, err)
	}
	if data, ok, err := c.Checkpoint(ctx); string(data) != "part 1" || !ok || err != nil {
		t.Errorf("checkpoint %q %v %v", data, ok, err)
	}
	if _, err := c.SaveCheckpoint(ctx, make([]byte, task.MaxCheckpointBytes+1)); !errors.Is(err, task.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if err := c.Progress(ctx, "3/10", "encoding"); err != nil || !slices.Equal(b.backend.progress, []string{"3/10 encoding"}) {
		t.Errorf("progress %q %v", b.backend.progress, err)
	}
	if l, err := c.Lease(ctx, time.Minute); err != nil || !l.Valid {
		t.Errorf("lease %+v %v", l, err)
	}
	if _, err := c.Lease(ctx, 2*time.Hour); !errors.Is(err, task.ErrStaleToken) || !strings.Contains(err.Error(), "are needed") {
		t.Errorf("not enough: %v", err)
	}
	if err := c.Output(ctx, "part0", "f.mkv"); err != nil || len(b.backend.outputs) != 1 {
		t.Errorf("output %v %v", b.backend.outputs, err)
	}
	b.backend.inputs = []Input{{3, "step", "1.5"}}
	if v, err := c.Input(ctx, "init.step"); err != nil || !slices.Equal(v, []string{"1.5"}) || b.backend.asked != `["init","step",false]` {
		t.Errorf("input %q %v, asked %s", v, err, b.backend.asked)
	}
	if v, err := c.Inputs(ctx, "init", true); err != nil || len(v) != 1 || b.backend.asked != `["init","",true]` {
		t.Errorf("inputs %v %v, asked %s", v, err, b.backend.asked)
	}
	if _, _, err := c.StateGet(ctx, "a b/c"); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("absent key: %v", err)
	}
	zero := uint64(0)
	if v, err := c.StatePut(ctx, "a b/c", []byte("x"), &zero); v != 1 || err != nil {
		t.Errorf("put: %d %v", v, err)
	}
	if _, err := c.StatePut(ctx, "a b/c", []byte("y"), &zero); !errors.Is(err, task.ErrConflict) {
		t.Errorf("put over another: %v", err)
	}
	if data, v, err := c.StateGet(ctx, "a b/c"); string(data) != "x" || v != 1 || err != nil {
		t.Errorf("get %q %d %v", data, v, err)
	}
	if err := c.Defer(ctx, 10*time.Minute); err != nil || b.backend.deferred != 10*task.Minute {
		t.Errorf("defer %d %v", b.backend.deferred, err)
	}
	b.backend.set(func(f *fakeBackend) { f.lost = true })
	if _, err := c.SaveCheckpoint(ctx, nil); !errors.Is(err, task.ErrStaleToken) {
		t.Errorf("lost: %v", err)
	}
	if _, err := NewTaskClient(func(string) string { return "" }, SystemClock()); !errors.Is(err, task.ErrInvalid) {
		t.Errorf("outside a task: %v", err)
	}
}

// The helper repeats while there is no leader, and while the node itself is away; not into the end of the lease.
func TestTaskClientRepeats(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c, ctx := b.client(b.sleeper()), context.Background()
	b.backend.set(func(f *fakeBackend) { f.noLeader = 2 })
	if seq, err := c.SaveCheckpoint(ctx, []byte("x")); seq != 1 || err != nil {
		t.Errorf("after two refusals: %d %v", seq, err)
	}
	b.backend.set(func(f *fakeBackend) { f.noLeader = 2 })
	zero := uint64(0)
	if v, err := c.StatePut(ctx, "k", []byte("x"), &zero); v != 1 || err != nil {
		t.Errorf("put after two refusals: %d %v", v, err)
	}
	b.backend.set(func(f *fakeBackend) { f.noLeader = 1 })
	if err := c.Output(ctx, "n", "v"); err != nil {
		t.Error(err)
	}
	// Each write has an id of its own and keeps it in its repeats.
	if r := b.backend.requests; len(r) != 4 || r[0] == "" || r[0] != r[1] || r[1] != r[2] || r[3] == "" || r[3] == r[2] {
		t.Errorf("request ids %q", r)
	}
	b.backend.set(func(f *fakeBackend) { f.noLeader, f.left = -1, 400*time.Millisecond })
	bounded, cancel := context.WithTimeout(ctx, untilBound)
	defer cancel()
	_, err := c.SaveCheckpoint(bounded, []byte("x"))
	if !errors.Is(err, task.ErrNoLeader) || !strings.Contains(err.Error(), "about to end") {
		t.Errorf("%v", err)
	}
	away, err := NewTaskClient(func(name string) string {
		return map[string]string{"LANJOBS_SOCKET": b.cfg.Dir + "/nobody", "LANJOBS_STOP": b.cfg.Dir + "/stop"}[name]
	}, SystemClock())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- away.Progress(ctx, "1/2", "") }()
	if err := os.WriteFile(b.cfg.Dir+"/stop", []byte("lease_lost\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, task.ErrNoLeader) || !strings.Contains(err.Error(), "told to stop") {
		t.Errorf("%v", err)
	}
}

// What a task has left behind hears that its attempt is over, and does not ask for ever.
func TestTaskClientOfAnAttemptThatHasEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, x := range []struct {
		dir  string
		want error
		text string
	}{
		{dir + "/gone", task.ErrStaleToken, "this attempt has ended"},
		{"", task.ErrNoLeader, "this is not inside a task"},
	} {
		c, err := NewTaskClient(func(name string) string {
			return map[string]string{"LANJOBS_SOCKET": dir + "/nobody", "LANJOBS_DIR": x.dir}[name]
		}, SystemClock())
		if err != nil {
			t.Fatal(err)
		}
		c.began = c.began.Add(-giveUpBefore)
		if _, err := c.SaveCheckpoint(context.Background(), []byte("x")); !errors.Is(err, x.want) || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%q: %v", x.dir, err)
		}
	}
}

// C34: what the save command reported is saved, with a restart of the agent in the middle too (TestAgentKilled).
func TestHelperCommandInsideATask(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x, e := b.run(script(`for i in 1 2 3; do ` + self(t) + ` task save $i; done; exit 1`))
	if got := b.log(x, "stdout"); got != "saved 1\nsaved 2\nsaved 3\n" || string(b.backend.checkpoint.Data) != "3" {
		t.Errorf("%+v %q, checkpoint %q", e.Outcome, b.log(x, ""), b.backend.checkpoint.Data)
	}
}

func TestTaskGuard(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	guard := self(t) + ` task guard `
	if x, e := b.run(script(guard + `sh -c 'echo moved; exit 5'`)); e.Outcome.ExitCode != 5 || b.log(x, "stdout") != "moved\n" {
		t.Errorf("%+v %q", e.Outcome, b.log(x, ""))
	}
	if x, e := b.run(script(guard + `sh -c 'kill -9 $$'`)); e.Outcome.ExitCode != 137 {
		t.Errorf("%+v %q", e.Outcome, b.log(x, ""))
	}
	spec, out := withOut(b, guard+`sh -c 'echo > "$OUT/ready"; sleep 60 & sleep 60; echo never'`)
	x := b.start(spec, far())
	b.until("ready", func() bool { return content(out+"/ready") != "" })
	b.backend.set(func(f *fakeBackend) { f.lost = true })
	if e := b.exit(x); e.Outcome.ExitCode != 7 || b.log(x, "stdout") != "" || !strings.Contains(b.log(x, "stderr"), "it was killed") {
		t.Errorf("%+v %q", e.Outcome, b.log(x, ""))
	}
	if x, e := b.run(script(guard + `echo never`)); e.Outcome.ExitCode != 7 || b.log(x, "stdout") != "" {
		t.Errorf("with a lost lease: %+v %q", e.Outcome, b.log(x, ""))
	}
}
