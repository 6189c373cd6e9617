package node

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

// sleepers is a cluster of which one machine is awake.
type sleepers struct {
	transport.Caller
	awake task.NodeID
}

func (s sleepers) Call(ctx context.Context, to task.NodeID, _ transport.Method, _, reply any) error {
	if to != s.awake {
		<-ctx.Done() // a machine that sleeps answers nothing
		return context.Cause(ctx)
	}
	reply.(*transport.WhoReply).Leader = s.awake
	return nil
}

// A worker without a log finds the leader at once, however many machines sleep: asked one after the other they would take longer than
// any call of a worker waits.
func TestLeaderIsFoundAmongSleepers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		members := []task.NodeID{"a", "b", "c", "d", "e", "f", "g", "h"}
		c := &control{self: "a", caller: sleepers{awake: "h"}, clock: runner.SystemClock(), known: func() task.NodeID { return "" },
			members: func() []task.NodeID { return members }}
		begin := time.Now()
		if id, err := c.find(t.Context()); id != "h" || err != nil || time.Since(begin) >= whoTimeout {
			t.Errorf("%q after %s: %v", id, time.Since(begin), err)
		}
		c = &control{self: "a", caller: sleepers{}, clock: runner.SystemClock(), known: c.known, members: c.members}
		if id, err := c.find(t.Context()); id != "" || err != nil || time.Since(begin) != whoTimeout {
			t.Errorf("all asleep: %q after %s: %v", id, time.Since(begin), err)
		}
	})
}

// fullDisk is where crashes are counted on a disk that takes nothing more.
type fullDisk struct{}

func (fullDisk) Crashes() (int, error) { return 1, nil }
func (fullDisk) Forgive() error        { return errors.New("no space left on device") }

// A node that cannot note that its crash was told of is registered all the same: unregistered it would renew nothing.
func TestRegistrationDoesNotWaitForTheDisk(t *testing.T) {
	lead := &registrar{}
	c := &control{self: "a", caller: lead, clock: runner.SystemClock(), known: func() task.NodeID { return "l" }, crashes: fullDisk{}}
	if _, err := c.Register(t.Context(), &transport.RegisterRequest{}); err != nil || len(lead.told) != 1 || lead.told[0] != 1 {
		t.Errorf("told %v: %v", lead.told, err)
	}
}
