//go:build linux

package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
)

// three children as in C27: one plain, one that ignores SIGTERM, one in a session of its own; with a shell that dies of SIGTERM, or
// not. All tick into the file "ticks" of the working directory.
const family = `
tick() { while :; do echo "$1" >> "$OUT/ticks"; sleep 0.02 || :; done; }
tick plain &
(trap '' TERM; tick deaf) &
export OUT
setsid sh -c 'while :; do echo session >> "$OUT/ticks"; sleep 0.02 || :; done' &
`

func withOut(b *bench, text string) (*task.Spec, string) {
	b.tb.Helper()
	out := filepath.Join(b.cfg.Dir, "out"+itoa(int(b.tokens)))
	if err := os.Mkdir(out, 0o755); err != nil {
		b.tb.Fatal(err)
	}
	spec := script(text)
	spec.Stages[0].Env = []task.KV{{Name: "OUT", Value: out}}
	return spec, out
}

func content(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}

// silent checks that nobody writes to a file any more. The pause is the observation itself.
func silent(tb testing.TB, path string) {
	tb.Helper()
	before := content(path)
	time.Sleep(80 * time.Millisecond)
	if after := content(path); after != before {
		tb.Errorf("still ticking after the end: %q", strings.TrimPrefix(after, before))
	}
}

func TestTimeoutKillsTheWholeTree(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, change func(*Config)) {
		b := newBench(t, change)
		for name, main := range map[string]string{
			"shell dies of SIGTERM": `wait`,
			"shell ignores SIGTERM": `trap 'cat "$LANJOBS_STOP"' TERM; while :; do wait || :; done`,
		} {
			spec, out := withOut(b, family+main)
			x := b.start(spec, far())
			for _, who := range []string{"plain", "deaf", "session"} {
				b.until(who+" ticks", func() bool { return strings.Contains(content(out+"/ticks"), who) })
			}
			b.r.Stop(x, task.StopTimeout, 5000)
			if e := b.exit(x); e.Outcome.End != task.EndTimeout {
				t.Errorf("%s: %+v", name, e.Outcome)
			}
			b.nothingLeft(x)
			silent(t, out+"/ticks")
			if strings.Contains(name, "ignores") && b.log(x, "stdout") != "timeout\n" {
				t.Errorf("%s: handler saw %q", name, b.log(x, ""))
			}
		}
	})
}

// A daemon that forks twice, leaves the session and cleans its environment carries no mark at all.
func TestHiddenDaemonDiesWithItsAttempt(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, change func(*Config)) {
		b := newBench(t, change)
		for _, end := range []string{"exit 0", "sleep 60"} {
			spec, out := withOut(b, `
env -i OUT="$OUT" setsid sh -c '(while :; do echo hidden >> "$OUT/ticks"; sleep 0.02 || :; done) &'
until [ -s "$OUT/ticks" ]; do sleep 0.01; done
`+end)
			spec.Stages[0].Timeout = task.MillisOf(b.pace(500 * time.Millisecond))
			spec.Stages[0].Lease.StopGrace = 100
			if _, e := b.run(spec); end != "exit 0" && e.Outcome.End != task.EndTimeout {
				t.Errorf("%s: %+v", end, e.Outcome)
			}
			silent(t, out+"/ticks")
		}
	})
}

// What dies with one attempt is not another's, also where orphans of both are children of the guard.
func TestNeighboursDaemonLives(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, change func(*Config)) {
		b := newBench(t, change)
		spec, out := withOut(b, `
setsid sh -c '(echo $$ > "$OUT/pid"; while :; do echo daemon >> "$OUT/ticks"; sleep 0.02 || :; done) &'
read x < "$OUT/gate"`)
		mkfifo(t, out+"/gate")
		x := b.start(spec, far())
		b.until("daemon ticks", func() bool { return content(out+"/ticks") != "" })
		for range 3 {
			b.run(script(`sleep 60 & setsid sleep 60 & exit 0`))
		}
		before := content(out + "/ticks")
		b.until("daemon lives", func() bool { return len(content(out+"/ticks")) > len(before) })
		if err := os.WriteFile(out+"/gate", []byte("\n"), 0); err != nil {
			t.Fatal(err)
		}
		if e := b.exit(x); e.Outcome.ExitCode != 0 {
			t.Errorf("%+v", e.Outcome)
		}
		b.nothingLeft(x)
		silent(t, out+"/ticks")
	})
}

