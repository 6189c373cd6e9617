package cli

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/task"
)

func TestColourRules(t *testing.T) {
	for _, c := range []struct {
		env, flag string
		tty, want bool
	}{
		{"", "", true, true}, {"", "", false, false}, {"NO_COLOR=1", "", true, false}, {"NO_COLOR=", "", true, true}, {"CLICOLOR=0", "", true, false},
		{"TERM=dumb", "", true, false}, {"CLICOLOR_FORCE=1", "", false, true}, {"CLICOLOR_FORCE=0", "", false, false}, {"NO_COLOR=1", "always", false, true},
		{"CLICOLOR_FORCE=1", "never", true, false}, {"CLICOLOR_FORCE=1", "auto", false, true},
	} {
		b := newBench(t)
		home(b)
		name, value, _ := strings.Cut(c.env, "=")
		b.env[name] = value
		b.w.outTTY = c.tty
		args := []string{"ls"}
		if c.flag != "" {
			args = append(args, "--color", c.flag)
		}
		b.expect(exitDone, args...)
		if got := strings.Contains(b.out.String(), "\x1b["); got != c.want {
			t.Errorf("%q %q terminal %t: colour %t, want %t", c.env, c.flag, c.tty, got, c.want)
		}
	}
}

func TestTerminal(t *testing.T) {
	b := newBench(t)
	home(b)
	b.w.outTTY, b.w.size, b.env["NO_COLOR"] = true, func() (int, int) { return 60, 24 }, "1"
	b.expect(exitDone, "ls")
	b.env["LANG"] = "C"
	b.expect(exitDone, "status")
	b.expect(exitDone, "show", "j7k2xz")
	for _, r := range b.out.String() {
		if r > 127 {
			t.Errorf("not ASCII: %q", b.out)
			break
		}
	}
	if got := isUTF8(&world{goos: "darwin", getenv: func(string) string { return "" }}); !got {
		t.Error("a Mac without locale variables speaks UTF-8")
	}
}

// TestNothingSteersTheTerminal: texts of tasks and people have no control characters left.
func TestNothingSteersTheTerminal(t *testing.T) {
	b := newBench(t)
	j := b.api.add(task.Spec{Name: "x", Stages: []task.StageSpec{{Name: "main", Shards: 1}}})
	j.view.Note, j.view.Reason, j.view.State = "a\x1b[2Jb\nc", "\x07", task.JobRunning
	j.shards = []task.ShardView{{Stage: "main", State: "running", Progress: "\x1b]0;x\x07"}}
	for _, line := range []string{"ls", "show x", "show x --shards", "status"} {
		b.expect(exitDone, strings.Fields(line)...)
		if strings.ContainsAny(b.out.String(), "\x1b\x07") {
			t.Errorf("%s: %q", line, b.out)
		}
	}
}

func TestLengths(t *testing.T) {
	for s, want := range map[float64]string{-1: "0s 0s", 0: "0s 0s", 59: "59s 59s", 252: "4m 4m12s", 3599: "59m 59m59s", 7500: "2h 2h05m", 200000: "2d 2d7h"} {
		if got := short(s) + " " + length(s); got != want {
			t.Errorf("%v: %s, want %s", s, got, want)
		}
	}
}

// TestWatch: elsewhere than on a terminal only rows that changed are added, and no row because it is older.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		home(b)
		b.w.clock = testClock{}
		go func() {
			for i := range 5 {
				time.Sleep(watchEvery)
				b.api.change(func() {
					for _, j := range b.api.jobs {
						j.view.AgeSeconds++
					}
					if i == 2 {
						b.api.jobs[0].view.State = task.JobRunning
					}
				})
			}
		}()
		b.expect(exitTimeout, "ls", "-w", "--timeout", "20s")
		if n := strings.Count(b.out.String(), "\n"); n != 5 {
			t.Errorf("%d lines, want head, 3 jobs, 1 change:\n%s", n, b.out)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		home(b)
		b.w.clock = testClock{}
		time.AfterFunc(5*time.Second, func() {
			b.api.change(func() { b.api.jobs[0].view.AgeSeconds++; b.api.jobs[1].view.State = task.JobRunning })
		})
		b.expect(exitTimeout, "ls", "-w", "-o", "json", "--timeout", "20s")
		if n := strings.Count(b.out.String(), "\n"); n != 4 || strings.Contains(b.out.String(), "\n ") {
			t.Errorf("%d lines of JSON, want 3 jobs and 1 change:\n%s", n, b.out)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		home(b)
		b.w.clock, b.w.outTTY = testClock{}, true
		b.expect(exitTimeout, "status", "-w", "--timeout", "3s", "--color", "never")
		if n := strings.Count(b.out.String(), "\x1b[10A\r"); n != 1 {
			t.Errorf("the second frame does not go over the first: %q", b.out)
		}
	})
}

// TestWatchThroughElection keeps the last picture and goes on.
func TestWatchThroughElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		home(b)
		b.w.clock = testClock{}
		time.AfterFunc(5*time.Second, func() { b.api.change(func() { b.api.leader = false }) })
		time.AfterFunc(65*time.Second, func() { b.api.change(func() { b.api.leader = true; b.api.jobs[0].view.State = task.JobRunning }) })
		b.expect(exitTimeout, "ls", "-w", "--timeout", "90s")
		b.wants("stdout", b.out.String(), "nightly-backup  j7jw01  running")
		b.wants("stderr", b.err.String(), "the cluster cannot take changes")
	})
}
