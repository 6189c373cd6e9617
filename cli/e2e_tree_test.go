//go:build e2e && linux

package cli_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
)

// family starts a plain child, one that ignores SIGTERM, and one in a session of its own; all tick.
const family = `say start
tick() { while :; do say tick "$1"; sleep 0.1; done; }
tick plain &
( trap '' TERM; tick stubborn ) &
setsid sh -c 'while :; do echo "tick $LANJOBS_JOB_NAME $LANJOBS_EXECUTION_ID $LANJOBS_FENCE 0 1 $LANJOBS_NODE $$ session" > "$LEDGER"; sleep 0.1; done' &
wait
`

// TestProcKillTree: a time-out and a cancel end all that a command has started, and the slot is free at once (C27).
func TestProcKillTree(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.found("a")
	n := l.nodes[0]
	id := l.submit(n, l.file("late", lease(longLease)+"\ntimeout: 3s\nstop_grace: 2s\nretry: {attempts: 1}", family))
	l.ends(n, id, task.JobFailed, 30*time.Second)
	late := l.dead(n, "late")
	if as := l.attempts(n, id); len(as) != 1 || !strings.Contains(as[0].State+as[0].Reason, "time") {
		t.Errorf("attempts %+v: want one that timed out", as)
	}
	id = l.submit(n, l.file("unwanted", lease(longLease), family))
	l.starts("unwanted", 1, 20*time.Second)
	l.waitFor(10*time.Second, "all three tick", func() bool {
		seen := map[string]bool{}
		for _, e := range l.ledger.of("unwanted", "tick") {
			seen[e.note] = true
		}
		return len(seen) == 3
	})
	l.want(n, 0, "", "cancel", "unwanted", "--grace", "2s")
	l.ends(n, id, task.JobCancelled, 30*time.Second)
	unwanted := l.dead(n, "unwanted")
	l.ends(n, l.submit(n, l.file("next", "", "say start")), task.JobSucceeded, 20*time.Second)
	for job, end := range map[string]int{"late": late, "unwanted": unwanted} {
		if more := l.ledger.since(end, job); len(more) > 0 {
			t.Errorf("%s acted after its end: %+v", job, more)
		}
	}
}

// dead checks that nothing lives of a job that is over, and gives the place in the ledger after which it may say nothing more.
func (l *lab) dead(n *member, job string) (end int) {
	l.t.Helper()
	if left := n.tasks(); len(left) > 0 {
		l.t.Errorf("%s: processes %v are left", job, left)
	}
	return l.ledger.mark(l.t)
}

// TestProcLeftoverChild: an attempt ends when its command does, whoever still holds its pipes (C29).
func TestProcLeftoverChild(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.found("a")
	n := l.nodes[0]
	for name, c := range map[string]struct {
		keys, script string
		want         task.JobState
		code         int
	}{
		"quiet":   {"", "sleep 300 & echo done; exit 0", task.JobSucceeded, 0},
		"failing": {"retry: {attempts: 1}", "sleep 300 & echo done; exit 3", task.JobFailed, 3},
		"chatty":  {"", "while :; do echo more; sleep 0.2; done & echo done; exit 0", task.JobSucceeded, 0},
		"timed":   {"timeout: 60s", "setsid sleep 300 & echo done; exit 0", task.JobSucceeded, 0},
	} {
		id := l.submit(n, l.file(name, lease(longLease)+"\n"+c.keys, c.script))
		l.ends(n, id, c.want, 30*time.Second) // no wait is as long as what it leaves behind sleeps
		if as := l.attempts(n, id); len(as) != 1 || as[0].ExitCode == nil || *as[0].ExitCode != c.code {
			t.Errorf("%s: attempts %+v, want exit %d", name, as, c.code)
		}
		l.want(n, 0, "done", "logs", id)
		l.waitFor(5*time.Second, name+": nothing is left", func() bool { return len(n.tasks()) == 0 })
	}
}

// TestProcFastOutput: lines that come as fast as they can stay whole and in order, the last one is always there, and the node's
// memory does not grow with them (C31).
func TestProcFastOutput(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.found("a")
	n := l.nodes[0]
	l.ends(n, l.submit(n, l.file("first", "", "say start")), task.JobSucceeded, 20*time.Second)
	before := memory(n.pid()) + memory(n.guard())
	const lines = 100_000
	script := fmt.Sprintf(`say start
awk 'BEGIN { for (i = 1; i <= %d; i++) { print "out line " i " end"; print "err line " i " end" > "/dev/stderr" } }'
exit 3`, lines)
	id := l.submit(n, l.file("fast", lease(longLease)+"\nretry: {attempts: 1}", script))
	l.starts("fast", 1, 20*time.Second)
	l.cli(n, "", "logs", id) // a look while it runs does no harm
	l.ends(n, id, task.JobFailed, 60*time.Second)
	if as := l.attempts(n, id); len(as) != 1 || as[0].ExitCode == nil || *as[0].ExitCode != 3 {
		t.Errorf("attempts %+v, want exit 3", as)
	}
	grown := memory(n.pid()) + memory(n.guard()) - before
	out, diag, _ := l.cli(n, "", "logs", id)
	errs, diag2, _ := l.cli(n, "", "logs", id, "--stderr")
	checkLines(t, "out", out+diag, lines)
	checkLines(t, "err", errs+diag2, lines)
	if grown > 50<<10 {
		t.Errorf("agent and guard grew by %d MB", grown>>10)
	}
}

var numbered = regexp.MustCompile(`^(out|err) line ([0-9]+) end$`)

// checkLines wants one stream's lines whole, in order, and complete but for a gap that is marked.
func checkLines(t *testing.T, stream, text string, want int) {
	t.Helper()
	last, seen, strange := 0, 0, []string{}
	for line := range strings.Lines(text) {
		m := numbered.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			strange = append(strange, line)
			continue
		}
		if m[1] != stream {
			continue
		}
		i, _ := strconv.Atoi(m[2])
		if i <= last {
			t.Fatalf("%s: line %d after line %d", stream, i, last)
		}
		last, seen = i, seen+1
	}
	if last != want {
		t.Errorf("%s: the last line is %d, not %d", stream, last, want)
	}
	if seen < want && len(strange) == 0 || len(strange) > 3 {
		t.Errorf("%s: %d of %d lines, other lines: %.300q", stream, seen, want, strange)
	}
}

// memory is a process's resident set in KiB.
func memory(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			n, _ := strconv.Atoi(f[1])
			return n
		}
	}
	return 0
}
