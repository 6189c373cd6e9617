package transport

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"lanjobs/task"
)

type raftGuard struct {
	leader  func() task.NodeID
	hasLog  func() bool
	standBy func(task.NodeID) bool
}

// errPreVote is how a node of before pre-votes answers: Raft takes it for "ask for the vote itself".
var errPreVote = errors.New("unexpected command: a newly promoted voter may ask for the vote itself")

// check holds the guards. The texts must not contain "unexpected command", which Raft takes for a granted pre-vote; errPreVote
// means that.
func (t *RaftTransport) check(from task.NodeID, command any) error {
	request, ok := command.(raft.WithRPCHeader)
	if !ok {
		return fmt.Errorf("request of %s without a sender", from)
	}
	if h := request.GetRPCHeader(); string(h.ID) != string(from) || string(h.Addr) != string(from) {
		return fmt.Errorf("request in the name of %q at %q on the stream of %s", h.ID, h.Addr, from)
	}
	guard := t.guard.Load()
	switch command.(type) {
	case *raft.RequestVoteRequest, *raft.RequestPreVoteRequest:
		if !t.voting.Load() {
			if guard == nil || !guard.hasLog() {
				return errors.New("no vote from a node with an empty log")
			}
			t.voting.Store(true)
		}
		if guard := t.guard.Load(); guard.leader() == "" && guard.standBy(from) {
			return promoted(command)
		}
	case *raft.TimeoutNowRequest:
		if guard == nil || guard.leader() != from {
			return fmt.Errorf("transfer of leadership by %s, which is not the leader here", from)
		}
	}
	return nil
}

// promoted lets a request for a vote be judged by term and log alone: without an id in it Raft looks for nothing else.
func promoted(command any) error {
	vote, ok := command.(*raft.RequestVoteRequest)
	if !ok {
		return errPreVote
	}
	vote.ID = nil
	return nil
}
