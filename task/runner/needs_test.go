//go:build linux

package runner

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
)

func TestUnmetPathsAndPrograms(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := b.file("file", "")
	for _, c := range []struct {
		paths, programs []string
		env             []task.KV
		workdir, want   string
	}{
		{paths: []string{b.cfg.Dir}, programs: []string{"sh", "/bin/sh"}},
		{paths: []string{b.cfg.Dir, "/mnt/nowhere"}, want: "path /mnt/nowhere is not there"},
		{paths: []string{file}, want: "path " + file + ": not a directory"},
		// The share that a stage works on is waited for, it does not fail the stage.
		{paths: []string{"/mnt/nowhere"}, workdir: "/mnt/nowhere/video", want: "path /mnt/nowhere is not there"},
		{programs: []string{"sh", "no-such-program"}, want: `program no-such-program: no program "no-such-program" on PATH`},
		{programs: []string{"sh"}, env: []task.KV{{Name: "PATH", Value: "/nowhere"}}, want: "program sh: "},
		{programs: []string{file}, want: "program " + file + ": " + file + ": permission denied"},
	} {
		spec := command("/bin/true")
		s := &spec.Stages[0]
		s.Paths, s.Programs, s.Env, s.Workdir = c.paths, c.programs, c.env, c.workdir
		x, e := b.run(spec)
		if c.want == "" {
			if e.Outcome.End != task.EndExited || e.Outcome.ExitCode != 0 {
				t.Errorf("all is there: %+v", e.Outcome)
			}
			continue
		}
		if e.Outcome.End != task.EndUnmet || !strings.HasPrefix(e.Outcome.Message, c.want) || e.Outcome.Tail != "" {
			t.Errorf("%+v, want unmet: %s", e.Outcome, c.want)
		}
		b.r.Forget(x)
	}
}

// A shell that the stage names is one more thing that the machine must have; the usual one missing is a failure with its exit code.
func TestUnmetShell(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct {
		shell string
		end   task.End
		want  string
	}{
		{"zsh", task.EndUnmet, `shell zsh: no program "zsh" on PATH (`},
		{"cmd", task.EndUnmet, `shell cmd: no program "cmd" on PATH (`},
		{"auto", task.EndStartFailed, `no program "sh" on PATH (`},
	} {
		spec := command("/bin/true")
		s := &spec.Stages[0]
		s.Command, s.Run, s.Shell, s.Env = nil, "echo", c.shell, []task.KV{{Name: "PATH", Value: "/nowhere"}}
		x, e := b.run(spec)
		if e.Outcome.End != c.end || !strings.HasPrefix(e.Outcome.Message, c.want) {
			t.Errorf("%s: %+v", c.shell, e.Outcome)
		}
		b.r.Forget(x)
	}
}

func TestLongPATHIsCutInMessages(t *testing.T) {
	dirs := strings.Repeat("/usr/local/some/bin:", 8) + "/bin"
	if got, want := shortPath(dirs), strings.Repeat("/usr/local/some/bin:", 3)+"/usr/local/some/bin and 5 more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := shortPath("/bin:/usr/bin"); got != "/bin:/usr/bin" {
		t.Errorf("%q", got)
	}
}

// quickBound lets the bound for an answer pass at once, when the test says so.
type quickBound struct {
	task.Clock
	passed chan time.Time
}

func (c quickBound) After(d time.Duration) <-chan time.Time {
	if d == answerBound {
		return c.passed
	}
	return c.Clock.After(d)
}

// A dead share holds up the attempts that need it, no others, and one thread, however often it is tried.
func TestHungPath(t *testing.T) {
	t.Parallel()
	clock := quickBound{SystemClock(), make(chan time.Time)}
	b := newBench(t, func(c *Config) { c.Clock = clock })
	share := filepath.Join(b.cfg.Dir, "share")
	mkfifo(t, share) // like a dead share, opening it waits for somebody else
	spec := command("true")
	spec.Stages[0].Paths = []string{share}
	first, second := b.start(spec, far()), b.start(spec, far())
	if _, e := b.run(command("true")); e.Outcome.ExitCode != 0 {
		t.Errorf("another attempt: %+v", e.Outcome)
	}
	for range 2 {
		clock.passed <- time.Time{}
	}
	for _, x := range []task.ExecutionID{first, second} {
		if e := b.exit(x); e.Outcome.End != task.EndUnmet || !strings.Contains(e.Outcome.Message, "path "+share+" does not answer") {
			t.Errorf("%+v", e.Outcome)
		}
	}
	waiting := func() int {
		b.r.probes.mu.Lock()
		defer b.r.probes.mu.Unlock()
		return len(b.r.probes.open)
	}
	if n := waiting(); n != 1 {
		t.Errorf("%d questions wait", n)
	}
	fd, err := syscall.Open(share, syscall.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	b.until("the answer has come", func() bool { return waiting() == 0 })
	if _, e := b.run(spec); e.Outcome.End != task.EndUnmet || !strings.Contains(e.Outcome.Message, "not a directory") {
		t.Errorf("after it: %+v", e.Outcome)
	}
	_ = syscall.Close(fd)
}

func TestTooManyQuestionsWait(t *testing.T) {
	var ps probes
	never := make(chan struct{})
	defer close(never)
	for i := range maxProbes {
		if ps.begin(itoa(i), func() error { <-never; return nil }) == nil {
			t.Fatalf("question %d is refused", i)
		}
	}
	if ps.begin("one more", func() error { return nil }) != nil {
		t.Error("one more than allowed is asked")
	}
	if ps.begin("0", func() error { return os.ErrExist }) == nil {
		t.Error("who asks the same may wait with the others")
	}
}

// The same for what a job reads or runs by its place: without a bound the attempt would never end, nobody could cancel it, and a few of
// them would take all starts of the node.
func TestHungEnvFileAndProgram(t *testing.T) {
	t.Parallel()
	clock := quickBound{SystemClock(), make(chan time.Time)}
	b := newBench(t, func(c *Config) { c.Clock = clock })
	gone := filepath.Join(b.cfg.Dir, "gone")
	never := make(chan struct{})
	defer close(never)
	for _, what := range []string{"env file " + gone, "program " + gone} { // as a dead share: the question is asked and waits
		b.r.probes.begin(what, func() error { <-never; return nil })
	}
	reads := command("true")
	reads.Stages[0].EnvFiles = []string{gone}
	for _, spec := range []*task.Spec{reads, command(gone)} {
		x := b.start(spec, far())
		if _, e := b.run(command("true")); e.Outcome.ExitCode != 0 {
			t.Errorf("another attempt: %+v", e.Outcome)
		}
		clock.passed <- time.Time{}
		if e := b.exit(x); e.Outcome.End != task.EndStartFailed || !strings.Contains(e.Outcome.Message, gone+" on nas does not answer") {
			t.Errorf("%+v", e.Outcome)
		}
	}
	pipe := filepath.Join(b.cfg.Dir, "pipe")
	mkfifo(t, pipe)
	reads.Stages[0].EnvFiles = []string{pipe}
	if _, e := b.run(reads); e.Outcome.End != task.EndStartFailed || !strings.Contains(e.Outcome.Message, "a pipe, not a file") {
		t.Errorf("%+v", e.Outcome)
	}
}
