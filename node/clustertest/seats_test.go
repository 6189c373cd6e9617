package clustertest

import (
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/fsm"
	"lanjobs/task"
)

// voting lists who votes, by the leader's Raft; nothing without a leader.
func (c *cluster) voting() (out []task.NodeID) {
	if l := c.leader(); l != nil {
		for _, s := range l.core.Servers() {
			if s.Suffrage == raft.Voter {
				out = append(out, task.NodeID(s.ID))
			}
		}
	}
	slices.Sort(out)
	return out
}

func (c *cluster) untilVoting(limit time.Duration, ids ...task.NodeID) {
	c.t.Helper()
	c.until(limit, "other voters", func() bool { return slices.Equal(c.voting(), ids) })
}

// Each machine of three sleeps for a night, the leader too: the others go on, and nobody loses a seat or its membership (R17).
func TestANightOfSleepCostsNeitherQuorumNorSeat(t *testing.T) {
	run(t, 3, func(c *cluster) {
		for i, m := range c.machines {
			wake := m.suspend()
			c.untilDone(c.submit("night-"+string(m.id), stage("a", 2, 10*task.Second)), 5*time.Minute)
			time.Sleep(11 * time.Minute) // no stand-by is there to take its seat
			if v := c.voting(); len(v) != 3 {
				t.Fatalf("while %s slept, %v vote", m.id, v)
			}
			wake()
			c.until(time.Minute, "all three answer again", func() bool {
				online := 0
				if l := c.leader(); l != nil {
					l.core.Read(func(s *fsm.State) {
						for _, n := range s.Nodes() {
							if n.Online && n.Gone == "" {
								online++
							}
						}
					})
				}
				return online == 3
			})
			if v := c.voting(); len(v) != 3 {
				t.Fatalf("after night %d %v vote", i, v)
			}
		}
	})
}

// With a fourth machine the seat of one that is gone is taken, and it comes back as a stand-by; a person's word gives it back.
func TestASpareMachineTakesTheSeatOfOneThatIsGone(t *testing.T) {
	run(t, 4, func(c *cluster) {
		all := c.ids()
		first := c.voting()
		gone := first[slices.IndexFunc(first, func(id task.NodeID) bool { return id != c.leader().id })]
		spare := all[slices.IndexFunc(all, func(id task.NodeID) bool { return !slices.Contains(first, id) })]
		c.machine(gone).crash()
		want := append(slices.DeleteFunc(slices.Clone(first), func(id task.NodeID) bool { return id == gone }), spare)
		slices.Sort(want)
		c.untilVoting(15*time.Minute, want...)
		c.machine(gone).start(false)
		time.Sleep(15 * time.Minute)
		c.untilVoting(time.Second, want...)
		c.propose(&fsm.SetNode{Node: gone, Action: fsm.NodePromote})
		c.until(time.Minute, "its seat", func() bool { return slices.Contains(c.voting(), gone) && len(c.voting()) == 3 })
	})
}

// A leader that is told not to vote gives its lead away first; jobs go on.
func TestADemotedLeaderGivesItsLeadAway(t *testing.T) {
	run(t, 4, func(c *cluster) {
		id := c.submit("through", stage("a", 6, 10*task.Second))
		leader := c.leader().id
		c.propose(&fsm.SetNode{Node: leader, Action: fsm.NodeDemote})
		c.until(time.Minute, "another leads and it votes no more", func() bool {
			v := c.voting()
			return c.leader() != nil && c.leader().id != leader && len(v) == 3 && !slices.Contains(v, leader)
		})
		c.untilDone(id, 5*time.Minute)
	})
}

func (c *cluster) machine(id task.NodeID) *machine {
	for _, m := range c.machines {
		if m.id == id {
			return m
		}
	}
	return nil
}
