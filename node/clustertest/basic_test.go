package clustertest

import (
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
)

func TestOneMachineRunsAJob(t *testing.T) {
	run(t, 1, func(c *cluster) {
		id := c.submit("j1", stage("a", 3, task.DefaultTTL), stage("b", 1, task.DefaultTTL, "a"))
		c.untilDone(id, time.Minute)
	})
}

func TestThreeMachinesRunAJobAndTheLeaderRunsNothing(t *testing.T) {
	run(t, 3, func(c *cluster) {
		id := c.submit("j1", stage("a", 12, task.DefaultTTL), stage("b", 1, task.DefaultTTL, "a"))
		c.untilDone(id, 2*time.Minute)
		l := c.leader()
		l.core.Read(func(s *fsm.State) {
			for i := range s.Job(id).Stages[0].Len() {
				sh := s.Job(id).Stages[0].At(i)
				if n := s.NodeByPlace(sh.Node).Info.ID; n == l.id {
					t.Errorf("shard %d ran on the leader", i)
				}
			}
		})
	})
}
