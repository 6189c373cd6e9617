package api

import (
	"fmt"
	"slices"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

// stageWhy explains the shards of one stage.
type stageWhy struct {
	*view
	j    *fsm.Job
	i    int
	st   *fsm.Stage
	spec *task.StageSpec

	fresh *explained // of its ready shards that have not failed, if they are all alike
	waits *explained // of its shards while it is not open
	group ranges     // the shards that these two are about
}

func (v *view) stage(j *fsm.Job, i int) *stageWhy {
	return &stageWhy{view: v, j: j, i: i, st: &j.Stages[i], spec: &j.Spec.Stages[i]}
}

// ready tells whether a shard waits for nothing of its own.
func (s *stageWhy) ready(sh *fsm.Shard) bool {
	return s.st.State == task.StageOpen && sh.State == task.ShardPending && sh.Due <= s.Clock && !s.j.State.Final()
}

// alike tells whether one answer does for all ready shards that have not failed: not where each has a machine of its own.
func (s *stageWhy) alike() bool {
	balance := task.BalanceLeastLoaded
	if q := s.Queue(s.j.Queue()); q != nil {
		balance = balanceOf(q)
	}
	return !s.spec.Broadcast && balance != task.BalanceModulo && balance != task.BalanceConsistentHash
}

// explained is what plan says of a shard: one reason for all machines, or machine by machine.
type explained struct {
	whole    plan.Reason
	machines []machine
}

// explain asks plan about a shard, once for those that are alike.
func (s *stageWhy) explain(k int) *explained {
	sh := s.st.At(k)
	kept := &s.waits
	switch {
	case s.st.State == task.StageWaiting:
	case s.ready(sh) && sh.Fails == 0 && s.alike():
		kept = &s.fresh
	default:
		kept = new(*explained)
	}
	if *kept == nil {
		e := &explained{}
		rs := plan.Explain(s.plan(), s.j.ID, s.i, k)
		if len(rs) == 1 && rs[0].Node == "" {
			e.whole = rs[0]
		} else {
			if home := s.j.PinnedTo(s.i, k); home != "" { // what keeps others is that it is not theirs
				rs = slices.DeleteFunc(rs, func(r plan.Reason) bool { return r.Node != home })
			}
			e.machines = s.worded(rs, s.spec)
		}
		*kept = e
	}
	return *kept
}

// sentence is what plan says in one sentence.
func (s *stageWhy) sentence(e *explained, sh *fsm.Shard) (why, fix string) {
	if e.whole.Kind != "" {
		return e.whole.Text, e.whole.Change
	}
	if anyRoom(e.machines) {
		return "is next", ""
	}
	var others []string
	failed := false
	for i := range e.machines {
		m := &e.machines[i]
		failed = failed || m.keeps == plan.KindFailed
		if m.keeps != plan.KindFailed && m.keeps != plan.KindLeads && !unable(m.keeps) {
			others = append(others, m.name+" "+m.why)
		}
	}
	if failed && len(others) > 0 {
		return "waits for a machine that it has not failed on: " + some(others, maxNamed, ", ") + "; " + s.last(sh) + s.used(sh), ""
	}
	return "no machine: " + obstacles(e.machines, s.spec.Require), ""
}

// why says in one sentence why a shard does not run or does not get on, "" if all is well with it, and what would help.
func (s *stageWhy) why(k int) (why, fix string) {
	sh := s.st.At(k)
	switch sh.State {
	case task.ShardPending:
		return s.whyPending(k, sh)
	case task.ShardAssigned, task.ShardRunning:
		return s.whyLeased(sh)
	case task.ShardFailed:
		return s.whyDead(sh), fmt.Sprintf("lanjobs retry %s --dead", s.j.ID)
	}
	return "", ""
}

func (s *stageWhy) whyPending(k int, sh *fsm.Shard) (why, fix string) {
	switch {
	case s.st.State == task.StageWaiting, s.ready(sh):
		return s.sentence(s.explain(k), sh)
	case s.st.State == task.StageOpen && sh.Due > s.Clock:
		return s.backoff(sh) + s.used(sh), ""
	}
	return "", ""
}

// used is how many of the attempts allowed are used up.
func (s *stageWhy) used(sh *fsm.Shard) string {
	if sh.Fails == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d attempts used)", sh.Fails, s.spec.Retry.Attempts)
}

func (s *stageWhy) whyDead(sh *fsm.Shard) string {
	if last := s.last(sh); last != "" {
		return "dead: " + last + s.used(sh)
	}
	return "dead"
}

// whyLeased is about a shard that a machine has.
func (s *stageWhy) whyLeased(sh *fsm.Shard) (why, fix string) {
	n := s.NodeByPlace(sh.Node)
	name, left := nodeName(n), sh.Due.Sub(s.Clock)
	held := s.Clock.Sub(max(sh.Renewed, sh.Granted))
	if reason, stopping := s.j.Stopping(s.i); stopping {
		return name + " is stopping it: " + reason, ""
	}
	switch {
	case s.j.Cancelling && s.j.Expired:
		return name + " is stopping it: " + s.j.CancelReason, ""
	case s.j.Cancelling:
		return name + " is stopping it (cancelled)", ""
	case n.Draining && n.DrainUntil > s.Clock:
		return fmt.Sprintf("%s is draining: it is stopped in %s and runs again elsewhere", name, shortMillis(n.DrainUntil.Sub(s.Clock))), ""
	case n.Draining:
		return name + " is draining: it is being stopped and runs again elsewhere", ""
	case sh.State == task.ShardAssigned && held >= assignedLong:
		return fmt.Sprintf("assigned to %s %s ago and not confirmed: goes back in %s", name, shortMillis(held), shortMillis(left)), ""
	case s.silent(n) || sh.State == task.ShardRunning && held > 3*s.spec.Lease.Heartbeat:
		return fmt.Sprintf("%s has not renewed for %s: another machine takes over in %s", name, shortMillis(held), shortMillis(left)), ""
	case sh.Fails > 0:
		return fmt.Sprintf("runs again after %s%s", s.last(sh), s.used(sh)), ""
	}
	return "", ""
}
