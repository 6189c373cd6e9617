package runner

import (
	"errors"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestDueAtDeadlines(t *testing.T) {
	d := task.Deadlines{Term: 100, Kill: 130, End: 140}
	for _, c := range []struct {
		name   string
		a      guarded
		now    task.Boot
		act    act
		reason task.StopReason
	}{
		{"early", guarded{deadlines: d}, 99, actNone, ""},
		{"term", guarded{deadlines: d}, 100, actTerm, task.StopLeaseLost},
		{"woke past the kill", guarded{deadlines: d}, 130, actKill, task.StopLeaseLost},
		{"time-out first", guarded{deadlines: d, timeoutAt: 50}, 50, actTerm, task.StopTimeout},
		{"stopping", guarded{deadlines: d, reason: task.StopCancel, stopKill: 120}, 119, actNone, ""},
		{"grace over", guarded{deadlines: d, reason: task.StopCancel, stopKill: 120}, 120, actKill, task.StopCancel},
		{"grace longer than the lease", guarded{deadlines: d, reason: task.StopCancel, stopKill: 900}, 130, actKill, task.StopLeaseLost},
		{"time-out while stopping", guarded{deadlines: d, reason: task.StopCancel, stopKill: 120, timeoutAt: 50}, 60, actNone, ""},
		{"killing", guarded{deadlines: d, killing: true}, 999, actNone, ""},
	} {
		if act, reason := c.a.due(c.now); act != c.act || reason != c.reason {
			t.Errorf("%s: %v %q, want %v %q", c.name, act, reason, c.act, c.reason)
		}
		// nextDue must never lie behind a moment at which due says something.
		if act, _ := c.a.due(c.a.nextDue() - 1); act != actNone && c.a.nextDue() > c.now {
			t.Errorf("%s: due before nextDue %d", c.name, c.a.nextDue())
		}
	}
}

func TestFirstReasonAndShortestGraceCount(t *testing.T) {
	g := &guard{clock: SystemClock(), wake: make(chan struct{}, 1)}
	a := &guarded{} // not started: nothing to be signalled yet
	now := g.clock.Boot()
	g.stop(a, task.StopDrain, time.Hour)
	g.stop(a, task.StopCancel, time.Minute)
	g.stop(a, task.StopTimeout, 2*time.Hour)
	if left := a.stopKill.Sub(now); a.reason != task.StopDrain || left < time.Minute || left > 2*time.Minute {
		t.Errorf("reason %s, killed in %s", a.reason, left)
	}
	a = &guarded{done: partMain}
	if g.stop(a, task.StopCancel, 0); a.reason != "" {
		t.Error("what ended by itself was said to be stopped")
	}
}

func TestOutcomeOf(t *testing.T) {
	for _, c := range []struct {
		e    exitRecord
		end  task.End
		text string
	}{
		{exitRecord{}, task.EndExited, ""},
		{exitRecord{Code: 137, OOM: true}, task.EndExited, "the kernel killed one of its processes: out of memory"},
		{exitRecord{Code: -1073741819}, task.EndExited, ""},
		{exitRecord{Signal: 11}, task.EndSignal, "killed by signal 11"},
		{exitRecord{Signal: 9, OOM: true}, task.EndOutOfMemory, "killed by signal 9 (out of memory)"},
		{exitRecord{Code: 127, StartError: "no"}, task.EndStartFailed, "no"},
		{exitRecord{Signal: 9, Reason: task.StopTimeout}, task.EndTimeout, "stopped: timeout"},
		{exitRecord{Reason: task.StopCancel}, task.EndCancelled, "stopped: cancel"},
		{exitRecord{Reason: task.StopFenced}, task.EndLeaseLost, "stopped: fenced"},
		{exitRecord{GuardDied: true}, task.EndLeaseLost, "its guard process died, so it was killed"},
		{exitRecord{Survivors: []int{7}}, task.EndExited, "processes that do not die: [7]"},
	} {
		if o := outcomeOf(&c.e); o.End != c.end || o.Message != c.text || o.ExitCode != c.e.Code || o.Signal != c.e.Signal {
			t.Errorf("%+v: %+v", c.e, o)
		}
	}
	violation := int64(0xC0000005) // more than an int of a 32-bit machine holds
	if o := outcomeOf(&exitRecord{Code: int(violation)}); o.ExitCode != -1073741819 {
		t.Errorf("an access violation on Windows: exit code %d", o.ExitCode)
	}
	long := outcomeOf(&exitRecord{StartError: strings.Repeat("ä ", 400)}).Message
	if len(long) > task.MaxMessageLength || strings.Contains(long, "\ufffd") {
		t.Errorf("message of %d bytes", len(long))
	}
}

func TestParseOutputs(t *testing.T) {
	many := strings.Repeat("a", task.MaxOutputBytes)
	for _, c := range []struct {
		in   string
		want []task.KV
		err  error
		text string
	}{
		{"", nil, nil, ""},
		{"a=1\n\nb=x=y\r\na=2", []task.KV{{Name: "a", Value: "2"}, {Name: "b", Value: "x=y"}}, nil, ""},
		{"a=" + many, []task.KV{{Name: "a", Value: many}}, nil, ""},
		{"a=" + many + "b", nil, task.ErrTooLarge, "line 1: output a has 4097 bytes"},
		{"ok=1\nnonsense\n", nil, nil, `line 2 is not name=value: "nonsense"`},
		{"a b=1", nil, task.ErrInvalid, `output name "a b"`},
		{"=1", nil, task.ErrInvalid, `output name ""`},
		{"a=\xff", nil, task.ErrInvalid, "is not UTF-8 text"},
		{strings.Repeat("0", 64) + "=1", nil, task.ErrInvalid, "at most 63"},
	} {
		got, err := parseOutputs([]byte(c.in))
		if !slices.Equal(got, c.want) || (err == nil) != (c.text == "") || c.err != nil && !errors.Is(err, c.err) ||
			err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%.40q: %v, %v", c.in, got, err)
		}
	}
	var b strings.Builder
	for i := range 17 {
		b.WriteString("k" + itoa(i) + "=" + many + "\n")
	}
	if _, err := parseOutputs([]byte(b.String())); err == nil || !strings.Contains(err.Error(), "at most 65536") {
		t.Errorf("68 KiB of outputs: %v", err)
	}
}

