package api

import (
	"fmt"

	"lanjobs/fsm"
	"lanjobs/task"
)

// stageWhy explains the shards of one stage; what is the same for all of them is found once.
type stageWhy struct {
	*view
	j    *fsm.Job
	i    int
	st   *fsm.Stage
	spec *task.StageSpec

	wait string
}

func (v *view) stage(j *fsm.Job, i int) *stageWhy {
	return &stageWhy{view: v, j: j, i: i, st: &j.Stages[i], spec: &j.Spec.Stages[i]}
}

func (s *stageWhy) machines() []machine { return s.view.machines(s.spec) }

// ready tells whether a shard could be granted now.
func (s *stageWhy) ready(sh *fsm.Shard) bool {
	return s.st.State == task.StageOpen && sh.State == task.ShardPending && sh.Due <= s.Clock && !s.j.State.Final()
}

// crowded tells whether as many shards run as the stage allows.
func (s *stageWhy) crowded() bool {
	return s.spec.Parallelism > 0 && s.st.Active() >= s.spec.Parallelism
}

// why says in one sentence why a shard does not run or does not get on, "" if all is well with it, and what would help.
func (s *stageWhy) why(sh *fsm.Shard) (why, fix string) {
	switch sh.State {
	case task.ShardPending:
		return s.whyPending(sh)
	case task.ShardAssigned, task.ShardRunning:
		return s.whyLeased(sh)
	case task.ShardFailed:
		return s.whyDead(sh), fmt.Sprintf("lanjobs retry %s --dead", s.j.ID)
	}
	return "", ""
}

func (s *stageWhy) whyPending(sh *fsm.Shard) (why, fix string) {
	switch {
	case s.st.State == task.StageWaiting:
		return s.waits(), ""
	case !s.ready(sh) && s.st.State == task.StageOpen:
		return s.backoff(sh) + s.used(sh), ""
	case !s.ready(sh):
		return "", ""
	case s.crowded():
		return fmt.Sprintf("parallelism %d reached", s.spec.Parallelism), ""
	}
	if text := s.elsewhere(sh); text != "" {
		return text, ""
	}
	if ms := s.machines(); !anyRoom(ms) {
		return "no machine: " + obstacles(ms, s.spec.Require), ""
	}
	return "is next", ""
}

// waits names the stages that have to end first.
func (s *stageWhy) waits() string {
	if s.wait != "" {
		return s.wait
	}
	var texts []string
	for _, need := range s.spec.Needs {
		st := &s.j.Stages[s.j.Spec.Stage(need)]
		if !st.State.Done() {
			texts = append(texts, fmt.Sprintf("%s (%d/%d)", need, st.Counts[task.ShardSucceeded], st.Len()))
		}
	}
	s.wait = "waits for " + some(texts, maxNamed, ", ")
	return s.wait
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
	switch {
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

// elsewhere says that a shard is kept back for a machine it has not failed on, "" if it is not (R27).
func (s *stageWhy) elsewhere(sh *fsm.Shard) string {
	h := sh.History()
	if sh.Fails == 0 || len(h) == 0 {
		return ""
	}
	failed := map[task.NodeID]int{}
	for _, a := range h {
		if a.Counted {
			failed[a.Node]++
		}
	}
	var again *machine // where it would run if it did not wait: the least loaded, as plan chooses
	other := ""
	ms := s.machines()
	for i := range ms {
		switch m := &ms[i]; {
		case m.keeps == canRun && failed[m.id] == 0:
			return "" // it goes there
		case m.keeps == canRun && (again == nil || m.load < again.load):
			again = m
		case m.keeps == full && failed[m.id] == 0 && m.id != s.leader:
			other = m.name + " " + m.why
		}
	}
	if again == nil || other == "" || failed[again.id] < 2 && s.spec.Retry.Judge(h[len(h)-1].Outcome) != task.VerdictElsewhere {
		return ""
	}
	return "waits for a machine that it has not failed on: " + other + "; " + s.last(sh) + s.used(sh)
}
