package runner

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"lanjobs/task"
)

// begin starts the guard's long-lived goroutines. A fork keeps its thread until the new program is loaded, so there are twice as
// many spawners as processors; more would only fight for them.
func (g *guard) begin(ctx context.Context) {
	for range max(4, 2*runtime.NumCPU()) {
		go g.spawner(ctx)
	}
	go g.reaper()
	go g.poll(ctx)
	go g.flushLogs(ctx)
}

// spawner starts commands one after the other, on one thread that it never leaves: the kernel's parent-death signal follows the
// thread that forked, not the process. It is never the main thread, which as subreaper gets the orphans (see orphans).
func (g *guard) spawner(ctx context.Context) {
	runtime.LockOSThread()
	if threadID() == os.Getpid() {
		go g.spawner(ctx)
		<-ctx.Done()
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-g.queue:
			g.launch(a)
		}
	}
}

func (g *guard) launch(a *guarded) {
	g.mu.Lock()
	if a.reason == "" && g.clock.Boot() >= a.deadlines.Term {
		a.reason = task.StopLeaseLost // it waited so long, here or in the socket, that it must not begin any more
	}
	stopped := a.reason != ""
	g.forks++
	a.fork = g.forks
	g.inflight[a.fork] = true
	g.mu.Unlock()
	var err error
	if !stopped {
		err = g.start(a)
	}
	g.mu.Lock()
	delete(g.inflight, a.fork)
	g.forgetEarly()
	g.mu.Unlock()
	if stopped || err != nil {
		if err != nil {
			a.status = startFailure(err, &a.launch)
		}
		g.over(a, partAll)
	}
}

// earlyEnd is the end of a child that is no command yet: one whose fork has not returned, or an orphan.
type earlyEnd struct {
	status any
	forks  uint64 // begun by then: no later fork's child is meant, whatever its pid
}

// of tells whether it may be the end of the child of a fork. Pids are used again: where forks never cease, an orphan's end would
// else wait here until some command is given its pid, and be taken for that one's.
func (e earlyEnd) of(fork uint64) bool { return e.forks >= fork }

// takeEarly gives the end of a new command if it has come already; mu is held.
func (g *guard) takeEarly(a *guarded) (status any, ended bool) {
	e, ended := g.early[a.pid]
	delete(g.early, a.pid)
	return e.status, ended && e.of(a.fork)
}

// forgetEarly drops what no fork under way can be meant by; mu is held.
func (g *guard) forgetEarly() {
	for pid, e := range g.early {
		meant := false
		for fork := range g.inflight {
			meant = meant || e.of(fork)
		}
		if !meant {
			delete(g.early, pid)
		}
	}
}

// start makes the pipes and the process; once it returns nil the end comes from the reaper and the readers.
func (g *guard) start(a *guarded) error {
	out, outW, err := os.Pipe()
	if err != nil {
		return err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		closeQuietly(out)
		closeQuietly(outW)
		return err
	}
	a.output = newLogWriter(g.pack, a.x)
	a.pipes = [2]*os.File{out, errR}
	if a.slot, err = g.cgroup.getLimited(a.launch.Limits); err != nil {
		g.log.Warn("resource limits not set", "execution", a.x, "error", err)
	}
	g.forking.RLock()
	err = g.fork(a, []*os.File{g.null, outW, errW})
	g.forking.RUnlock()
	closeQuietly(outW)
	closeQuietly(errW)
	if err != nil {
		closeQuietly(out)
		closeQuietly(errR)
		return err
	}
	go g.read(a, out, streamOut, partOut)
	go g.read(a, errR, streamErr, partErr)
	return nil
}

// noteBirth registers a new process, with forking held for reading. It may have ended already, and it may have to stop at once.
func (g *guard) noteBirth(a *guarded, c child) {
	g.mu.Lock()
	a.child, a.pid = c, c.pid
	a.began, a.heard = g.clock.Boot(), g.clock.Awake()
	if a.launch.Timeout > 0 {
		a.timeoutAt = a.began.Add(a.launch.Timeout.Duration())
	}
	g.mains[a.pid] = a
	end, ended := g.takeEarly(a)
	g.notify(&message{Op: opStarted, X: a.x, Pid: a.pid})
	if !ended {
		g.bornLate(a)
	}
	g.mu.Unlock()
	nudge(g.born)
	if ended {
		go g.mainEnded(a, end)
	}
}

// bornLate stops a new process that should be stopping already; mu is held. A guard that was frozen in the middle of the fork may find
// its deadline behind it: then somebody else runs the shard, and the next poll would be too late.
func (g *guard) bornLate(a *guarded) {
	switch do, reason := a.due(a.began); {
	case do == actKill:
		if a.reason == "" {
			a.reason = reason
		}
		g.kill(a)
	case a.reason != "":
		go g.term(a)
	}
}

var readBuffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// read copies one pipe into the log until nobody can write to it any more, or over says that it is enough.
func (g *guard) read(a *guarded, f *os.File, s stream, p part) {
	buf := readBuffers.Get().(*[]byte)
	for {
		n, err := f.Read(*buf)
		if n > 0 {
			g.heardFrom(a)
			a.output.write(s, (*buf)[:n])
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			drain(f, *buf, func(b []byte) { a.output.write(s, b) })
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
				g.log.Warn("reading output", "execution", a.x, "error", err)
			}
			break
		}
	}
	readBuffers.Put(buf)
	closeQuietly(f)
	g.over(a, p)
}

// drainBound is how much is taken from a pipe after its command's end: more than a pipe holds.
const drainBound = 2 << 20

// drain takes what is in a pipe now and does not wait for more.
func drain(f *os.File, buf []byte, use func([]byte)) {
	if f.SetReadDeadline(time.Time{}) != nil {
		return
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	for total := 0; total < drainBound; {
		n := 0
		err := raw.Read(func(fd uintptr) bool {
			n = readNow(fd, buf)
			return true
		})
		if err != nil || n <= 0 {
			return
		}
		use(buf[:n])
		total += n
	}
}