func TestSplitItem(t *testing.T) {
	for item, want := range map[string]itemParts{
		"":              {},
		"a.mov":         {".", "a.mov", "a"},
		"in/sub/a.b.mp": {"in/sub", "a.b.mp", "a.b"},
		"/a":            {"/", "a", "a"},
		".bashrc":       {".", ".bashrc", ".bashrc"},
		"dir.d/x":       {"dir.d", "x", "x"},
		"customer 7":    {".", "customer 7", "customer 7"},
	} {
		if got := splitItem(item); got != want {
			t.Errorf("%q: %+v, want %+v", item, got, want)
		}
	}
}

func TestBaseEnvWithoutAnyEnvironment(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("passes on what there is")
	}
	got := map[string]string{}
	for _, kv := range baseEnv(func(string) string { return "" }) {
		got[kv.Name] = kv.Value
	}
	for _, name := range []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR"} {
		if got[name] == "" {
			t.Errorf("%s is empty", name)
		}
	}
	if !strings.HasSuffix(got["LANG"], "UTF-8") || utf8Locale("de_DE.utf8") != "de_DE.utf8" || !strings.HasSuffix(utf8Locale("C"), "UTF-8") {
		t.Errorf("LANG=%s", got["LANG"])
	}
}

func TestProgressText(t *testing.T) {
	for body, want := range map[string]string{
		"40%": "40%", "3/10": "3/10", "done=3&total=10": "3/10", "percent=40": "40%", "done=7": "7", "done=3&total=10&text=a+b": "3/10 a b",
		"3/10 encoding\n": "3/10 encoding", "a & b = c": "a & b = c", "": "", "text=": "", strings.Repeat("x", 600): strings.Repeat("x", 512),
	} {
		got, err := progressText(body)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", body, got, err)
		}
	}
}

