//go:build linux

package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
)

func stalling(text string, after time.Duration) *task.Spec {
	s := script(text)
	s.Stages[0].StallTimeout = task.MillisOf(after)
	return s
}

func TestSilentAttemptIsStopped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	after := b.pace(time.Second)
	x, e := b.run(stalling(`trap 'cat "$LANJOBS_STOP"; exit 3' TERM; echo begun; sleep 600 & wait`, after))
	if o := e.Outcome; o.End != task.EndStalled || o.Message != "no output, progress or checkpoint for "+length(task.MillisOf(after)) {
		t.Errorf("%+v", o)
	}
	if e.Outcome.RunMillis < task.MillisOf(after) {
		t.Errorf("stopped after %d ms, allowed are %s", e.Outcome.RunMillis, after)
	}
	if v := task.DefaultRetry().Judge(e.Outcome); v != task.VerdictRetry {
		t.Errorf("verdict %v: a stall counts as an attempt", v)
	}
	if got := b.log(x, "stdout"); got != "begun\nstalled\n" {
		t.Errorf("output %q", got)
	}
	b.nothingLeft(x)
	deaf := stalling(`trap '' TERM; while :; do sleep 600 & wait; done`, after)
	deaf.Stages[0].Lease.StopGrace = 100
	if _, e := b.run(deaf); e.Outcome.End != task.EndStalled || e.Outcome.Signal != 9 {
		t.Errorf("one that ignores SIGTERM: %+v", e.Outcome)
	}
}

// Each of them alone keeps an attempt alive, over far more than the time allowed for silence.
func TestSignsOfLife(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	after := 2 * b.pace(2*time.Second)
	api := `api() { p=$1; shift; curl -fsS -o /dev/null --unix-socket "$LANJOBS_SOCKET" "http://task/v1/$p" "$@"; }; `
	var started []task.ExecutionID
	for _, sign := range []string{"echo x", "echo x >&2", "api checkpoint -T - < /dev/null", "api progress -d 40%", "api outputs/n -X PUT -d 1", "api range -X PUT -d 5"} {
		spec := stalling(api+`for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do `+sign+`; sleep "$STEP"; done`, after)
		spec.Stages[0].Env = []task.KV{{Name: "STEP", Value: fmt.Sprintf("%.3f", after.Seconds()/8)}}
		a := b.assignment()
		a.Of, a.Range = 1, &task.ShardRange{End: 10}
		started = append(started, b.startAs(a, spec, far()))
	}
	for i, x := range started {
		if e := b.exit(x); e.Outcome.End != task.EndExited || e.Outcome.ExitCode != 0 {
			t.Errorf("sign %d: %+v %q", i, e.Outcome, b.log(x, ""))
		}
	}
}

// The guard needs no agent for it, and a later agent hears of it.
func TestStallSurvivesTheAgent(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	pace := newBench(t).pace(300 * time.Millisecond)
	first := newAgent(t, p.dir)
	spec := p.spec(`echo $$ > "$OUT/pid"; sleep 600`)
	spec.Stages[0].StallTimeout = task.MillisOf(pace)
	x := first.start(&task.Assignment{Job: "j000001", Attempt: 1, Token: 9}, spec, far())
	p.wait("pid")
	first.kill()
	second := newAgent(t, p.dir)
	if e := second.exit(x); e.Outcome.End != task.EndStalled || !strings.Contains(e.Outcome.Message, "no output") {
		t.Errorf("%+v", e.Outcome)
	}
}

// Time in which the guard was frozen too counts for nobody.
func TestFrozenTimeIsNoStall(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	pace := newBench(t).pace(1250 * time.Millisecond)
	stall := pollGap + 4*pace
	a := newAgent(t, p.dir)
	spec := p.spec(`echo $$ > "$OUT/pid"; until [ -e "$OUT/gate" ]; do sleep 0.02; done`)
	spec.Stages[0].StallTimeout = task.MillisOf(stall)
	x := a.start(&task.Assignment{Job: "j000001", Attempt: 1, Token: 9}, spec, far())
	p.wait("pid")
	guard := p.guard()
	p.signal(guard, syscall.SIGSTOP)
	time.Sleep(stall + pollGap) // the freeze itself
	p.signal(guard, syscall.SIGCONT)
	time.Sleep(4 * pollInterval) // the guard has looked again
	if err := os.WriteFile(filepath.Join(p.out, "gate"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if e := a.exit(x); e.Outcome.End != task.EndExited {
		t.Errorf("%+v", e.Outcome)
	}
}

func TestStalledIsCountedOnTheAwakeClock(t *testing.T) {
	g := &guard{clock: SystemClock(), held: map[task.ExecutionID]*guarded{}}
	a := &guarded{x: "x1", launch: launch{StallTimeout: 10 * task.Second}, heard: time.Minute}
	g.held[a.x] = a
	check := func(name string, awake time.Duration, want bool) {
		t.Helper()
		if got := a.stalled(awake); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	check("in time", time.Minute+10*time.Second-1, false)
	check("silent", time.Minute+10*time.Second, true)
	g.pardon(5 * time.Second)
	check("pardoned", time.Minute+15*time.Second-1, false)
	check("silent all the same", time.Minute+15*time.Second, true)
	g.handle(nil, &message{Op: opAlive, X: a.x})
	check("sign of life", g.clock.Awake()+time.Second, false)
	a.reason = task.StopCancel
	check("stopping", 1<<60, false)
	a.reason, a.launch.StallTimeout = "", 0
	check("no stall_timeout", 1<<60, false)
}
