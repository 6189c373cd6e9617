//go:build linux

package runner

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"lanjobs/task"
)

// C31: fast output on both streams by turns; read while it runs and after.
func TestFastOutput(t *testing.T) {
	b := newBench(t)
	const lines = 200_000
	before := guardMemory(b)
	x := b.start(command("python3", "-c", fmt.Sprintf(`
import sys
for i in range(0, %d, 2):
    sys.stdout.write(f'{{"out": {i}, "pad": "xxxxxxxxxxxxxxxx"}}\n')
    sys.stderr.write(f'{{"err": {i+1}, "pad": "xxxxxxxxxxxxxxxx"}}\n')
sys.stdout.flush()
sys.exit(3)`, lines)), far())
	live := make(chan string)
	go func() {
		var text strings.Builder
		q := LogQuery{Execution: x, Stream: "stdout", Hold: 5 * task.Second}
		for {
			p, err := b.r.ReadLog(context.Background(), q)
			if err != nil {
				t.Error(err)
				break
			}
			text.Write(p.Data)
			if q.From = p.Next; p.Done {
				break
			}
		}
		live <- text.String()
	}()
	e := b.exit(x)
	if e.Outcome.ExitCode != 3 {
		t.Errorf("%+v", e.Outcome)
	}
	if grown := guardMemory(b) - before; grown > 50<<10 {
		t.Errorf("the guard grew by %d KiB", grown)
	}
	checkLines(t, "live", <-live, "out", 0, lines-2)
	for name, c := range map[string][2]int{"stdout": {0, lines - 2}, "stderr": {1, lines - 1}} {
		text := ""
		for q := (LogQuery{Execution: x, Stream: name}); ; {
			p, err := b.r.ReadLog(context.Background(), q)
			if err != nil {
				t.Fatal(err)
			}
			text += string(p.Data)
			if q.From = p.Next; p.Done {
				break
			}
		}
		checkLines(t, name, text, name[3:], c[0], c[1])
	}
	if !strings.Contains(e.Outcome.Tail, fmt.Sprintf(`{"err": %d, "pad": "xxxxxxxxxxxxxxxx"}`, lines-1)) {
		t.Errorf("tail lacks the last line: %q", e.Outcome.Tail)
	}
}

// checkLines: each line whole, numbers rise by two, one marker at most, the last line there.
func checkLines(t *testing.T, name, text, key string, first, last int) {
	t.Helper()
	next, markers := first, 0
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		var n int
		line := lines.Text()
		if strings.HasPrefix(line, "[lanjobs:") {
			markers++
			next = -1
			continue
		}
		if _, err := fmt.Sscanf(line, `{"`+key+`": %d,`, &n); err != nil || !strings.HasSuffix(line, ` "pad": "xxxxxxxxxxxxxxxx"}`) {
			t.Errorf("%s: line %q", name, line)
			return
		}
		if next >= 0 && n != next {
			t.Errorf("%s: line %d follows %d", name, n, next-2)
			return
		}
		next = n + 2
	}
	if next != last+2 || markers > 1 {
		t.Errorf("%s: ends with %d, want %d; %d markers", name, next-2, last, markers)
	}
}

// guardMemory is the resident size of the guard in KiB; the first call makes one.
func guardMemory(b *bench) int {
	b.tb.Helper()
	if len(guardPids(b.cfg.Dir)) == 0 {
		b.run(command("true"))
	}
	total := 0
	for _, pid := range guardPids(b.cfg.Dir) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			b.tb.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "VmRSS:")
		var kib int
		if _, err := fmt.Sscan(rest, &kib); err != nil {
			b.tb.Fatal(err)
		}
		total += kib
	}
	return total
}

func TestReadLogWhileItRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	gate := b.cfg.Dir + "/gate"
	mkfifo(t, gate)
	x := b.start(script(`echo before; read x < "`+gate+`"; echo after`), far())
	ctx := context.Background()
	p, err := b.r.ReadLog(ctx, LogQuery{Execution: x, Hold: 10 * task.Second})
	if err != nil || string(p.Data) != "before\n" || p.Done {
		t.Fatalf("%q done=%v %v", p.Data, p.Done, err)
	}
	if err := os.WriteFile(gate, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	p, err = b.r.ReadLog(ctx, LogQuery{Execution: x, From: p.Next, Hold: 10 * task.Second})
	if err != nil || string(p.Data) != "after\n" {
		t.Fatalf("%q %v", p.Data, err)
	}
	b.exit(x)
	if p, err = b.r.ReadLog(ctx, LogQuery{Execution: x, From: p.Next}); err != nil || !p.Done || len(p.Data) != 0 {
		t.Errorf("%+v %v", p, err)
	}
	if _, err := b.r.ReadLog(ctx, LogQuery{Execution: x, Stream: "stdin"}); err == nil {
		t.Error("stdin was taken for a stream")
	}
}
