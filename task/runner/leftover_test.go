//go:build linux

package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lanjobs/task"
)

// attemptFiles are what the attempt folder holds, of one execution or of all ("").
func (b *bench) attemptFiles(x task.ExecutionID) (out []string) {
	b.tb.Helper()
	entries, err := os.ReadDir(filepath.Join(b.cfg.Dir, "attempt"))
	if err != nil {
		b.tb.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), string(x)) {
			out = append(out, e.Name())
		}
	}
	return out
}

// A node runs for months: whatever an attempt had on disk goes with it, whatever shell its script is for.
func TestNothingOfAnAttemptStays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec := script("print('hi')")
	spec.Stages[0].Shell = "python3"
	x, e := b.run(spec)
	if e.Outcome.ExitCode != 0 {
		t.Fatalf("%+v %q", e.Outcome, b.log(x, ""))
	}
	if names := b.attemptFiles(x); len(names) < 2 { // the directory and the script
		t.Fatalf("the script is not where this test looks: %q", names)
	}
	b.r.Forget(x)
	b.until("attempt folder empty", func() bool {
		left := b.attemptFiles("")
		if len(left) > 0 {
			t.Log(left)
		}
		return len(left) == 0
	})
}

// What an agent left half written when it was killed goes at the next start.
func TestUnfinishedFilesGoAtTheNextStart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x, _ := b.run(command("true"))
	b.r.Forget(x)
	if err := b.r.Close(); err != nil {
		t.Fatal(err)
	}
	noGuards(t, b.cfg.Dir)
	for _, name := range []string{"attempt/x1.seq.new", "attempt/x1.script.py", "guard/dead.journal.new", "guard/dead.log"} {
		b.file(name, "half")
	}
	b.open()
	b.until("all gone", func() bool {
		words, err := os.ReadDir(guardDir(b.cfg.Dir))
		if err != nil {
			t.Fatal(err)
		}
		return len(b.attemptFiles(""))+len(words) == 0
	})
}

// A folder that refuses the new file must not cost the journal what it is told afterwards.
func TestJournalThatCannotBeRewritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g1.journal")
	j, err := createJournal(path, &hello{ID: "g1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []task.ExecutionID{"x1", "x2", "x3"} {
		if err := j.started(x, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(path+unfinished, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	j.size = 2 * journalSlack
	if err := j.forget("x1"); err == nil {
		t.Fatal("it could be rewritten")
	}
	_ = j.file.Close()
	j.file = nil // as after a rewrite that found no file to open
	if err := j.ended("x2", &exitRecord{Code: 3}); err != nil {
		t.Error(err)
	}
	if err := j.file.Close(); err != nil {
		t.Error(err)
	}
	k, _, err := openJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	if k.live["x1"] != nil || k.live["x2"] == nil || k.live["x2"].exit == nil || k.live["x3"] == nil {
		t.Errorf("%+v", k.live)
	}
	if err := k.file.Close(); err != nil {
		t.Error(err)
	}
}

// A journal whose record was cut short says nothing of its attempt; it must not be read at each start for ever.
func TestJournalOfNobodyGoes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := b.r.Close(); err != nil {
		t.Fatal(err)
	}
	noGuards(t, b.cfg.Dir)
	path := journalPath(b.cfg.Dir, "dead")
	j, err := createJournal(path, &hello{ID: "dead"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.started("x5", []byte(`{"Assignm`)), j.file.Close()); err != nil {
		t.Fatal(err)
	}
	b.open()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the journal stays: %v", err)
	}
}

// A guard dies whose journal cannot be read at that moment, for want of files say. Its attempts have ended all the same: renewed for ever,
// they would keep their shards for ever.
func TestGuardDiesAndItsJournalCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x := b.start(command("sleep", "600"), far())
	b.until("it runs", func() bool { return len(marked(b.cfg.Dir, x)) > 0 })
	guards := guardPids(b.cfg.Dir)
	journals, err := filepath.Glob(filepath.Join(guardDir(b.cfg.Dir), "*.journal"))
	if err != nil || len(journals) != 1 || len(guards) != 1 {
		t.Fatal(journals, guards, err)
	}
	if err := errors.Join(os.Remove(journals[0]), os.Mkdir(journals[0], 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(guards[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := b.exit(x); e.Outcome.End != task.EndLeaseLost {
		t.Errorf("%+v", e.Outcome)
	}
	b.nothingLeft(x)
}
