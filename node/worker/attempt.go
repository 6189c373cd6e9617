package worker

import (
	"time"

	"lanjobs/task"
	"lanjobs/task/runner"
)

// phase is how far an attempt has come on this node (drawing in doc.go).
type phase uint8

const (
	phaseQueued     phase = iota // waits for a slot
	phasePreparing               // has a slot; its spec is on the way
	phaseConfirming              // not started before its first renewal is acknowledged
	phaseStarting                // handed to the runner, which has not answered yet
	phaseRunning
	phaseEnded // its end is on the way to the outbox; no process of it
)

// attempt is one assignment on this node, from its arrival until its end is in the outbox. book.mu guards all of it.
type attempt struct {
	task.Assignment
	phase phase
	gone  bool            // no longer in the book
	terms task.LeaseTerms // of its stage; guessed until the spec is here (reattached ones)
	adopt bool            // the terms are a guess
	// onSleep is what its stage says of sleeps; not known while adopt.
	onSleep task.OnSleep
	ttl     task.Millis // the lease's length as granted or renewed last

	sent      task.Boot      // read before the poll that brought it was written
	giveUp    task.Boot      // if it has not started by then, it never will (enforce)
	deadlines task.Deadlines // zero: nothing may be believed yet
	cleared   chan struct{}  // made when it confirms; closed when the launcher is to look again

	acked    bool      // renewed at least once
	ackSent  task.Boot // when the newest acknowledged renewal was sent
	due      task.Boot // of its next renewal
	flight   uint64    // the renewal request it is in, 0 = none
	wanted   task.Boot // a task wants a renewal sent after this
	failures int       // renewals in a row that failed when it was due
	misses   int       // all that failed

	fenced bool // another execution may exist: no belief, no renewal
	lapsed bool // told to stop for its own deadline or by the strict rule
	killed bool // killed at its deadline
	stop   stopping

	saving     chan struct{} // made for the first checkpoint; one token: one at a time, so that numbers arrive in order
	seq        uint64        // of the last checkpoint tried; a number is never used for two contents
	checkpoint *task.Checkpoint
	progressed time.Duration // awake clock at the last progress sent
	deferred   bool
	wait       task.Millis // of the deferral
	requests   uint64      // request ids made for its writes
	put        pendingPut
}

// stopping is the strictest stop an attempt was told.
type stopping struct {
	told   bool
	reason task.StopReason
	kill   task.Boot // when its grace is over
}

func newAttempt(a task.Assignment) *attempt {
	at := &attempt{Assignment: a, ttl: a.FirstTTL, terms: task.DefaultLease(a.FirstTTL), adopt: true}
	if a.Checkpoint != nil {
		at.seq, at.checkpoint = a.Checkpoint.Seq, a.Checkpoint
	}
	return at
}

// reattached is an attempt that an earlier agent started. What its spec said is not known yet; the stop grace shows in
// the deadlines that the guard kept, and a first renewal is due at once.
func reattached(h runner.Held, now task.Boot) *attempt {
	at := newAttempt(h.Assignment)
	at.SpecDigest = "" // what was kept of it may not be the bytes that came
	at.phase, at.deadlines, at.due, at.acked = phaseRunning, h.Deadlines, now, true
	at.terms.StopGrace = max(task.MillisOf(h.Deadlines.Kill.Sub(h.Deadlines.Term)), 0)
	if !h.Running {
		at.phase = phaseEnded
	}
	return at
}

// live tells whether a process of it may exist.
func (a *attempt) live() bool { return a.phase == phaseStarting || a.phase == phaseRunning }

// over tells whether it will not start any more.
func (a *attempt) over() bool { return a.gone || a.phase == phaseEnded }

// takesSlot tells whether it fills one of the node's slots.
func (a *attempt) takesSlot() bool { return a.phase != phaseQueued && a.phase != phaseEnded }

// renewable tells whether renewals may name it. A stopped attempt is renewed until its process is gone: its last
// checkpoint and its report are then still accepted, and the shard is free at once (R7).
func (a *attempt) renewable() bool {
	return !a.fenced && (a.phase == phaseConfirming || a.live())
}

// believes tells from the local deadline alone whether the lease holds at now (I1).
func (a *attempt) believes(now task.Boot) bool { return !a.fenced && now < a.deadlines.End }

// fresh is the deadline rule of DESIGN 3: an assignment may start on its first lease, unrenewed, if the request that brought
// it was written after nothing older than half of the holder's share, and its SIGTERM lies ahead.
func (a *attempt) fresh(now task.Boot) bool {
	share := a.deadlines.End.Sub(a.sent)
	return a.deadlines.Remaining(now) >= share/2 && now < a.deadlines.Term
}

// heartbeat is the wait between renewals: what the stage says, never more than a third of the lease (R6).
func (a *attempt) heartbeat() time.Duration {
	h := a.terms.Heartbeat
	if h <= 0 {
		h = a.ttl / 10
	}
	return max(min(h, a.ttl/3).Duration(), minHeartbeat)
}

// renewTimeout is how long its renewal may stay unanswered. It grows with the failures as the waits between them do:
// a leader whose disk needs longer than a short lease's first time-out is still reached.
func (a *attempt) renewTimeout() time.Duration {
	d := task.RenewTimeout(a.ttl)
	if a.failures > 0 {
		d = max(d, task.RenewRetry(a.ttl, a.failures))
	}
	return d.Duration()
}

// extend takes an acknowledged renewal: counted from before its request was written, merged with what was believed.
func (a *attempt) extend(sent task.Boot, ttl task.Millis) {
	a.ttl, a.acked, a.failures = ttl, true, 0
	a.ackSent = max(a.ackSent, sent)
	a.deadlines = a.deadlines.Later(a.terms.HolderDeadlines(sent, ttl))
}

// lapse decides what the local deadline asks for now: nothing, SIGTERM with the grace that is left, or SIGKILL. The last is
// given once for all: the runner and the guard see it through.
func (a *attempt) lapse(now task.Boot) (reason task.StopReason, grace task.Millis, act bool) {
	left := max(task.MillisOf(a.deadlines.Kill.Sub(now)), 0)
	switch {
	case !a.live() || a.fenced || a.killed:
		return "", 0, false
	case now >= a.deadlines.Kill:
		reason = task.StopLeaseLost
		if !a.stop.told {
			reason = task.StopFenced // it slept through its Term: there is no lease left to be graceful in
		}
		a.killed, a.lapsed = true, true
		return reason, 0, true
	case a.lapsed:
		return "", 0, false
	case now >= a.deadlines.Term:
		a.lapsed = true
		return task.StopLeaseLost, left, true
	case a.terms.MaxRenewFailures > 0 && a.failures >= a.terms.MaxRenewFailures:
		a.lapsed = true
		return task.StopLeaseLost, min(a.terms.StopGrace, left), true
	}
	return "", 0, false
}

// nextLapse is when lapse has to look again.
func (a *attempt) nextLapse() task.Boot {
	if a.lapsed {
		return a.deadlines.Kill
	}
	return a.deadlines.Term
}

// note records a stop and tells whether it is stricter than what the attempt was told before: a second SIGTERM would
// only disturb the task's own shutdown.
func (a *attempt) note(reason task.StopReason, grace task.Millis, now task.Boot) bool {
	kill := now.Add(grace.Duration())
	if a.stop.told && kill >= a.stop.kill {
		return false
	}
	a.stop = stopping{told: true, reason: reason, kill: kill}
	return true
}
