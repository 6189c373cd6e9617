package clustertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// TestTheLeaderKnowsItsMembers: a machine that the ledger does not know has a certificate and may still ask for nothing in a member's
// name. That happens after a restore: it joined later than the backup was made. One that was removed is refused alike.
func TestTheLeaderKnowsItsMembers(t *testing.T) {
	run(t, 2, func(c *cluster) {
		lead := c.leader()
		ask := func(from task.NodeID) error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return c.net.Caller(from).Call(ctx, lead.id, transport.MethodAPI, &transport.APIRequest{HTTPMethod: "GET", Path: "/v1/tokens", By: "mallory"}, &transport.APIReply{})
		}
		if err := ask("stranger"); !errors.Is(err, task.ErrNotAllowed) {
			t.Errorf("a stranger: %v", err)
		}
		c.propose(&fsm.SetNode{Node: "n2", Action: fsm.NodeRemove})
		if err := ask("n2"); !errors.Is(err, task.ErrNotAllowed) {
			t.Errorf("one that was removed: %v", err)
		}
	})
}
