//go:build linux

package runner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
)

// order is what a test tells an agent in a process of its own, on its standard input.
type order struct {
	Do         string
	Assignment *task.Assignment
	Spec       *task.Spec
	X          task.ExecutionID
	D          task.Deadlines
	Reason     task.StopReason
	Grace      task.Millis
}

// word is what it answers.
type word struct {
	Held []Held `json:",omitempty"`
	Exit *Exit  `json:",omitempty"`
	Open bool   `json:",omitempty"`
}

// agentMain is an agent: a runner that obeys its input until that ends, or it is killed.
func agentMain(args []string) int {
	exe, _ := os.Executable()
	idle := time.Second
	if len(args) > 1 {
		idle, _ = time.ParseDuration(args[1])
	}
	r, err := Open(context.Background(), Config{Dir: args[0], Exe: exe, NodeName: "nas", Backend: &fakeBackend{}, GuardIdle: idle})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var mu sync.Mutex
	say := func(w word) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(jsonOf(w))
	}
	say(word{Open: true, Held: r.Held()})
	go func() {
		for e := range r.Exits() {
			say(word{Exit: &e})
		}
	}()
	in := json.NewDecoder(os.Stdin)
	for {
		var o order
		if in.Decode(&o) != nil {
			break
		}
		switch o.Do {
		case "start":
			if err := r.Start(o.Assignment, o.Spec, o.D); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		case "extend":
			r.Extend(o.X, o.D)
		case "stop":
			r.Stop(o.X, o.Reason, o.Grace)
		case "forget":
			r.Forget(o.X)
		}
	}
	_ = r.Close()
	return 0
}

// agent is such a process, seen from the test.
type agent struct {
	t     *testing.T
	cmd   *exec.Cmd
	to    *json.Encoder
	words chan word
	held  []Held
}

// newAgent starts one; idle is how long its guard stays without work and without an agent, a second by default.
func newAgent(t *testing.T, dir string, idle ...string) *agent {
	t.Helper()
	a := &agent{t: t, cmd: exec.Command(self(t), append([]string{"agent", dir}, idle...)...), words: make(chan word, 100)}
	in, err := a.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	a.cmd.Stderr = os.Stderr
	a.to = json.NewEncoder(in)
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(a.words)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var w word
			if json.Unmarshal(lines.Bytes(), &w) == nil {
				a.words <- w
			}
		}
	}()
	t.Cleanup(a.kill)
	if w := a.hear(); w.Open {
		a.held = w.Held
	} else {
		t.Fatalf("agent did not open: %+v", w)
	}
	return a
}

func (a *agent) hear() word {
	a.t.Helper()
	select {
	case w := <-a.words:
		return w
	case <-time.After(untilBound):
		a.t.Fatal("agent says nothing")
		return word{}
	}
}

func (a *agent) exit(x task.ExecutionID) Exit {
	a.t.Helper()
	for {
		w := a.hear()
		if w.Exit == nil {
			a.t.Fatalf("waiting for the end of %s, heard %+v", x, w)
		}
		if w.Exit.Assignment.Execution() == x {
			return *w.Exit
		}
	}
}

func (a *agent) tell(o order) {
	a.t.Helper()
	if err := a.to.Encode(o); err != nil {
		a.t.Fatal(err)
	}
}

func (a *agent) start(as *task.Assignment, spec *task.Spec, d task.Deadlines) task.ExecutionID {
	a.t.Helper()
	a.tell(order{Do: "start", Assignment: as, Spec: spec, D: d})
	return as.Execution()
}

// kill is SIGKILL, as a crash would be.
func (a *agent) kill() {
	if a.cmd.ProcessState == nil {
		_ = a.cmd.Process.Kill()
		_ = a.cmd.Wait()
	}
}

func (a *agent) signal(s syscall.Signal) {
	a.t.Helper()
	if err := a.cmd.Process.Signal(s); err != nil {
		a.t.Fatal(err)
	}
	if s == syscall.SIGSTOP {
		stopped(a.t, a.cmd.Process.Pid)
	}
}

// stampMain writes the boot clock to a file every few milliseconds and ends for nobody but SIGKILL.
func stampMain(args []string) int {
	signal.Ignore(syscall.SIGTERM)
	f, err := os.OpenFile(args[0], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return 1
	}
	for {
		fmt.Fprintf(f, "%d\n", SystemClock().Boot())
		time.Sleep(2 * time.Millisecond)
	}
}

// taskMain is what package cli makes of `lanjobs task …`, as far as tests need it.
func taskMain(args []string) int {
	c, err := NewTaskClient(os.Getenv, SystemClock())
	if err == nil {
		var code int
		if code, err = taskCommand(c, args); err == nil {
			return code
		}
	}
	fmt.Fprintln(os.Stderr, "lanjobs:", err)
	if errors.Is(err, task.ErrStaleToken) || errors.Is(err, task.ErrConflict) {
		return 7
	}
	return 6
}

func taskCommand(c *TaskClient, args []string) (int, error) {
	ctx := context.Background()
	switch args[0] {
	case "save":
		seq, err := c.SaveCheckpoint(ctx, []byte(args[1]))
		if err == nil {
			fmt.Println("saved", seq)
		}
		return 0, err
	case "guard":
		return c.Guard(ctx, 0, args[1:])
	}
	return 2, nil
}
