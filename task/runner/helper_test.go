//go:build linux

package runner

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
)

// The test binary is also the guard, the agent and the programs that tasks run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "guard":
			os.Exit(GuardMain(os.Args[2:]))
		case "agent":
			os.Exit(agentMain(os.Args[2:]))
		case "args":
			fmt.Println(jsonOf(os.Args[2:]))
			os.Exit(0)
		case "stamp":
			os.Exit(stampMain(os.Args[2:]))
		case "task":
			os.Exit(taskMain(os.Args[2:]))
		}
	}
	// Most tests wait for processes: more of them at once than processors do no harm.
	flag.Parse()
	_ = flag.Set("test.parallel", "8")
	os.Exit(m.Run())
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// self is this binary.
func self(tb testing.TB) string {
	tb.Helper()
	exe, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	return exe
}

// bench is one runner with its ends, and a check that nothing stays behind.
type bench struct {
	tb      testing.TB
	r       *Runner
	cfg     Config
	backend *fakeBackend
	tokens  task.Token
	mu      sync.Mutex
	ended   map[task.ExecutionID]Exit
	news    chan struct{}
	onExit  func(Exit)
}

func newBench(tb testing.TB, change ...func(*Config)) *bench {
	tb.Helper()
	b := &bench{tb: tb, backend: &fakeBackend{}, ended: map[task.ExecutionID]Exit{}, news: make(chan struct{}, 1), tokens: 1000}
	b.cfg = Config{Dir: shortDir(tb), Exe: self(tb), NodeName: "nas", Backend: b.backend, Log: testLog(tb)}
	for _, f := range change {
		f(&b.cfg)
	}
	b.open()
	tb.Cleanup(b.close)
	return b
}

// shortDir is a folder whose sockets have short paths, whatever the test is called.
func shortDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "lj")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}

func testLog(tb testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(&logSink{tb: tb}, nil))
}

// logSink writes to the test's log until the test is over.
type logSink struct {
	tb   testing.TB
	mu   sync.Mutex
	once sync.Once
	done bool
}

