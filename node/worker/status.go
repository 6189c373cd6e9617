package worker

import (
	"time"

	"lanjobs/task"
)

// Status is a snapshot for status pages. It holds lengths only: boot clock values never leave the process (I9).
type Status struct {
	Registered bool // the leader knows this incarnation
	Closing    bool
	Slots      int
	Free       int
	Attempts   []AttemptStatus
	Outbox     int // ends not yet acknowledged

	SinceRenewal time.Duration // since the last acknowledged renewal was sent; 0 = none yet
	SinceContact time.Duration // since the last answer of any kind; 0 = none yet
	Failures     int           // calls in a row without an answer
	LastError    string
}

// AttemptStatus is one attempt on this node.
type AttemptStatus struct {
	Ref       task.ShardRef
	Attempt   int
	Token     task.Token
	Execution task.ExecutionID
	State     string        // queued, preparing, confirming, starting, running, stopping, ended
	Left      time.Duration // of the belief; 0 or less: none
	UntilTerm time.Duration // to the SIGTERM, if nothing is renewed
	Failures  int           // renewals in a row that failed
	Stop      task.StopReason
}

// Status gives a snapshot.
func (w *Worker) Status() Status {
	now := w.clock.Boot()
	outbox := w.outbox.len()
	b := w.book
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Status{Registered: b.registered, Closing: b.closing,
		Slots: b.slots, Free: max(b.room()-len(b.queue), 0), Outbox: outbox, Failures: b.failures, LastError: b.lastErr}
	if b.lastAck != 0 {
		s.SinceRenewal = now.Sub(b.lastAck)
	}
	if b.lastHeard != 0 {
		s.SinceContact = now.Sub(b.lastHeard)
	}
	for _, a := range b.sorted() {
		s.Attempts = append(s.Attempts, a.status(now))
	}
	return s
}

func (a *attempt) status(now task.Boot) AttemptStatus {
	s := AttemptStatus{Ref: a.Ref(), Attempt: a.Attempt, Token: a.Token, Execution: a.Execution(), Failures: a.failures, State: a.phase.String()}
	if a.stop.told {
		s.State, s.Stop = "stopping", a.stop.reason
	}
	if a.believes(now) {
		s.Left, s.UntilTerm = a.deadlines.Remaining(now), a.deadlines.Term.Sub(now)
	}
	return s
}

func (p phase) String() string {
	return [...]string{"queued", "preparing", "confirming", "starting", "running", "ended"}[p]
}
