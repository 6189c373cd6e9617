package node

import (
	"context"
	"sync"
	"time"

	"lanjobs/transport"
)

// Sleep prepares this node for its machine's sleep, which begins within about budget (R16): leadership is handed over while what
// runs is stopped or left, as each task wants it, and the leader is told. It holds until Woke.
func (c *Core) Sleep(ctx context.Context, budget time.Duration) {
	c.asleep.Store(true)
	ctx, cancel := transport.WithTimeout(ctx, c.parts.Clock, budget)
	defer cancel()
	var hand sync.WaitGroup
	hand.Go(func() {
		if err := c.HandOver(ctx); err != nil {
			c.parts.Log.Info("leadership not handed over before the sleep", "error", err)
		}
	})
	if err := c.worker.Sleep(ctx, budget); err != nil {
		c.parts.Log.Warn("the leader does not know of the sleep", "error", err)
	}
	hand.Wait()
}

// Woke ends what Sleep began: the machine is awake again, or its sleep was called off. Without a Sleep before it does nothing.
func (c *Core) Woke() {
	if c.asleep.Swap(false) {
		c.worker.Woke()
	}
}
