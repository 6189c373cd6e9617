//go:build linux

package runner

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
)

// place is a runner's folder whose agents are processes that may be killed, and a folder for what tasks write.
type place struct {
	t        *testing.T
	dir, out string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	dir := shortDir(t)
	p := &place{t: t, dir: filepath.Join(dir, "run"), out: filepath.Join(dir, "out")}
	for _, d := range []string{p.dir, p.out} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, pid := range guardPids(p.dir) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		until(t, "guards gone", func() bool { return len(guardPids(p.dir)) == 0 })
		r, err := Open(context.Background(), Config{Dir: p.dir, Exe: self(t)}) // cleans up after them
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *place) spec(text string) *task.Spec {
	s := script(text)
	s.Stages[0].Env = []task.KV{{Name: "OUT", Value: p.out}}
	return s
}

func (p *place) read(name string) string { return content(filepath.Join(p.out, name)) }

func (p *place) wait(name string) string {
	p.t.Helper()
	until(p.t, name, func() bool { return strings.HasSuffix(p.read(name), "\n") })
	return strings.TrimSpace(p.read(name))
}

func (p *place) gate() {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.out, "gate"), []byte("go\n"), 0); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) guard() int {
	p.t.Helper()
	pids := guardPids(p.dir)
	if len(pids) != 1 {
		p.t.Fatalf("guards: %v", pids)
	}
	return pids[0]
}

func (p *place) signal(pid int, s syscall.Signal) {
	p.t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		p.t.Fatal(err)
	}
	if s == syscall.SIGSTOP {
		stopped(p.t, pid)
	}
}

// stopped waits until all threads of a process are: the signal reaches one of them first, and the others run on until that one has
// had its turn.
func stopped(t *testing.T, pid int) {
	t.Helper()
	until(t, "process stopped", func() bool {
		threads, _ := filepath.Glob("/proc/" + itoa(pid) + "/task/*/stat")
		for _, stat := range threads {
			line := content(stat)
			if i := strings.LastIndexByte(line, ')'); i < 0 || !strings.HasPrefix(line[i:], ") T") {
				return false
			}
		}
		return len(threads) > 0
	})
}

// nothing checks that no process of the folder's attempts is left.
func (p *place) nothing() {
	p.t.Helper()
	procs, err := listProcs()
	if err != nil {
		p.t.Fatal(err)
	}
	for _, proc := range procs {
		if x := claimOf(proc.pid, markPrefix(p.dir)); x != "" {
			p.t.Errorf("process %d of %s is left", proc.pid, x)
		}
	}
}

// stamps is a task that writes down when it lives.
func (p *place) stamps(before string) *task.Spec {
	return p.spec(before + `exec ` + self(p.t) + ` stamp "$OUT/stamps"`)
}

// written are the stamps so far.
func (p *place) written() []task.Boot {
	p.t.Helper()
	return stampsIn(p.t, filepath.Join(p.out, "stamps"))
}

// stampsIn reads when stampMain lived, on the boot clock.
func stampsIn(t *testing.T, path string) (out []task.Boot) {
	t.Helper()
	text := content(path)
	for _, line := range strings.Fields(text[:strings.LastIndexByte(text, '\n')+1]) {
		n, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, task.Boot(n))
	}
	if len(out) == 0 {
		t.Fatal("no stamps")
	}
	return out
}

// soonDead checks that a task which writes stamps was killed at once from a moment on. Its acts are counted, not timed: they are as
// slow as the machine, and 500 of them take a second when nothing else runs.
func soonDead(t *testing.T, stamps []task.Boot, from task.Boot) {
	t.Helper()
	late := 0
	for _, s := range stamps {
		if s > from {
			late++
		}
	}
	t.Logf("acted %d times more, until %s later", late, max(stamps[len(stamps)-1].Sub(from), 0))
	if late > 500 {
		t.Errorf("acted %d times more, until %s later", late, stamps[len(stamps)-1].Sub(from))
	}
}

// freeze is how long agent or guard do not run: until the deadline is over by far.
func freeze(d task.Deadlines) { time.Sleep(d.Kill.Sub(SystemClock().Boot()) + 2*time.Second) }

// soon are deadlines that come when the machine has had time to start a task, after the agent has started its guard.
func (a *agent) soon() task.Deadlines {
	a.t.Helper()
	run := func(n task.Token) time.Duration {
		begin := time.Now()
		a.exit(a.start(&task.Assignment{Job: "j000001", Attempt: 1, Token: n}, command(self(a.t), "args"), far()))
		return time.Since(begin)
	}
	run(101)
	pace := max(5*time.Second, 20*run(102))
	return deadlinesIn(pace, pace+200*time.Millisecond)
}

