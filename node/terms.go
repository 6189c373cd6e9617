package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/task"
)

// ErrLeadershipLost is the cause with which the context of a term ends.
var ErrLeadershipLost = errors.New("leadership lost")

const (
	termPoll       = 250 * time.Millisecond
	barrierTimeout = 10 * time.Second
	barrierRetry   = 500 * time.Millisecond
)

// termed is the part of *raft.Raft that terms need.
type termed interface {
	State() raft.RaftState
	CurrentTerm() uint64
	LeaderCh() <-chan bool
	Barrier(time.Duration) raft.Future
}

// Terms calls lead for each term in which this node leads, one at a time, until ctx ends. The context it gets ends with
// ErrLeadershipLost as soon as the term is seen to be over; the next term waits until lead has returned.
//
// Before lead is called a barrier of that term was committed and applied: the state then holds all that former leaders
// committed. That is a proof; State and LeaderCh are hints.
type Terms struct {
	Raft  termed
	Clock task.Clock
	Lead  func(ctx context.Context, term uint64)
	// Stuck hears that Raft leads but has committed no barrier for barrierTimeout, while its followers may be well: a disk that
	// hangs (raft#503), or a transfer that never ended (#696). The cure is to restart Raft. May be nil.
	Stuck func(term uint64, err error)
}

// heldTerm is a term that this node leads.
type heldTerm struct {
	term   uint64
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// Run does it. LeaderCh only wakes it: the channel keeps just the latest value, so that a lost and regained leadership
// reads as "true" after "true".
func (t *Terms) Run(ctx context.Context) error {
	var now *heldTerm
	poll := t.Clock.NewTimer(termPoll)
	defer poll.Stop()
	defer func() { now.end(context.Cause(ctx)) }()
	for {
		term, leads := leadership(t.Raft)
		if now != nil && (!leads || term != now.term) {
			now.end(ErrLeadershipLost)
			now = nil
			continue // lead may have taken long to return: look again
		}
		if now == nil && leads {
			now = t.begin(ctx, term)
		}
		select {
		case <-t.Raft.LeaderCh():
		case <-poll.C():
			poll.Reset(termPoll)
		case <-ctx.Done():
			return nil
		}
	}
}

// leadership gives the term this node leads. Both values are read twice, since they change one after the other.
func leadership(r termed) (term uint64, leads bool) {
	for {
		term = r.CurrentTerm()
		leads = r.State() == raft.Leader
		if r.CurrentTerm() == term {
			return term, leads
		}
	}
}

func (t *Terms) begin(ctx context.Context, term uint64) *heldTerm {
	ctx, cancel := context.WithCancelCause(ctx)
	h := &heldTerm{term: term, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(h.done)
		if t.confirm(ctx, term) {
			t.Lead(ctx, term)
		}
	}()
	return h
}

// end cancels the term first, then waits for its work to return.
func (h *heldTerm) end(cause error) {
	if h == nil {
		return
	}
	h.cancel(cause)
	<-h.done
}

// confirm commits a barrier; it tries until that works or the term ends.
func (t *Terms) confirm(ctx context.Context, term uint64) bool {
	start, told := t.Clock.Awake(), false
	for ctx.Err() == nil {
		err := waitFuture(ctx, t.Clock, t.Raft.Barrier(barrierTimeout), barrierTimeout)
		now, leads := leadership(t.Raft)
		switch {
		case !leads || now != term:
			return false // Run ends the term
		case err == nil:
			return true
		case !told && t.Stuck != nil && t.Clock.Awake()-start >= barrierTimeout && ctx.Err() == nil:
			told = true
			t.Stuck(term, fmt.Errorf("leader of term %d without a barrier for %s: %w", term, barrierTimeout, err))
		}
		select {
		case <-t.Clock.After(barrierRetry):
		case <-ctx.Done():
		}
	}
	return false
}
