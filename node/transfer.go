package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/task"
	"lanjobs/transport"
)

// Why leadership was not handed over.
var (
	// ErrNotLeading: there is nothing to hand over.
	ErrNotLeading = errors.New("this node does not lead")
	// ErrNoSuccessor: no other voter answered in time with all of the log. Just stop: the others elect one of themselves.
	ErrNoSuccessor = errors.New("no voter is ready to take over the lead")
	// ErrTransferTried: once per term; after that the leader stops its work, whatever came of it.
	ErrTransferTried = errors.New("leadership was already being handed over in this term")
)

const (
	readyTimeout    = time.Second // an answer older than that says nothing
	readyPatience   = 3 * readyTimeout
	readyPause      = 20 * time.Millisecond // right after the last entry everybody is behind
	transferTimeout = 5 * time.Second
)

// leading is the part of *raft.Raft that a transfer needs.
type leading interface {
	State() raft.RaftState
	CurrentTerm() uint64
	LastIndex() uint64
	GetConfiguration() raft.ConfigurationFuture
	LeadershipTransferToServer(raft.ServerID, raft.ServerAddress) raft.Future
}

var (
	_ leading = (*raft.Raft)(nil)
	_ termed  = (*raft.Raft)(nil)
)

// Transfer hands leadership over before a planned stop or sleep. Two tries at a voter that swallows packets would leave a flag
// set in Raft that makes a later leadership of this node refuse everything for ever (#696), so only a voter that answered
// just now, with the whole log, is asked, and one try is made per term.
type Transfer struct {
	Self  task.NodeID
	Raft  leading
	Clock task.Clock
	// Ready asks a voter for the last index of its log (transport.MethodPing).
	Ready func(ctx context.Context, voter task.NodeID) (lastIndex uint64, err error)

	mu    sync.Mutex
	tried uint64 // term
}

// Do returns nil once another node is known to take over: to, or any for "". Callers stop proposing before, and stop leading after, in
// any case.
func (t *Transfer) Do(ctx context.Context, to task.NodeID) error {
	term := t.Raft.CurrentTerm()
	if t.Raft.State() != raft.Leader {
		return ErrNotLeading
	}
	config := t.Raft.GetConfiguration()
	if err := waitFuture(ctx, t.Clock, config, readyTimeout); err != nil {
		return fmt.Errorf("hand over the lead: %w", err)
	}
	var voters []task.NodeID
	for _, s := range config.Configuration().Servers {
		if s.Suffrage == raft.Voter && s.ID != raft.ServerID(t.Self) && (to == "" || s.ID == raft.ServerID(to)) {
			voters = append(voters, task.NodeID(s.ID))
		}
	}
	for start := t.Clock.Awake(); ; {
		if to, ok := t.successor(ctx, voters); ok {
			return t.hand(ctx, term, to)
		}
		if t.Clock.Awake()-start >= readyPatience-readyTimeout {
			return ErrNoSuccessor
		}
		select {
		case <-t.Clock.After(readyPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// successor gives the first voter that answers with all of the log.
func (t *Transfer) successor(ctx context.Context, voters []task.NodeID) (task.NodeID, bool) {
	ctx, cancel := transport.WithTimeout(ctx, t.Clock, readyTimeout)
	defer cancel()
	want := t.Raft.LastIndex()
	answers := make(chan task.NodeID, len(voters))
	for _, v := range voters {
		go func() {
			if last, err := t.Ready(ctx, v); err == nil && last >= want && ctx.Err() == nil {
				answers <- v
				return
			}
			answers <- ""
		}()
	}
	for range voters {
		select {
		case v := <-answers:
			if v != "" {
				return v, true
			}
		case <-ctx.Done():
			return "", false
		}
	}
	return "", false
}

// hand makes the one try of this term.
func (t *Transfer) hand(ctx context.Context, term uint64, to task.NodeID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tried == term {
		return ErrTransferTried
	}
	t.tried = term
	f := t.Raft.LeadershipTransferToServer(raft.ServerID(to), raft.ServerAddress(to))
	if err := waitFuture(ctx, t.Clock, f, transferTimeout); err != nil {
		return fmt.Errorf("hand the lead over to %s: %w", to, err)
	}
	return nil
}