func first() *task.Assignment { return &task.Assignment{Job: "j000001", Attempt: 1, Token: 1<<40 | 1} }

// R14, R44: a killed agent takes nothing along; the next one finds the same process and hears of its end.
func TestAgentKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	mkfifo(t, p.out+"/gate")
	a := newAgent(t, p.dir)
	as := first()
	as.Checkpoint = &task.Checkpoint{Seq: 4, Data: []byte("four")}
	x := a.start(as, p.spec(`echo before; echo $$ > "$OUT/pid"; read go < "$OUT/gate"
echo five | curl -fsS --unix-socket "$LANJOBS_SOCKET" http://task/v1/checkpoint -T - > "$OUT/saved"
echo n=1 >> "$LANJOBS_OUTPUT"; echo after`), far())
	pid := p.wait("pid")
	a.kill()
	a = newAgent(t, p.dir)
	if len(a.held) != 1 || !a.held[0].Running || a.held[0].Assignment.Execution() != x || a.held[0].Deadlines.Kill == 0 {
		t.Fatalf("held %+v", a.held)
	}
	if cp := a.held[0].Assignment.Checkpoint; cp == nil || cp.Seq != 4 || string(cp.Data) != "four" {
		t.Errorf("checkpoint %+v", cp)
	}
	if _, err := os.Stat("/proc/" + pid); err != nil {
		t.Fatal("the process is gone:", err)
	}
	p.gate()
	e := a.exit(x)
	if e.Outcome.End != task.EndExited || e.Outcome.ExitCode != 0 || len(e.Outputs) != 1 || e.Assignment.Job != as.Job {
		t.Errorf("%+v", e)
	}
	if got := p.read("saved"); got != `{"seq":1}`+"\n" {
		t.Errorf("the endpoint after reattaching said %q", got)
	}
	if got := readAll(t, logDir(p.dir), x, streamOut); got != "before\nafter\n" {
		t.Errorf("log %q", got)
	}
	a.tell(order{Do: "forget", X: x})
	until(t, "forgotten", func() bool { _, err := os.Stat(filepath.Join(p.dir, "attempt", string(x))); return os.IsNotExist(err) })
	until(t, "forgotten by the guard", func() bool {
		j, _ := filepath.Glob(guardDir(p.dir) + "/*.journal")
		return len(j) == 1 && strings.Contains(content(j[0]), "F "+string(x)+"\n")
	})
	a.kill()
	if a = newAgent(t, p.dir); len(a.held) != 0 {
		t.Errorf("held after Forget: %+v", a.held)
	}
}

// An end while the agent was down is delivered later, and again to each agent until it is forgotten, also after the guard has left.
func TestEndWhileAgentIsDown(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	mkfifo(t, p.out+"/gate")
	a := newAgent(t, p.dir)
	x := a.start(first(), p.spec(`echo $$ > "$OUT/pid"; read go < "$OUT/gate"; echo bye; exit 4`), far())
	p.wait("pid")
	a.kill()
	p.gate()
	for _, what := range []string{"guard lives", "guard left"} {
		if what == "guard left" {
			noGuards(t, p.dir) // its idle time is a second here
		} else {
			until(t, "process gone", func() bool { return len(marked(p.dir, x)) == 0 })
		}
		a = newAgent(t, p.dir)
		e := a.exit(x)
		if e.Outcome.ExitCode != 4 || e.Outcome.Tail != "bye\n" {
			t.Errorf("%s: %+v", what, e.Outcome)
		}
		if len(a.held) != 1 || a.held[0].Running && what == "guard left" {
			t.Errorf("%s: held %+v", what, a.held)
		}
		a.kill()
	}
	a = newAgent(t, p.dir)
	a.exit(x)
	a.tell(order{Do: "forget", X: x})
	until(t, "journal gone", func() bool { f, _ := filepath.Glob(guardDir(p.dir) + "/*.journal"); return len(f) == 0 })
}

// A frozen agent cannot renew; the guard needs nobody to obey the deadline.
func TestAgentFrozen(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a := newAgent(t, p.dir)
	d := a.soon()
	x := a.start(first(), p.stamps(""), d)
	p.wait("stamps")
	a.signal(syscall.SIGSTOP)
	until(t, "killed", func() bool { return len(marked(p.dir, x)) == 0 })
	soonDead(t, p.written(), d.Kill)
	if got := content(filepath.Join(p.dir, "attempt", string(x)+".stop")); got != "lease_lost\n" {
		t.Errorf("stop file %q", got)
	}
	a.signal(syscall.SIGCONT)
	if e := a.exit(x); e.Outcome.End != task.EndLeaseLost {
		t.Errorf("%+v", e.Outcome)
	}
}

