package clustertest

import (
	"testing"
	"time"
)

// How long nobody leads is counted from the moment at which the leader was lost, however long ago somebody asked for it last.
func TestSilenceBeginsWhenTheLeaderIsLost(t *testing.T) {
	run(t, 3, func(c *cluster) {
		l := c.leader()
		time.Sleep(10 * time.Minute)
		for _, m := range c.machines {
			if s := m.core.Silence(); s != 0 {
				t.Errorf("%s knows a leader and says silence for %s", m.id, s)
			}
		}
		for _, m := range c.machines {
			if m != l {
				c.net.Isolate(m.id)
			}
		}
		time.Sleep(time.Minute)
		for _, m := range c.machines {
			if s := m.core.Silence(); s > time.Minute || s < 50*time.Second {
				t.Errorf("%s says silence for %s, a minute after the cut", m.id, s)
			}
		}
		c.net.Heal()
		c.until(time.Minute, "a leader known to all", func() bool {
			for _, m := range c.machines {
				if m.core.LeaderID() == "" {
					return false
				}
			}
			return true
		})
		for _, m := range c.machines {
			if s := m.core.Silence(); s != 0 {
				t.Errorf("%s knows a leader again and says silence for %s", m.id, s)
			}
		}
	})
}