// C29: the end of the command's own process is the end, whatever it left behind.
func TestEndsWithItsOwnProcess(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, change func(*Config)) {
		b := newBench(t, change)
		for _, c := range []struct {
			text string
			code int
		}{
			{`sleep 300 & echo done; exit 0`, 0},
			{`sleep 300 & echo done; exit 3`, 3},
			{`(while :; do echo child; sleep 0.05; done) & echo done; exit 0`, 0},
			{`setsid sleep 300 & echo done; exit 0`, 0},
			{`(trap '' TERM HUP; sleep 300) & echo done`, 0},
		} {
			spec := script(c.text)
			x, e := b.run(spec) // which waits for a shorter time than its children sleep
			if e.Outcome.End != task.EndExited || e.Outcome.ExitCode != c.code || !strings.Contains(b.log(x, "stdout"), "done\n") {
				t.Errorf("%s: %+v, log %q", c.text, e.Outcome, b.log(x, ""))
			}
			b.nothingLeft(x)
		}
	})
}

// A stranger that holds the output pipe, which no search can connect with the attempt, delays its end by a moment only; what
// was written before is kept.
func TestStrangerHoldsThePipe(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec, out := withOut(b, `echo $$ > "$OUT/pid"; read x < "$OUT/gate"; yes line | head -n 5000; exit 4`)
	mkfifo(t, out+"/gate")
	x := b.start(spec, far())
	b.until("pid", func() bool { return strings.HasSuffix(content(out+"/pid"), "\n") })
	pipe, err := os.OpenFile("/proc/"+strings.TrimSpace(content(out+"/pid"))+"/fd/1", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if err := os.WriteFile(out+"/gate", []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	if e := b.exit(x); e.Outcome.ExitCode != 4 {
		t.Errorf("%+v", e.Outcome)
	}
	if got := b.log(x, "stdout"); got != strings.Repeat("line\n", 5000) {
		t.Errorf("%d bytes of output", len(got))
	}
}

func TestStopReasons(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct {
		reason task.StopReason
		grace  task.Millis
		end    task.End
		said   string
	}{
		{task.StopCancel, 60_000, task.EndCancelled, "cancel\n"},
		{task.StopTimeout, 60_000, task.EndTimeout, "timeout\n"},
		{task.StopStalled, 60_000, task.EndStalled, "stalled\n"},
		{task.StopLeaseLost, 60_000, task.EndLeaseLost, "lease_lost\n"},
		{task.StopDrain, 60_000, task.EndDrained, "drain\n"},
		{task.StopShutdown, 60_000, task.EndShutdown, "shutdown\n"},
		{task.StopFenced, 0, task.EndLeaseLost, ""},
	} {
		spec, out := withOut(b, `trap 'cat "$LANJOBS_STOP"; exit 0' TERM; echo > "$OUT/ready"; while :; do sleep 0.01 || :; done`)
		x := b.start(spec, far())
		b.until("ready", func() bool { return content(out+"/ready") != "" })
		b.r.Stop(x, c.reason, c.grace)
		b.r.Stop(x, task.StopDrain, 120_000) // a later, milder order changes nothing
		e := b.exit(x)
		if e.Outcome.End != c.end || b.log(x, "stdout") != c.said {
			t.Errorf("%s: %+v, said %q", c.reason, e.Outcome, b.log(x, ""))
		}
		if (e.Outcome.Signal == 9) != (c.grace == 0) {
			t.Errorf("%s: signal %d", c.reason, e.Outcome.Signal)
		}
		b.nothingLeft(x)
	}
}

func TestShorterGraceCounts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec, out := withOut(b, `trap '' TERM; echo > "$OUT/ready"; while :; do sleep 0.01 || :; done`)
	x := b.start(spec, far())
	b.until("ready", func() bool { return content(out+"/ready") != "" })
	b.r.Stop(x, task.StopDrain, 60_000)
	b.r.Stop(x, task.StopCancel, 50)
	if e := b.exit(x); e.Outcome.End != task.EndDrained || e.Outcome.Signal != 9 {
		t.Errorf("%+v", e.Outcome)
	}
}

func TestStopBeforeItStarts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run(command("true"))
	x := b.start(script(`echo never > "$LANJOBS_DIR/../never"; sleep 60`), far())
	b.r.Stop(x, task.StopCancel, 0)
	if e := b.exit(x); e.Outcome.End != task.EndCancelled {
		t.Errorf("%+v", e.Outcome)
	}
	b.nothingLeft(x)
	past := deadlinesIn(-time.Second, -time.Millisecond)
	x = b.start(script(`echo ran`), past)
	if e := b.exit(x); e.Outcome.End != task.EndLeaseLost {
		t.Errorf("lapsed before its start: %+v", e.Outcome)
	}
	if _, err := readLogPiece(b.r.logDir(), LogQuery{Execution: x}, streamBoth); err == nil {
		t.Error("it ran")
	}
}

