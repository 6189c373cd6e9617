package node

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
)

// led is Core.silent while a leader is known.
const led = -1

// Silence is for how long this node's Raft has known no leader, by the awake clock; since its start if it has known none, 0 while
// it knows one.
func (c *Core) Silence() time.Duration {
	since := c.silent.Load()
	if c.LeaderID() != "" || since == led { // led: lost only just now
		return 0
	}
	return c.parts.Clock.Awake() - time.Duration(since)
}

// Fresh tells whether this node's Raft has known no leader since its start: what it has applied is then no newer than its last
// snapshot.
func (c *Core) Fresh() bool { return !c.hasKnown.Load() }

// watchLeader hears of each change of leader as soon as this node's Raft does, and lets the worker know of a new one.
func (c *Core) watchLeader(ctx context.Context) error {
	news := make(chan raft.Observation, 1) // one is enough: what counts is who leads when it is taken out
	o := raft.NewObserver(news, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	c.raft.RegisterObserver(o)
	defer c.raft.DeregisterObserver(o)
	for {
		if c.LeaderID() == "" {
			c.silent.CompareAndSwap(led, int64(c.parts.Clock.Awake()))
		} else {
			c.silent.Store(led)
			c.hasKnown.Store(true)
			c.worker.LeaderFound()
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil
		}
	}
}