func TestParseIfMatch(t *testing.T) {
	for _, c := range []struct {
		match, none string
		want        any
	}{{"", "", nil}, {`"7"`, "", uint64(7)}, {"7", "", uint64(7)}, {"", "*", uint64(0)}, {`"0"`, "", uint64(0)}, {"*", "", false}, {"x", "", false}} {
		h := http.Header{}
		if c.match != "" {
			h.Set("If-Match", c.match)
		}
		if c.none != "" {
			h.Set("If-None-Match", c.none)
		}
		v, err := parseIfMatch(h)
		var got any
		if err != nil {
			got = false
		} else if v != nil {
			got = *v
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
	for body, want := range map[string]task.Millis{"10m": 10 * task.Minute, "wait=1h\n": task.Hour, "90s": 90 * task.Second, "10": -1, "-5s": -1, "9999h": -1} {
		if got, err := parseWait(body); (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: %v %v", body, got, err)
		}
	}
}

func TestLastLines(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{{"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc", 1, "c"}, {"a\n", 5, "a\n"}, {"", 3, ""}, {"\n\n\n", 2, "\n\n"}} {
		if got := string(lastLines([]byte(c.in), c.n)); got != c.want {
			t.Errorf("%q %d: %q", c.in, c.n, got)
		}
	}
}

func TestExpendableLogs(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	logs := []keptLog{{x: "x1", bytes: 10, last: now.Add(-3 * time.Hour)}, {x: "x2", bytes: 10, last: now}, {x: "x3", bytes: 10, last: now.Add(-time.Hour)}}
	names := func(ls []keptLog) (out []task.ExecutionID) {
		for _, l := range ls {
			out = append(out, l.x)
		}
		return out
	}
	if got := names(expendable(logs, 20, now, 24*time.Hour)); !slices.Equal(got, []task.ExecutionID{"x1"}) {
		t.Errorf("by size: %v", got)
	}
	if got := names(expendable(logs, 1000, now, 30*time.Minute)); !slices.Equal(got, []task.ExecutionID{"x3", "x1"}) {
		t.Errorf("by age: %v", got)
	}
	// A clock that shows 2099 now or showed it once, and one that showed 1970.
	for _, off := range []time.Duration{73 * 365 * 24 * time.Hour, 0} {
		l := slices.Concat(logs, []keptLog{{x: "x0", bytes: 10, last: now.Add(-60 * 365 * 24 * time.Hour)}})
		if off == 0 {
			l = append(l, keptLog{x: "x4", bytes: 10, last: now.Add(73 * 365 * 24 * time.Hour)})
		}
		if got := names(expendable(l, 1000, now.Add(off), 24*time.Hour)); len(got) != 0 {
			t.Errorf("a clock that is off by %s takes %v", off, got)
		}
		if got := names(expendable(l, 1000, now.Add(off), 2*time.Hour)); !slices.Equal(got, []task.ExecutionID{"x1"}) {
			t.Errorf("older than the others by more than the age, clock off by %s: %v", off, got)
		}
	}
}

func TestClock(t *testing.T) {
	c := SystemClock()
	b, a := c.Boot(), c.Awake()
	timer := c.NewTimer(time.Hour)
	if !timer.Reset(2 * time.Millisecond) {
		t.Error("the timer had fired")
	}
	<-timer.C()
	if timer.Stop() {
		t.Error("the timer had not fired")
	}
	if d := c.Boot().Sub(b); d < time.Millisecond || d > time.Minute {
		t.Errorf("boot clock went %s", d)
	}
	if d := c.Awake() - a; d < time.Millisecond || d > time.Minute {
		t.Errorf("awake clock went %s", d)
	}
	if task.Boot(c.Awake()) > c.Boot() {
		t.Error("awake longer than running")
	}
}

// A reader that splits at line ends and tabs gets shard and name on every line, also of a value with several.
func TestInputLines(t *testing.T) {
	in := []Input{{Shard: 0, Name: "parts", Value: "a\nb c"}, {Shard: 2, Name: "parts", Value: ""}}
	for _, c := range []struct {
		name    string
		missing bool
		want    string
	}{{"", false, "0\tparts\ta\n0\tparts\tb c\n2\tparts\t\n"}, {"parts", false, "a\nb c\n\n"}, {"", true, "0\n2\n"}} {
		if got := inputLines(in, c.name, c.missing); got != c.want {
			t.Errorf("%q, missing %v: %q, want %q", c.name, c.missing, got, c.want)
		}
	}
}