// I2: after a freeze of agent and guard, with the task going on, it dies at once with the thaw of both, or of the guard alone.
func TestBothFrozen(t *testing.T) {
	for _, who := range []string{"both", "guard"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			a := newAgent(t, p.dir)
			d := a.soon()
			x := a.start(first(), p.stamps(""), d)
			p.wait("stamps")
			guard := p.guard()
			a.signal(syscall.SIGSTOP)
			p.signal(guard, syscall.SIGSTOP)
			freeze(d)
			thaw := SystemClock().Boot()
			if before := p.written(); before[len(before)-1] < d.Kill.Add(time.Second) {
				t.Fatal("the task did not outlive its deadline in the freeze")
			}
			p.signal(guard, syscall.SIGCONT)
			if who == "guard" {
				until(t, "killed", func() bool { return len(marked(p.dir, x)) == 0 })
			}
			a.signal(syscall.SIGCONT)
			if e := a.exit(x); e.Outcome.End != task.EndLeaseLost || e.Outcome.Signal != 9 {
				t.Errorf("%+v", e.Outcome)
			}
			soonDead(t, p.written(), thaw)
			p.nothing()
		})
	}
}

// A guard frozen alone: the agent kills at the deadline, reports the end itself, and only once.
func TestGuardFrozen(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a := newAgent(t, p.dir)
	d := a.soon()
	x := a.start(first(), p.stamps(`setsid sleep 300 & `), d)
	p.wait("stamps")
	guard := p.guard()
	p.signal(guard, syscall.SIGSTOP)
	late := a.start(&task.Assignment{Job: "j000001", Attempt: 1, Token: 2}, p.spec(`echo ran > "$OUT/late"`), d)
	ends := map[task.ExecutionID]task.End{}
	for len(ends) < 2 {
		w := a.hear()
		ends[w.Exit.Assignment.Execution()] = w.Exit.Outcome.End
	}
	if ends[x] != task.EndLeaseLost || ends[late] != task.EndLeaseLost {
		t.Errorf("ends %v", ends)
	}
	soonDead(t, p.written(), d.Kill)
	p.nothing()
	p.signal(guard, syscall.SIGCONT)
	third := a.start(&task.Assignment{Job: "j000001", Attempt: 1, Token: 3}, p.spec(`true`), far())
	if w := a.hear(); w.Exit.Assignment.Execution() != third { // nothing of the first two any more
		t.Errorf("heard %+v", w)
	}
	if p.read("late") != "" {
		t.Error("a start that had lapsed was carried out after the thaw")
	}
}

// A frozen guard that thaws in time loses nothing: renewals that came meanwhile are read before deadlines are obeyed.
func TestGuardFrozenForAMoment(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	mkfifo(t, p.out+"/gate")
	a := newAgent(t, p.dir)
	d := a.soon()
	x := a.start(first(), p.spec(`echo $$ > "$OUT/pid"; read go < "$OUT/gate"`), d)
	p.wait("pid")
	p.signal(p.guard(), syscall.SIGSTOP)
	a.tell(order{Do: "extend", X: x, D: far()})
	freeze(d)
	p.signal(p.guard(), syscall.SIGCONT)
	p.gate()
	if e := a.exit(x); e.Outcome.End != task.EndExited || e.Outcome.ExitCode != 0 {
		t.Errorf("%+v", e.Outcome)
	}
}

// A killed guard: its commands die with it, their families too, and the next start has a new one.
func TestGuardKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a := newAgent(t, p.dir)
	x := a.start(first(), p.stamps(`(trap '' TERM HUP; sleep 300) & setsid sleep 300 & `), far())
	p.wait("stamps")
	p.signal(p.guard(), syscall.SIGKILL)
	e := a.exit(x)
	if e.Outcome.End != task.EndLeaseLost || !strings.Contains(e.Outcome.Message, "guard process died") {
		t.Errorf("%+v", e.Outcome)
	}
	p.nothing()
	y := a.start(&task.Assignment{Job: "j000001", Attempt: 1, Token: 2}, p.spec(`exit 9`), far())
	if e := a.exit(y); e.Outcome.ExitCode != 9 {
		t.Errorf("%+v", e.Outcome)
	}
	a.tell(order{Do: "forget", X: x})
	until(t, "journal of the dead guard gone", func() bool { f, _ := filepath.Glob(guardDir(p.dir) + "/*.journal"); return len(f) == 1 })
}

