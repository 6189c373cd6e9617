package worker

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"lanjobs/task"
	"lanjobs/task/runner"
)

// book is what this node holds and how it stands with the leader. mu guards everything in it, attempts included, and is
// never held over a call to Control, Runner or Store: methods change state and return what the caller has to do.
type book struct {
	mu       sync.Mutex
	attempts map[task.Token]*attempt
	byExec   map[task.ExecutionID]*attempt
	queue    []*attempt // phaseQueued, oldest first; at most as many as slots (admit)
	slots    int
	closing  bool // being shut down: nothing is taken any more
	// live counts the attempts of which a process may exist, finishing those of them with on_sleep finish: asked at each start and
	// end, when looking through all attempts would cost more than the rest.
	live, finishing int

	registered bool          // the leader knows this incarnation, as far as we heard
	announce   bool          // register again at the next turn, though the leader may know us
	asleep     bool          // from Sleep to Woke: nothing is asked for
	parked     bool          // the session rests for a sleep: nothing of it is on its way
	sleepCount time.Duration // see awakeAt
	pollCancel context.CancelCauseFunc
	short      shortLease

	flights   map[uint64]*flight
	lastID    uint64
	lastAck   task.Boot     // of any renewal; 0 = none yet
	lastHeard task.Boot     // of any answer
	failures  int           // calls in a row without an answer
	wakeIn    time.Duration // for which the keeper sleeps, from its last look
	wakeAt    task.Boot     // when it looks again by itself
	hurry     bool          // something is due before wakeAt
	lastErr   string
}

func newBook() *book {
	return &book{attempts: map[task.Token]*attempt{}, byExec: map[task.ExecutionID]*attempt{}, flights: map[uint64]*flight{}, slots: 1}
}

// order is a stop for the runner.
type order struct {
	execution task.ExecutionID
	token     task.Token
	reason    task.StopReason
	grace     task.Millis
}

func (b *book) setSlots(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slots = max(n, 0)
}

func (b *book) put(a *attempt) {
	b.attempts[a.Token] = a
	b.byExec[a.Execution()] = a
	b.count(a, 1)
}

// count adds an attempt of the book to the counts of what is live, or with -1 takes it out; what these depend on changes only
// between the two. Callers hold mu.
func (b *book) count(a *attempt, by int) {
	if a.gone || !a.live() {
		return
	}
	b.live += by
	if a.onSleep == task.OnSleepFinish {
		b.finishing += by
	}
}

// setPhase puts an attempt of the book into a phase. Callers hold mu.
func (b *book) setPhase(a *attempt, p phase) {
	b.count(a, -1)
	a.phase = p
	b.count(a, 1)
}

func (b *book) reattach(h runner.Held, now task.Boot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put(reattached(h, now))
}

// room is how many slots nothing fills; below 0 after slots were taken away.
func (b *book) room() int {
	n := b.slots
	for _, a := range b.attempts {
		if a.takesSlot() {
			n--
		}
	}
	return n
}

// want is what a poll asks for: all slots, but those that the leader thinks free and are not, as their process is still
// there though its lease is over. The leader counts what it has leased to this node itself, and gives no more than slots
// less that. So the parked poll's offer is right at every moment: a slot is free in the very entry that takes the report,
// with no word more from here.
func (b *book) want() int {
	if b.closing || b.asleep {
		return 0
	}
	n := b.slots
	for _, a := range b.attempts {
		if a.fenced && a.takesSlot() {
			n--
		}
	}
	return max(n, 0)
}

// admit takes what a poll brought. Known tokens are skipped: the leader repeats what it thinks is not known. What comes
// while the node takes no work is declined by a report, so that it is free at once (R7). More than the slots can ever take
// soon is left alone: the leader's own time-out for unconfirmed assignments frees it.
func (b *book) admit(as []task.Assignment, sent, now task.Boot, known func(task.Token) bool) (taken, left int, declined []task.Report) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range as {
		a := as[i]
		if b.attempts[a.Token] != nil || known(a.Token) {
			continue
		}
		switch {
		case b.closing:
			declined = append(declined, endReport(&a, task.Outcome{End: task.EndShutdown}))
			continue
		case b.asleep:
			declined = append(declined, endReport(&a, task.Outcome{End: task.EndDrained, Message: task.WentToSleep}))
			continue
		}
		if len(b.queue) >= b.slots {
			left++
			continue
		}
		at := newAttempt(a)
		at.sent, at.giveUp = sent, now.Add(a.FirstTTL.Duration())
		b.put(at)
		b.queue = append(b.queue, at)
		b.short.note(a.FirstTTL, now)
		taken++
	}
	return taken, left, declined
}

// remove drops an attempt that has ended or will never start. Callers hold mu.
func (b *book) remove(a *attempt) {
	if a.gone {
		return
	}
	b.count(a, -1)
	a.gone = true
	if i := slices.Index(b.queue, a); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
	}
	a.clear()
	delete(b.attempts, a.Token)
	delete(b.byExec, a.Execution())
}

// clear lets the launcher of a confirming attempt look again.
func (a *attempt) clear() {
	if a.cleared == nil {
		return
	}
	select {
	case <-a.cleared:
	default:
		close(a.cleared)
	}
}

// end drops an attempt whose end is in the outbox. A fenced one was missing in the parked poll's offer.
func (b *book) end(t task.Token) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.attempts[t]; a != nil {
		b.remove(a)
		if a.fenced {
			b.askAnew()
		}
	}
}

func (b *book) deferral(t task.Token) (task.Millis, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.attempts[t]; a != nil && a.deferred {
		return a.wait, true
	}
	return 0, false
}

// stoppedFor is why an attempt was told to stop, "" if it was not.
func (b *book) stoppedFor(t task.Token) task.StopReason {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.attempts[t]; a != nil {
		return a.stop.reason
	}
	return ""
}

// sorted is all attempts in the order of their tokens, so that requests and logs do not vary by chance. Callers hold mu.
func (b *book) sorted() []*attempt {
	out := make([]*attempt, 0, len(b.attempts))
	for _, a := range b.attempts {
		out = append(out, a)
	}
	slices.SortFunc(out, func(x, y *attempt) int { return cmp.Compare(x.Token, y.Token) })
	return out
}

// tokens is everything the node knows, for Holding and Held, in no order.
func (b *book) tokens() []task.Token {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]task.Token, 0, len(b.attempts))
	for t := range b.attempts {
		out = append(out, t)
	}
	return out
}

// empty tells whether nothing is here that might still run.
func (b *book) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.attempts) == 0
}

// endReport is the report of an attempt that no exit record tells of.
func endReport(a *task.Assignment, o task.Outcome) task.Report {
	return task.Report{Job: a.Job, Stage: a.Stage, Shard: a.Shard, Token: a.Token, Outcome: o}
}