// I2 in quiet times: SIGTERM at Term, SIGKILL at Kill, and a renewal moves both.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run(command("true"))
	spec, out := withOut(b, `trap 'cut -d " " -f 1 /proc/uptime > "$OUT/term"; cat "$LANJOBS_STOP"' TERM; `+self(t)+` stamp "$OUT/stamps" & while :; do wait || :; done`)
	d := deadlinesIn(5*time.Second, 5500*time.Millisecond)
	x := b.start(spec, d)
	b.until("stamps", func() bool { return content(out+"/stamps") != "" })
	after := func(by time.Duration) task.Deadlines { // Kill is as far from Term as a busy machine needs for the trap
		return task.Deadlines{Term: d.Kill.Add(by), Kill: d.Kill.Add(by + 3*time.Second), End: d.Kill.Add(by + 5*time.Second)}
	}
	later := after(500 * time.Millisecond)
	b.r.Extend(x, later)
	b.r.Extend(x, after(-2*time.Second)) // a late acknowledgement shortens nothing
	e := b.exit(x)
	if e.Outcome.End != task.EndLeaseLost || e.Outcome.Signal != 9 || b.log(x, "stdout") != "lease_lost\n" {
		t.Errorf("%+v %q", e.Outcome, b.log(x, ""))
	}
	up, err := strconv.ParseFloat(strings.TrimSpace(content(out+"/term")), 64)
	if err != nil {
		t.Fatal(err)
	}
	if at := task.Boot(up * float64(time.Second)); at < later.Term.Add(-20*time.Millisecond) {
		t.Errorf("SIGTERM %s before its time", later.Term.Sub(at))
	}
	stamps := stampsIn(t, out+"/stamps")
	if last := stamps[len(stamps)-1]; last < later.Term {
		t.Errorf("killed %s before SIGTERM was due", later.Term.Sub(last))
	}
	soonDead(t, stamps, later.Kill)
}

func TestManyAtOnceEndOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var xs []task.ExecutionID
	for i := range 200 {
		xs = append(xs, b.start(script(fmt.Sprintf(`echo %d; [ %d -lt 190 ]`, i, i)), far()))
	}
	for i, x := range xs {
		e := b.exit(x)
		if got := b.log(x, ""); got != itoa(i)+"\n" {
			t.Errorf("%d: log %q", i, got)
		}
		if failed := e.Outcome.ExitCode != 0; failed != (i >= 190) || failed && e.Outcome.Tail != itoa(i)+"\n" {
			t.Errorf("%d: %+v", i, e.Outcome)
		}
		b.r.Forget(x)
	}
	if err := b.r.Start(&task.Assignment{Job: "j000001", Token: 5}, script("true"), far()); err != nil {
		t.Fatal(err)
	}
	if err := b.r.Start(&task.Assignment{Job: "j000001", Token: 5}, script("true"), far()); err == nil {
		t.Error("one execution was started twice")
	}
}

// The guard itself told to end, as at a shutdown of the machine: everything is told to stop, with the job's own grace.
func TestGuardToldToEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec, out := withOut(b, `trap 'cat "$LANJOBS_STOP"; exit 5' TERM; echo > "$OUT/ready"; while :; do sleep 0.01 || :; done`)
	x := b.start(spec, far())
	b.until("ready", func() bool { return content(out+"/ready") != "" })
	for _, pid := range guardPids(b.cfg.Dir) {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	if e := b.exit(x); e.Outcome.End != task.EndShutdown || b.log(x, "stdout") != "shutdown\n" {
		t.Errorf("%+v %q", e.Outcome, b.log(x, ""))
	}
	b.until("the agent knows", func() bool { b.r.mu.Lock(); defer b.r.mu.Unlock(); return len(b.r.links) == 0 })
	if _, e := b.run(script("true")); e.Outcome.End != task.EndExited {
		t.Errorf("after it: %+v", e.Outcome)
	}
}
