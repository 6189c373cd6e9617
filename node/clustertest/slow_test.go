package clustertest

import (
	"testing"
	"time"

	"lanjobs/task"
)

// A machine so far away that it can never hold a short lease must not keep the shard from the others.
func TestALinkTooSlowForTheLeaseDoesNotHoldUpTheJob(t *testing.T) {
	for _, delay := range []time.Duration{100, 300, 500, 600, 700, 800} {
		t.Run((delay * time.Millisecond).String(), func(t *testing.T) {
			run(t, 3, func(c *cluster) {
				l := c.leader()
				for _, m := range c.machines {
					if m != l {
						c.net.Delay(m.id, l.id, delay*time.Millisecond)
						break
					}
				}
				id := c.submit("j1", stage("a", 8, 2*task.Second))
				c.untilDone(id, 5*time.Minute)
			})
		})
	}
}
