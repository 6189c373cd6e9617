//go:build linux

package runner

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
)

// quietGuard is a guard without a process of its own, for what cannot be brought about from outside.
func quietGuard(t *testing.T) *guard {
	t.Helper()
	dir := t.TempDir()
	j, err := createJournal(filepath.Join(dir, "g.journal"), &hello{ID: "g"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.file.Close() })
	return &guard{
		cfg: guardConfig{dir: dir}, clock: SystemClock(), log: testLog(t), journal: j,
		queue: make(chan *guarded, 8), changed: make(chan struct{}, 1), wake: make(chan struct{}, 1), born: make(chan struct{}, 1), stale: make(chan struct{}, 1),
		held: map[task.ExecutionID]*guarded{}, mains: map[int]*guarded{}, inflight: map[uint64]bool{}, early: map[int]earlyEnd{},
		orphans: map[int]task.ExecutionID{}, pack: &logPack{dir: dir, guard: "g"},
	}
}

// An agent dies right after it has sent a start, and the next one is told what the guard holds before that start is read. The cluster
// then runs the shard elsewhere: the start must count no more (I1, I13).
func TestStartOfAReplacedConnectionIsDropped(t *testing.T) {
	g := quietGuard(t)
	earlier, later := &outbox{}, &outbox{}
	start := func(x task.ExecutionID) *message {
		d := far()
		return &message{Op: opStart, X: x, Deadlines: &d, Launch: &launch{Path: "/bin/true", Args: []string{"true"}}}
	}
	g.out = earlier
	g.handle(earlier, start("x1"))
	g.out = later
	g.handle(earlier, start("x2"))
	g.handle(earlier, &message{Op: opBye})
	g.handle(later, start("x3"))
	if g.held["x1"] == nil || g.held["x2"] != nil || g.held["x3"] == nil || len(g.queue) != 2 || g.bye {
		t.Errorf("held %v, %d queued, bye %t", g.held, len(g.queue), g.bye)
	}
}

// flakyListener has no files for its first connections.
type flakyListener struct {
	net.Listener
	short atomic.Int32
}

func (l *flakyListener) Accept() (net.Conn, error) {
	if l.short.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

// A guard that gave up its door for good when files were short would be killed, with all that it runs, by the next agent.
func TestGuardGoesOnAccepting(t *testing.T) {
	g := quietGuard(t)
	path := filepath.Join(shortDir(t), "g")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	flaky := &flakyListener{Listener: l}
	flaky.short.Store(2)
	ended := make(chan struct{})
	go func() { g.accept(flaky, &hello{ID: "g"}); close(ended) }()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(untilBound))
	if _, err := conn.Read(make([]byte, 8)); err != nil {
		t.Errorf("no hello: %v", err)
	}
	if err := errors.Join(conn.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	<-ended
}

// Where forks never cease, the end of an orphan must not wait until some later command is given its pid.
func TestEndOfAnOrphanIsNobodyElses(t *testing.T) {
	g := quietGuard(t)
	const pid = 1 << 22 // above all that the kernel gives
	g.forks, g.inflight[1] = 1, true
	g.childEnded(pid, syscall.WaitStatus(0)) // an orphan: fork 1 gets another pid
	g.forks, g.inflight[2] = 2, true
	if _, ended := g.takeEarly(&guarded{x: "x2", fork: 2, pid: pid}); ended {
		t.Error("a later command with the same pid is taken for ended")
	}
	g.childEnded(pid, syscall.WaitStatus(0))
	delete(g.inflight, 1)
	g.forgetEarly()
	if _, ended := g.takeEarly(&guarded{x: "x2", fork: 2, pid: pid}); !ended {
		t.Error("the end of a command that was quicker than its fork is lost")
	}
	g.childEnded(pid, syscall.WaitStatus(0))
	delete(g.inflight, 2)
	if g.forgetEarly(); len(g.early) != 0 {
		t.Errorf("kept for nobody: %v", g.early)
	}
}

// A guard frozen in the middle of a fork, past the deadline of what it forks, must not leave that to its next poll: the agent has
// reported the end long ago.
func TestBornPastItsDeadline(t *testing.T) {
	g := quietGuard(t)
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a := &guarded{x: "x1", fork: 1, deadlines: deadlinesIn(-time.Minute, -time.Second), launch: launch{Mark: "LANJOBS_DIR=" + g.cfg.dir}}
	g.noteBirth(a, child{cmd.Process.Pid})
	g.mu.Lock()
	killing, reason := a.killing, a.reason
	g.mu.Unlock()
	if !killing {
		_ = cmd.Process.Kill()
	}
	_ = cmd.Wait()
	if !killing || reason != task.StopLeaseLost {
		t.Errorf("killing %t, reason %q", killing, reason)
	}
	g.over(a, partMain) // lets the hunt end
	until(t, "hunt ended", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return !killing || g.hunting == 0 })
}

