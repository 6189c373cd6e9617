package plan

import (
	"slices"

	"lanjobs/fsm"
	"lanjobs/task"
)

// chooseSeat gives the index of the seat for the cursor's shard, -1 = it waits: its own node's if it is of a broadcast, else
// what the strategy chooses among the machines that it has had no trouble on. If it had some on all that have room, it waits
// for another machine when its exit code asked for one or it has failed here twice (R27); with no other machine it goes back
// to the same.
func (p *placer) chooseSeat(c *cursor) int {
	if !c.fit.anyRoom() {
		return -1
	}
	c.pick.last = c.queue.last
	if c.job.Spec.Stages[c.pick.stage].Broadcast {
		pinned := c.job.PinnedTo(c.pick.stage, c.pick.shard)
		i := slices.IndexFunc(c.fit.seats, func(s seat) bool { return s.id == pinned })
		if i < 0 || !c.fit.room(i) {
			return -1
		}
		return i
	}
	history := c.job.Shard(c.pick.stage, c.pick.shard).History()
	if len(history) == 0 {
		return c.queue.strategy.choose(&c.pick, c.fit)
	}
	return p.retrySeat(c, history)
}

func (p *placer) retrySeat(c *cursor, history []task.AttemptRecord) int {
	clean, at := c.fit.without(history)
	if clean.anyRoom() {
		if i := c.queue.strategy.choose(&c.pick, clean); i >= 0 {
			return at[i]
		}
		return -1
	}
	if len(clean.seats) == len(c.fit.seats) {
		return -1
	}
	if !p.elsewhere(c.fit, history) {
		return leastLoaded{}.choose(&c.pick, c.fit)
	}
	back, at := c.fit.but(func(node task.NodeID) bool { return insists(c.job, c.pick.stage, history, node) })
	if i := (leastLoaded{}).choose(&c.pick, back); i >= 0 {
		return at[i]
	}
	return -1
}

// without gives the seats that a shard has had no trouble on, and their places among all.
func (f *fit) without(history []task.AttemptRecord) (clean *fit, at []int) {
	return f.but(func(node task.NodeID) bool { return troubled(history, node) })
}

// but gives the seats that are not left out, and their places among all.
func (f *fit) but(out func(task.NodeID) bool) (rest *fit, at []int) {
	rest = &fit{need: f.need}
	for i := range f.seats {
		if !out(f.seats[i].id) {
			rest.seats = append(rest.seats, f.seats[i])
			at = append(at, i)
		}
	}
	return rest, at
}

// insists tells whether a shard is rather to wait than to go back to a machine. It must have failed there: one that merely lost it
// is another machine.
func insists(j *fsm.Job, stage int, history []task.AttemptRecord, node task.NodeID) bool {
	n := failures(history, node)
	return n >= 2 || n > 0 && j.Spec.Stages[stage].Retry.Judge(history[len(history)-1].Outcome) == task.VerdictElsewhere
}

// elsewhere tells whether a machine that a shard has not failed on fits it, busy or not.
func (p *placer) elsewhere(f *fit, history []task.AttemptRecord) bool {
	return slices.ContainsFunc(f.seats, func(s seat) bool { return failures(history, s.id) == 0 && s.id != p.Self })
}

// troubled tells whether a shard failed on a node, or was lost by it: another one is tried first.
func troubled(history []task.AttemptRecord, node task.NodeID) bool {
	return slices.ContainsFunc(history, func(a task.AttemptRecord) bool {
		end := a.Outcome.End
		return a.Node == node && (a.Counted || end == task.EndLeaseLost || end == task.EndLeaseExpired || end == task.EndNotConfirmed)
	})
}

// failures counts the attempts on a node that used up one of retry.attempts.
func failures(history []task.AttemptRecord, node task.NodeID) int {
	n := 0
	for _, a := range history {
		if a.Counted && a.Node == node {
			n++
		}
	}
	return n
}