func (s *logSink) Write(b []byte) (int, error) {
	s.once.Do(func() {
		s.tb.Cleanup(func() { s.mu.Lock(); s.done = true; s.mu.Unlock() })
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.done {
		s.tb.Log(strings.TrimSpace(string(b)))
	}
	return len(b), nil
}

func (b *bench) open() {
	b.tb.Helper()
	r, err := Open(context.Background(), b.cfg)
	if err != nil {
		b.tb.Fatal(err)
	}
	b.r = r
	go func() {
		for {
			select {
			case <-r.ctx.Done():
				return
			case e := <-r.Exits():
				if b.onExit != nil {
					b.onExit(e)
					continue
				}
				b.mu.Lock()
				if _, twice := b.ended[e.Assignment.Execution()]; twice {
					b.tb.Errorf("%s ended twice", e.Assignment.Execution())
				}
				b.ended[e.Assignment.Execution()] = e
				b.mu.Unlock()
				nudge(b.news)
			}
		}
	}()
}

func (b *bench) close() {
	b.r.KillAll()
	b.until("everything ended", func() bool {
		b.r.mu.Lock()
		defer b.r.mu.Unlock()
		return !slices.ContainsFunc(slices.Collect(valuesOf(b.r.attempts)), func(a *attempt) bool { return !a.ended })
	})
	if err := b.r.Close(); err != nil {
		b.tb.Error(err)
	}
	noGuards(b.tb, b.cfg.Dir)
}

func valuesOf[K comparable, V any](m map[K]V) func(func(V) bool) {
	return func(yield func(V) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

// noGuards waits until no guard of a folder lives; all of them have nothing to do.
func noGuards(tb testing.TB, dir string) {
	tb.Helper()
	until(tb, "guards left", func() bool { return len(guardPids(dir)) == 0 })
}

// guardPids finds guards by their command line.
func guardPids(dir string) []int {
	var out []int
	procs, _ := listProcs()
	for _, p := range procs {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
		if err == nil && strings.Contains(string(line), "\x00guard\x00--dir\x00"+dir+"\x00") {
			out = append(out, p.pid)
		}
	}
	return out
}

// untilBound is a net for a hung test, far above what anything takes.
const untilBound = time.Minute

// until waits for a process that cannot tell us; it looks every few milliseconds.
func until(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(untilBound); !ok(); {
		if time.Now().After(end) {
			tb.Fatalf("not within %s: %s", untilBound, what)
		}
		time.Sleep(3 * time.Millisecond)
	}
}

func (b *bench) until(what string, ok func() bool) { b.tb.Helper(); until(b.tb, what, ok) }

// far are deadlines that do not come.
func far() task.Deadlines { return deadlinesIn(time.Hour, time.Hour) }

func deadlinesIn(term, kill time.Duration) task.Deadlines {
	now := SystemClock().Boot()
	return task.Deadlines{Term: now.Add(term), Kill: now.Add(kill), End: now.Add(kill + 2*time.Second)}
}

// job is a one-stage spec.
func job(change func(*task.StageSpec)) *task.Spec {
	s := task.StageSpec{Name: task.DefaultStage, Shards: 1, Lease: task.DefaultLease(task.DefaultTTL), Retry: task.DefaultRetry()}
	s.Lease.StopGrace = 3 * task.Second
	change(&s)
	return &task.Spec{Name: "test", Queue: "default", Stages: []task.StageSpec{s}}
}

func script(text string) *task.Spec { return job(func(s *task.StageSpec) { s.Run = text }) }

func command(args ...string) *task.Spec { return job(func(s *task.StageSpec) { s.Command = args }) }

func (b *bench) assignment() *task.Assignment {
	b.tokens++
	return &task.Assignment{Job: "j000001", Attempt: 1, Token: b.tokens}
}

func (b *bench) start(spec *task.Spec, d task.Deadlines) task.ExecutionID {
	b.tb.Helper()
	return b.startAs(b.assignment(), spec, d)
}

func (b *bench) startAs(a *task.Assignment, spec *task.Spec, d task.Deadlines) task.ExecutionID {
	b.tb.Helper()
	if err := b.r.Start(a, spec, d); err != nil {
		b.tb.Fatal(err)
	}
	return a.Execution()
}

// exit waits for an attempt's end.
func (b *bench) exit(x task.ExecutionID) Exit {
	b.tb.Helper()
	for end := time.After(untilBound); ; {
		b.mu.Lock()
		e, ok := b.ended[x]
		b.mu.Unlock()
		if ok {
			return e
		}
		select {
		case <-end:
			b.tb.Fatalf("%s did not end within %s", x, untilBound)
		case <-b.news:
		}
	}
}

// run starts and waits.
func (b *bench) run(spec *task.Spec) (task.ExecutionID, Exit) {
	b.tb.Helper()
	x := b.start(spec, far())
	return x, b.exit(x)
}

// log is the whole output of an ended or running attempt.
func (b *bench) log(x task.ExecutionID, stream string) string {
	b.tb.Helper()
	p, err := b.r.ReadLog(context.Background(), LogQuery{Execution: x, Stream: stream})
	if err != nil {
		b.tb.Fatal(err)
	}
	return string(p.Data)
}

func mkfifo(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) file(name, text string) string {
	b.tb.Helper()
	path := filepath.Join(b.cfg.Dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.tb.Fatal(err)
	}
	return path
}

// pace is how long the machine takes for next to nothing now, and gets the guard's start out of the way. Times that a test
// gives its own commands are multiples of it, so that a busy machine fails no test.
func (b *bench) pace(least time.Duration) time.Duration {
	b.tb.Helper()
	b.run(command("true"))
	begin := time.Now()
	b.run(script("sleep 0 & wait"))
	return max(least, 20*time.Since(begin))
}

// marked are living processes that carry an attempt's mark.
func marked(dir string, x task.ExecutionID) []int {
	var out []int
	procs, _ := listProcs()
	for _, p := range procs {
		if hasMark(p.pid, markName+"="+filepath.Join(dir, "attempt", string(x))) {
			out = append(out, p.pid)
		}
	}
	return out
}

func (b *bench) nothingLeft(x task.ExecutionID) {
	b.tb.Helper()
	if left := marked(b.cfg.Dir, x); len(left) > 0 {
		b.tb.Errorf("processes of %s left: %v", x, left)
	}
}

// bothWays runs a test with control groups, where there are any, and without.
func bothWays(t *testing.T, test func(t *testing.T, change func(*Config))) {
	t.Run("search", func(t *testing.T) { t.Parallel(); test(t, func(c *Config) { c.NoCgroups = true }) })
	t.Run("cgroups", func(t *testing.T) {
		t.Parallel()
		if p := openCgroups("", "probe"+strings.ReplaceAll(t.Name(), "/", "-")+itoa(os.Getpid())); p == nil {
			t.Skip("no control groups of version 2 for us here")
		} else {
			p.close(func() {})
		}
		test(t, func(*Config) {})
	})
}