// I13: both killed; when the next agent is open nothing of the former life runs.
func TestBothKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a := newAgent(t, p.dir)
	x := a.start(first(), p.stamps(`setsid sleep 300 & `), far())
	p.wait("stamps")
	a.kill()
	p.signal(p.guard(), syscall.SIGKILL)
	a = newAgent(t, p.dir)
	p.nothing()
	if len(a.held) != 1 || a.held[0].Running || a.held[0].Assignment.Execution() != x {
		t.Errorf("held %+v", a.held)
	}
	if e := a.exit(x); e.Outcome.End != task.EndLeaseLost {
		t.Errorf("%+v", e.Outcome)
	}
}

// I13 when even the journal is lost: what carries the folder's mark and is nobody's is ended.
func TestJournalLost(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a := newAgent(t, p.dir)
	a.start(first(), p.stamps(`setsid sleep 300 & `), far())
	p.wait("stamps")
	a.kill()
	p.signal(p.guard(), syscall.SIGKILL)
	journals, _ := filepath.Glob(guardDir(p.dir) + "/*.journal")
	for _, path := range journals {
		j, card, err := openJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		closeQuietly(j.file)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { removeCgroup(card.Cgroup, func() { time.Sleep(time.Millisecond) }) }) // nobody else knows of it now
	}
	a = newAgent(t, p.dir)
	p.nothing()
	if len(a.held) != 0 {
		t.Errorf("held %+v", a.held)
	}
}

// I13 also when the old guard is frozen: it cannot be asked, so what it runs is ended.
func TestGuardFrozenAtOpen(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a := newAgent(t, p.dir)
	x := a.start(first(), p.stamps(`setsid sleep 300 & `), far())
	p.wait("stamps")
	a.kill()
	p.signal(p.guard(), syscall.SIGSTOP)
	a = newAgent(t, p.dir)
	p.nothing()
	if e := a.exit(x); e.Outcome.End != task.EndLeaseLost || len(guardPids(p.dir)) != 0 {
		t.Errorf("%+v, guards %v", e.Outcome, guardPids(p.dir))
	}
}

// An agent that leaves in order, without work: its guard leaves at once; after a crash it waits a little first.
func TestIdleGuardLeaves(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a := newAgent(t, p.dir, "6s")
	x := a.start(first(), p.spec(`true`), far())
	a.exit(x)
	a.kill()
	p.guard() // still there
	noGuards(t, p.dir)
}

// R47: a new binary has a guard of its own; the old one finishes what it has, then leaves.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec, out := withOut(b, `echo $$ > "$OUT/pid"; read go < "$OUT/gate"; exit 6`)
	mkfifo(t, out+"/gate")
	x := b.start(spec, far())
	b.until("pid", func() bool { return content(out+"/pid") != "" })
	if err := b.r.Close(); err != nil {
		t.Fatal(err)
	}
	old := guardPids(b.cfg.Dir)
	b.cfg.Exe = copyOf(t, b.cfg.Exe, b.cfg.Dir)
	b.open()
	if held := b.r.Held(); len(held) != 1 || !held[0].Running {
		t.Fatalf("held %+v", held)
	}
	y, e := b.run(script(`echo new`))
	if e.Outcome.ExitCode != 0 || len(guardPids(b.cfg.Dir)) != 2 {
		t.Errorf("%+v, guards %v", e.Outcome, guardPids(b.cfg.Dir))
	}
	b.r.Forget(y)
	if err := os.WriteFile(out+"/gate", []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	if e := b.exit(x); e.Outcome.ExitCode != 6 {
		t.Errorf("%+v", e.Outcome)
	}
	b.r.Forget(x)
	b.until("old guard left", func() bool { p := guardPids(b.cfg.Dir); return len(p) == 1 && p[0] != old[0] })
}

// copyOf is made by another process: a file that this one had open for writing might be inherited by a fork and be busy.
func copyOf(t *testing.T, path, dir string) string {
	t.Helper()
	to := filepath.Join(dir, "lanjobs")
	if out, err := exec.Command("cp", path, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return to
}

// While the binary is being replaced it cannot be executed for a moment: what is to start then starts under the guard that there is.
func TestStartWhileTheBinaryIsReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.Exe = copyOf(t, c.Exe, shortDir(t)) })
	b.run(command("true"))
	if err := writeWhole(b.cfg.Exe, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, e := b.run(command("true")); e.Outcome.End != task.EndExited || e.Outcome.ExitCode != 0 {
		t.Errorf("%+v", e.Outcome)
	}
	if entries, err := os.ReadDir(guardDir(b.cfg.Dir)); err != nil || len(entries) != 2 { // the guard's journal and words
		t.Errorf("left: %v %v", entries, err)
	}
}