// A disk that does not answer holds up the log of a task, and no deadline (I2).
func TestDeadlinesDoNotWaitForLogs(t *testing.T) {
	g := quietGuard(t)
	const nobody = 1 << 22 // no pid
	talker := &guarded{x: "x1", pid: nobody, deadlines: far(), output: newLogWriter(g.pack, "x1")}
	lapsing := &guarded{x: "x2", pid: nobody + 1, deadlines: deadlinesIn(3*pollInterval, time.Hour), output: newLogWriter(g.pack, "x2"),
		child: child{nobody + 1}, launch: launch{StopFile: filepath.Join(g.cfg.dir, "stop")}}
	g.held["x1"], g.held["x2"], g.running = talker, lapsing, 2
	talker.output.mu.Lock() // as whoever writes into that disk
	ctx, cancel := context.WithCancel(t.Context())
	var parts sync.WaitGroup
	parts.Go(func() { g.watch(ctx) })
	parts.Go(func() { g.flushLogs(ctx) })
	until(t, "told to stop", func() bool { return content(lapsing.launch.StopFile) != "" })
	talker.output.mu.Unlock()
	cancel()
	parts.Wait()
}

// A guard that is frozen between its hello and its list must not hold up the start of its node for ever.
func TestGuardThatStopsInTheMiddleOfAHandshake(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := b.r.Close(); err != nil {
		t.Fatal(err)
	}
	noGuards(t, b.cfg.Dir)
	frozen := exec.Command("sleep", "600")
	if err := frozen.Start(); err != nil {
		t.Fatal(err)
	}
	card := &hello{ID: "f0", Pid: frozen.Process.Pid}
	j, err := createJournal(journalPath(b.cfg.Dir, card.ID), card)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", b.r.guardSocket(card.ID))
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan net.Conn, 1)
	go func() {
		if conn, err := l.Accept(); err == nil {
			conns <- conn
			_ = (&outbox{conn: conn}).send(&message{Op: opHello, Hello: card})
		}
	}()
	opened := make(chan struct{})
	go func() { b.open(); close(opened) }()
	select {
	case <-opened:
	case <-time.After(untilBound):
		t.Error("the node waits for it for ever")
		_ = (<-conns).Close()
		<-opened
		_ = frozen.Process.Kill()
	}
	if err := frozen.Wait(); err == nil {
		t.Error("it was not killed")
	}
	_ = errors.Join(l.Close(), j.file.Close())
}

// A guard died while its agent was frozen, and its command's pid is somebody else's when the agent goes on: that one is not killed.
func TestPidOfSomebodyElse(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	now, pid := SystemClock().Boot(), cmd.Process.Pid
	mark := markName + "=" + filepath.Join(t.TempDir(), "attempt", "x1") // which it does not carry
	if n, err := sweepTargets([]target{{pid: pid, heard: now.Add(-time.Hour), mark: mark}}, 0, nil); n != 0 || err != nil {
		t.Errorf("%d killed: %v", n, err)
	}
	if n, err := sweepTargets([]target{{pid: pid, heard: now, mark: mark}}, 0, nil); n != 1 || err != nil {
		t.Errorf("its own: %d killed: %v", n, err)
		_ = cmd.Process.Kill()
	}
	_ = cmd.Wait()
}
