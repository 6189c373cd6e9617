//go:build e2e && linux

package cli_test

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ledger is a collector outside the cluster: a FIFO that tasks write one short line per event to. It stamps the time itself, so
// that nobody's clock matters, and a line is shorter than what a pipe takes in one piece.
type ledger struct {
	path  string
	pipe  *os.File
	done  chan struct{}
	mu    sync.Mutex
	lines []entry
	marks int
}

// entry is one line. The names are those that the product hands to a command.
type entry struct {
	at      time.Time
	event   string // start, tick, saved, end …
	job     string
	exec    string
	fence   uint64
	shard   int
	attempt int
	node    string
	pid     int
	note    string
}

// say is the shell function by which tasks write to the ledger.
const say = `say() { e=$1; shift; echo "$e $LANJOBS_JOB_NAME $LANJOBS_EXECUTION_ID $LANJOBS_FENCE $LANJOBS_SHARD $LANJOBS_ATTEMPT $LANJOBS_NODE $$ $*" > "$LEDGER"; }
`

func openLedger(t *testing.T, path string) *ledger {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	// Open for both, so that there is always a reader and always a writer: no task waits, no end of file comes.
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	l := &ledger{path: path, pipe: pipe, done: make(chan struct{})}
	go l.collect()
	return l
}

func (l *ledger) collect() {
	defer close(l.done)
	for lines := bufio.NewScanner(l.pipe); lines.Scan(); {
		f := strings.SplitN(lines.Text(), " ", 9)
		if len(f) < 8 {
			continue
		}
		e := entry{at: time.Now(), event: f[0], job: f[1], exec: f[2], node: f[6]}
		e.fence, _ = strconv.ParseUint(f[3], 10, 64)
		e.shard, _ = strconv.Atoi(f[4])
		e.attempt, _ = strconv.Atoi(f[5])
		e.pid, _ = strconv.Atoi(f[7])
		if len(f) == 9 {
			e.note = f[8]
		}
		l.mu.Lock()
		l.lines = append(l.lines, e)
		l.mu.Unlock()
	}
}

func (l *ledger) close() {
	_ = l.pipe.Close()
	<-l.done
}

// of gives the lines of a job with one of the events, or all of its lines.
func (l *ledger) of(job string, events ...string) []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []entry
	for _, e := range l.lines {
		if e.job == job && (len(events) == 0 || slices.Contains(events, e.event)) {
			out = append(out, e)
		}
	}
	return out
}

func (l *ledger) count(job, event string) int { return len(l.of(job, event)) }

// mark writes a line of the test's own and waits until it has come through the pipe: its place is between what was said before and
// what is said from now on.
func (l *ledger) mark(t *testing.T) (place int) {
	t.Helper()
	l.mu.Lock()
	l.marks++
	name := fmt.Sprintf("mark-%d", l.marks)
	l.mu.Unlock()
	if _, err := fmt.Fprintf(l.pipe, "mark %s - 0 0 0 - 0\n", name); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		place = slices.IndexFunc(l.lines, func(e entry) bool { return e.job == name })
		l.mu.Unlock()
		if place >= 0 {
			return place
		}
		if time.Now().After(end) {
			t.Fatalf("not within %s: a line of the test's own comes through the ledger", patience)
		}
	}
}

// since gives the lines of a job after a mark.
func (l *ledger) since(mark int, job string) []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []entry
	for _, e := range l.lines[mark:] {
		if e.job == job {
			out = append(out, e)
		}
	}
	return out
}

// soonDead checks an execution that should not have outlived its lease: it acts a few more times from a mark on, as it is killed at
// once. Its acts are counted, not timed: they are as slow as its machine.
func (l *ledger) soonDead(t *testing.T, mark int, job, exec string) {
	t.Helper()
	acts := 0
	for _, e := range l.since(mark, job) {
		if e.exec == exec {
			acts++
		}
	}
	if acts > 40 { // 2 s of its ticks
		t.Errorf("%s: %s acted %d more times", job, exec, acts)
	}
}

// text is for a failed test: of ticks and saves of an execution only those before something else are shown.
func (l *ledger) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	dull := func(e entry) bool { return e.event == "tick" || e.event == "saved" }
	next := map[string]entry{} // the next line of the same execution and kind
	shown := make([]bool, len(l.lines))
	for i, e := range slices.Backward(l.lines) {
		n, more := next[e.exec+e.event]
		shown[i] = !dull(e) || !more || n.at.Sub(e.at) > time.Second
		next[e.exec+e.event] = e
	}
	for i, e := range l.lines {
		if !shown[i] {
			continue
		}
		fmt.Fprintf(&b, "%s %-6s %s/%d#%d %s on %s pid %d %s\n", e.at.Format("05.000"), e.event, e.job, e.shard, e.attempt, e.exec, e.node, e.pid, e.note)
		if b.Len() > 20_000 {
			b.WriteString("…\n")
			break
		}
	}
	return b.String()
}

// oneStart checks that each shard of a job began once.
func (l *ledger) oneStart(t *testing.T, job string, shards int) {
	t.Helper()
	starts := l.of(job, "start")
	if len(starts) != shards {
		t.Errorf("%s: %d starts, want %d: %+v", job, len(starts), shards, starts)
	}
}

// noOverlap checks that no two executions of a shard acted at the same time, and that fences grow.
func (l *ledger) noOverlap(t *testing.T, job string) {
	t.Helper()
	type span struct {
		first, last entry
	}
	spans := map[string]*span{}
	var order []*span
	for _, e := range l.of(job) {
		s := spans[e.exec]
		if s == nil {
			s = &span{first: e}
			spans[e.exec], order = s, append(order, s)
		}
		s.last = e
	}
	for i, a := range order {
		for _, b := range order[i+1:] {
			if a.first.shard != b.first.shard {
				continue
			}
			if a.last.at.After(b.first.at) {
				t.Errorf("%s/%d: %s on %s acted until %s, %s on %s began at %s", job, a.first.shard, a.first.exec, a.first.node,
					a.last.at.Format("05.000"), b.first.exec, b.first.node, b.first.at.Format("05.000"))
			}
			if a.first.fence >= b.first.fence {
				t.Errorf("%s/%d: fence %d after %d", job, a.first.shard, b.first.fence, a.first.fence)
			}
		}
	}
}
