package runner

import (
	"os"
	"time"

	"lanjobs/task"
)

// guarded is one attempt in the guard; the guard's mu guards it. See doc.go for its states.
type guarded struct {
	x         task.ExecutionID
	launch    launch
	record    []byte
	deadlines task.Deadlines
	fork      uint64 // the how manyth fork of this guard is its own
	pid       int
	began     task.Boot
	timeoutAt task.Boot     // 0 = never
	heard     time.Duration // awake clock, at its last sign of life
	reason    task.StopReason
	stopKill  task.Boot // once stopping: the kill, whatever becomes of the deadlines
	killing   bool
	done      part
	status    exitRecord  // of the command's own process
	exit      *exitRecord // set when all is over
	survivors []int
	output    *logWriter
	pipes     [2]*os.File // our ends
	child     child
	slot      *cgroupSlot
}

// part is a set of the things that must be over before an attempt has ended.
type part uint8

const (
	partMain part = 1 << iota // the command's own process
	partTree                  // everything it left behind
	partOut
	partErr
	partAll = partMain | partTree | partOut | partErr
)

// act is what a deadline asks for.
type act uint8

const (
	actNone act = iota
	actTerm
	actKill
)

// due decides from the clock alone. Kill comes before everything: whoever wakes past it gets no grace (I2).
func (a *guarded) due(now task.Boot) (act, task.StopReason) {
	switch {
	case a.killing:
		return actNone, ""
	case now >= a.deadlines.Kill:
		return actKill, task.StopLeaseLost
	case a.reason != "" && now >= a.stopKill:
		return actKill, a.reason
	case a.reason != "":
		return actNone, ""
	case a.timeoutAt != 0 && now >= a.timeoutAt:
		return actTerm, task.StopTimeout
	case now >= a.deadlines.Term:
		return actTerm, task.StopLeaseLost
	}
	return actNone, ""
}

// nextDue is the earliest moment at which due can say something new.
func (a *guarded) nextDue() task.Boot {
	next := a.deadlines.Kill
	if a.reason != "" {
		return min(next, a.stopKill)
	}
	next = min(next, a.deadlines.Term)
	if a.timeoutAt != 0 {
		next = min(next, a.timeoutAt)
	}
	return next
}

// stop is called with mu held. The first reason counts, the shortest grace too.
func (g *guard) stop(a *guarded, reason task.StopReason, grace time.Duration) {
	if a.killing || a.done&partMain != 0 {
		return // it ends already, by itself or by an earlier order
	}
	first := a.reason == ""
	killAt := g.clock.Boot().Add(grace)
	if first {
		a.reason, a.stopKill = reason, killAt
	}
	a.stopKill = min(a.stopKill, killAt)
	nudge(g.wake)
	switch {
	case a.pid == 0: // not started yet: launch sees the reason
	case grace <= 0:
		g.kill(a)
	case first:
		go g.term(a)
	}
}

// term tells the command why, then sends SIGTERM to its group (UX 3).
func (g *guard) term(a *guarded) {
	mode := os.FileMode(0o600)
	if a.launch.User != nil {
		mode = 0o644 // it is no secret, and the folder lets nobody list it
	}
	if err := writeWhole(a.launch.StopFile, []byte(string(a.reason)+"\n"), mode); err != nil {
		g.log.Warn("stop file not written", "execution", a.x, "error", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if a.done&partMain == 0 {
		a.child.terminate()
	}
}

// kill is called with mu held.
func (g *guard) kill(a *guarded) {
	if a.killing {
		return
	}
	a.killing = true
	g.hunting++
	go g.hunt(a)
}

// How long the end of an attempt waits for a process that does not die (a hung network share), and how patiently.
const (
	huntBound   = 5 * time.Second
	huntFirst   = time.Millisecond
	huntLongest = 50 * time.Millisecond
	huntLater   = time.Second
	pipeBound   = 100 * time.Millisecond
)

// hunt kills an attempt's processes until a search finds none. What survives for huntBound is reported, but hunted on.
func (g *guard) hunt(a *guarded) {
	begin := g.clock.Awake()
	wait := huntFirst
	reported, wide := false, false
	for {
		left, main := g.sweep(a, wide)
		if len(left) == 0 && !main {
			if wide {
				break
			}
			wide = true // once, to be sure
			continue
		}
		if !reported && g.clock.Awake()-begin > huntBound {
			reported, wait = true, huntLater
			g.giveUp(a, left)
		}
		<-g.clock.After(wait)
		if !reported {
			wait = min(2*wait, huntLongest)
		}
	}
	g.over(a, partTree)
	g.mu.Lock()
	g.hunting--
	g.mu.Unlock()
	nudge(g.changed)
}

// giveUp ends an attempt although some of its processes would not die.
func (g *guard) giveUp(a *guarded, left []int) {
	g.mu.Lock()
	a.survivors = left
	if a.done&partMain == 0 {
		a.status = exitRecord{Signal: 9}
	}
	g.mu.Unlock()
	g.log.Error("processes do not die", "execution", a.x, "pids", left)
	g.over(a, partMain|partTree)
}

// over notes that parts of an attempt are over. When its processes are, its pipes get a moment to run dry and no more: some
// stranger may hold their other ends (C29). Whoever brings the last part finishes it.
func (g *guard) over(a *guarded, p part) {
	g.mu.Lock()
	before := a.done
	a.done |= p
	after := a.done
	g.mu.Unlock()
	const processes = partMain | partTree
	if after&processes == processes && before&processes != processes && after != partAll {
		for _, f := range a.pipes {
			_ = f.SetReadDeadline(g.clock.Wall().Add(pipeBound)) // unsupported on Windows, where the job object closed all ends
		}
	}
	if after == partAll && before != partAll {
		g.finish(a)
	}
}

// finish comes once for each attempt.
func (g *guard) finish(a *guarded) {
	var packed *packPlace
	if a.output != nil {
		packed = a.output.close()
	}
	now := g.clock.Boot()
	g.mu.Lock()
	defer g.mu.Unlock()
	rec := a.status
	rec.Reason, rec.Survivors, rec.Packed = a.reason, a.survivors, packed
	if a.began != 0 {
		rec.RunMillis = task.MillisOf(now.Sub(a.began))
	}
	if rec.Reason == task.StopStalled {
		rec.Silent = a.launch.StallTimeout
	}
	if rec.Reason == "" && rec.Signal == 9 && now >= a.deadlines.Kill {
		rec.Reason = task.StopLeaseLost // the agent obeyed the deadline in our place
	}
	if rec.Reason == "" && (rec.Signal == 9 || rec.Code == 128+9) {
		n, ok := oomKills()
		rec.OOM = ok && n > g.oom[0]
	}
	if a.slot != nil && a.slot.limits.MemoryMB > 0 && rec.Reason == "" && a.slot.oomKilled() > 0 {
		rec.OOM, rec.MemoryMB = true, a.slot.limits.MemoryMB
	}
	a.exit = &rec
	a.child.release()
	g.cgroup.put(a.slot)
	g.noteJournal(g.journal.ended(a.x, a.exit))
	g.notify(&message{Op: opExit, X: a.x, Exit: a.exit})
	// Thousands may wait to be forgotten; a hunt may still need the mark.
	a.launch.Args, a.launch.Env, a.output = nil, nil, nil
	g.running--
	nudge(g.changed)
}

// stopAll obeys a SIGTERM: the machine shuts down, or a person means the guard itself.
func (g *guard) stopAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closing = true
	for _, a := range g.held {
		g.stop(a, task.StopShutdown, a.launch.StopGrace.Duration())
	}
	nudge(g.changed)
}
