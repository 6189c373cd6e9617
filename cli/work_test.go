package cli

import (
	"slices"
	"strings"
	"testing"

	"lanjobs/task"
)

// TestSubmitMany: several files are one request; what is refused holds no other up and is told with its file.
func TestSubmitMany(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"a", "bad", "c"} {
		b.write(name+".yaml", "name: "+name+"\nrun: echo\n")
	}
	b.write("worse.yaml", "name: bad\nrun: echo\n")
	b.write("night.yaml", nightFile)
	b.expect(exitDone, "submit", "a.yaml", "c.yaml", "night.yaml")
	if got := b.out.String(); got != "j000001\nj000002\nnight\n" {
		t.Errorf("output %q", got)
	}
	b.wants("stderr", b.err.String(), "lanjobs: night is scheduled: next Mon 2026-11-30 03:00:00 CET (Mon 2026-11-30 02:00:00 UTC here, in ")
	if n := len(b.api.requests); b.api.requests[n-1].path != "/v1/jobs" || strings.Count(b.api.requests[n-1].body, "\n") != 3 {
		t.Errorf("sent %+v", b.api.requests)
	}
	b.expect(exitConflict, "submit", "a.yaml", "bad.yaml", "c.yaml")
	if got := b.out.String(); got != "j000003\nj000004\n" {
		t.Errorf("output %q", got)
	}
	if got := b.err.String(); got != "lanjobs: bad.yaml: the idempotency key was used.\n      Take another.\n" {
		t.Errorf("errors %q", got)
	}
	b.expect(exitConflict, "submit", "bad.yaml", "worse.yaml")
	b.wants("stderr", b.err.String(), "lanjobs: bad.yaml: the idempotency key was used.\n      Take another.\nlanjobs: worse.yaml: the")
}

func TestSubmitScheduled(t *testing.T) {
	b := newBench(t)
	b.write("night.yaml", nightFile)
	b.api.note = "no machine can run it now: node=nas, 0 of 1"
	b.expect(exitDone, "submit", "night.yaml")
	if got := b.out.String(); got != "night\n" {
		t.Errorf("output %q", got)
	}
	b.wants("stderr", b.err.String(), "Its times: lanjobs schedule show night\nlanjobs: night, but no machine can run it now: node=nas, 0 of 1.\n")
}

// TestManyLinesAreCut: a body never has more than is allowed, and each job is in one.
func TestManyLinesAreCut(t *testing.T) {
	var specs []*task.Spec
	for range 2500 {
		specs = append(specs, &task.Spec{Name: "x"})
	}
	for i := range 9 {
		specs = append(specs, &task.Spec{Name: "large", Description: strings.Repeat("x", 3<<20+i)})
	}
	var sizes []int
	for n := 0; n < len(specs); {
		body, lines, err := linesOf(specs[n:])
		if err != nil || lines == 0 || strings.Count(string(body), "\n") != lines || len(body) > 16<<20 {
			t.Fatalf("%d lines of %d bytes: %v", lines, len(body), err)
		}
		sizes = append(sizes, lines)
		n += lines
	}
	if !slices.Equal(sizes, []int{1000, 1000, 505, 4}) {
		t.Errorf("cut into %v", sizes)
	}
}

func TestHistoryQuery(t *testing.T) {
	for line, want := range map[string]string{
		"ls --state failed,expired --queue video --name score": "limit=1000&name=score&queue=video&state=failed%2Cexpired",
		"ls --since 24h --until 2026-11-29T12:00:00Z":          "limit=1000&since=24h&until=2026-11-29T12%3A00%3A00Z",
		"ls --label team=a --label ssd -l os!=windows":         "label=os%21%3Dwindows%2Cteam%3Da%2Cssd&limit=1000",
		"ls --dead --queue video":                              "queue=video",
	} {
		b := newBench(t)
		b.expect(exitDone, strings.Fields(line)...)
		if last := b.api.requests[len(b.api.requests)-1]; last.query != want {
			t.Errorf("%s asks %q, want %q", line, last.query, want)
		}
	}
	b := newBench(t)
	home(b)
	b.expect(exitDone, "ls", "--limit", "1", "-o", "name")
	if got := b.out.String(); got != "j7jw01\n" {
		t.Errorf("the newest one is %q", got)
	}
}

// TestNothingIsChangedByAWrongName: of several names the last of which is wrong, none is touched.
func TestNothingIsChangedByAWrongName(t *testing.T) {
	b := newBench(t)
	home(b)
	calendar(b)
	for _, line := range []string{"pause score nonsense", "schedule pause nightly-backup nonsense", "schedule rm nightly-backup nonsense -y", "queue pause video nonsense", "queue rm video nonsense -y"} {
		b.expect(exitNotFound, strings.Fields(line)...)
		for _, r := range b.api.requests {
			if r.method != "GET" {
				t.Errorf("%s sent %s %s", line, r.method, r.path)
			}
		}
	}
}

func TestRunLeavesTheScheduleOut(t *testing.T) {
	b := newBench(t)
	b.write("night.yaml", nightFile)
	b.expect(exitDone, "run", "night.yaml", "--detach")
	b.wants("stderr", b.err.String(), "the schedule of night.yaml is left out: this is one run, now.")
	if len(b.api.jobs) != 1 || b.api.jobs[0].spec.Schedule != nil || len(b.api.schedules) > 0 {
		t.Errorf("%d jobs, %d schedules", len(b.api.jobs), len(b.api.schedules))
	}
}

// TestSimulate: the example of the help is a scenario, and that of the book.
func TestSimulate(t *testing.T) {
	b := newBench(t)
	b.up = false // it needs no node
	b.expect(exitDone, "simulate")
	book := b.out.String()
	_, text, _ := strings.Cut(simulateRow().long, "As a file:\n")
	text, _, _ = strings.Cut(text, "All times")
	b.write("book.yaml", text)
	b.expect(exitDone, "simulate", "book.yaml")
	if b.out.String() != book || !strings.Contains(book, "B is lost") {
		t.Errorf("the example of the help plays\n%s\nwithout a file\n%s", b.out, book)
	}
	b.w.stdin = strings.NewReader("workers: [A]\nshrads: 3\n")
	b.expect(exitUsage, "simulate", "-")
	b.wants("stderr", b.err.String(), "lanjobs: -: the scenario cannot be read")
	b.wants("stderr", b.err.String(), "Its keys: name, workers")
	b.expect(exitUsage, "simulate", "nothing.yaml")
}
