package runner

import (
	"context"
	"time"

	"lanjobs/task"
)

// The guard looks at the boot clock at least this often while something runs. Timers alone would not do: they stand still
// while the machine sleeps (I2).
const (
	pollInterval = 100 * time.Millisecond
	pollShortest = time.Millisecond
	// A longer gap between two looks means that this process was frozen or the machine slept; then the agent, thawed with
	// it, gets pollMercy to bring renewals that wait in the socket. Together far below the 250 ms of I2.
	pollGap   = time.Second
	pollMercy = 50 * time.Millisecond
	oomSample = 10 // polls
)

func (g *guard) poll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.wake:
			g.watch(ctx)
		}
	}
}

// watch obeys deadlines as long as something runs.
func (g *guard) watch(ctx context.Context) {
	g.sampleOOM()
	g.sampleOOM() // an old count would blame the first failure on a kill of long ago
	timer := g.clock.NewTimer(pollShortest)
	defer timer.Stop()
	last, seen := g.clock.Boot(), g.clock.Awake()
	ticked, ticks := last, 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		case <-g.wake:
		}
		now := g.clock.Boot()
		if now.Sub(last) > pollGap {
			<-g.clock.After(pollMercy)
			now = g.clock.Boot()
		}
		last = now
		awake := g.clock.Awake()
		if gap := awake - seen; gap > pollGap {
			g.pardon(gap)
		}
		seen = awake
		if now.Sub(ticked) >= pollInterval {
			ticked = now
			if ticks++; ticks%oomSample == 0 {
				g.sampleOOM()
			}
			nudge(g.stale)
		}
		next, running := g.obey(now, awake)
		if !running {
			return
		}
		timer.Reset(min(max(next.Sub(now), pollShortest), pollInterval))
	}
}

// obey does what is due and tells when it should be called again.
func (g *guard) obey(now task.Boot, awake time.Duration) (next task.Boot, running bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	next = now.Add(pollInterval)
	for _, a := range g.held {
		if a.pid == 0 || a.done&partMain != 0 {
			continue
		}
		switch do, reason := a.due(now); do {
		case actKill:
			if a.reason == "" {
				a.reason = reason
			}
			g.kill(a)
		case actTerm:
			g.beginStop(a, reason, now)
		case actNone:
			if a.stalled(awake) {
				g.beginStop(a, task.StopStalled, now)
			}
		}
		if !a.killing {
			next = min(next, a.nextDue())
		}
	}
	g.watching = g.running > 0
	return next, g.watching
}

// flushLogs brings the logs of what runs up to date at each tick. It is apart from watch, since a disk that does not answer must not
// keep a deadline from being obeyed.
func (g *guard) flushLogs(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.stale:
		}
		for _, w := range g.openLogs() {
			w.flushStale()
		}
	}
}

func (g *guard) openLogs() (out []*logWriter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.held {
		if a.pid != 0 && a.done&partMain == 0 {
			out = append(out, a.output)
		}
	}
	return out
}

// beginStop is called with mu held. A lost lease gives the grace that its deadlines have; a time-out and a stall
// give the job's.
func (g *guard) beginStop(a *guarded, reason task.StopReason, now task.Boot) {
	a.reason = reason
	a.stopKill = a.deadlines.Kill
	if graceful(reason) {
		a.stopKill = now.Add(a.launch.StopGrace.Duration())
	}
	if a.stopKill <= now {
		g.kill(a)
		return
	}
	go g.term(a)
}

// sampleOOM keeps the kernel's count of memory kills from one to two seconds ago: a command that died by SIGKILL while the
// count rose was very likely one of them.
func (g *guard) sampleOOM() {
	n, ok := oomKills()
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.oom[0], g.oom[1] = g.oom[1], n
}
