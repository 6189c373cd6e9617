package api

import (
	"fmt"
	"strings"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// maxReasons bounds an answer; what is beyond it is counted together. maxLooks bounds the shards that are looked at one by one
// while the state is held still.
const (
	maxReasons = 100
	maxLooks   = 20_000
)

// reasons gathers why shards do not run, those with the same reason together (R41).
type reasons struct {
	list  []*reason
	at    map[reasonKey]*reason
	looks int
}

type reasonKey struct{ stage, node, why string }

type reason struct {
	reasonKey
	fix    string
	shards ranges
	first  *fsm.Shard // of those that wait for their time, the one that comes first
}

func (r *reasons) add(stage string, shard int, why, fix string) *reason {
	key := reasonKey{stage, "", why}
	x := r.at[key]
	if x == nil && len(r.list) >= maxReasons {
		key.why, fix = "further reasons", ""
		x = r.at[key]
	}
	if x == nil {
		x = &reason{reasonKey: key, fix: fix}
		r.list = append(r.list, x)
		r.at[key] = x
	}
	x.shards.add(shard)
	return x
}

// whyViews says, machine by machine where machines are the reason, why a job's shards do not run or do not get on. wanted
// chooses shards.
func (v *view) whyViews(j *fsm.Job, wanted func(stage, shard int) bool) []transport.WhyView {
	rs := &reasons{at: map[reasonKey]*reason{}}
	for i := range j.Stages {
		v.whyStage(rs, j, i, wanted)
	}
	out := []transport.WhyView{}
	for _, x := range rs.list {
		w := transport.WhyView{Stage: x.stage, Shards: x.shards.String(), Node: x.node, Why: x.why, Fix: x.fix}
		if x.first != nil {
			w.Why = "retry in " + shortMillis(x.first.Due.Sub(v.Clock))
			if x.shards.n > 1 {
				w.Why += ", the others later"
			}
			if x.why != "" {
				w.Why += ": " + x.why
			}
		}
		out = append(out, w)
	}
	return out
}

func (v *view) whyStage(rs *reasons, j *fsm.Job, i int, wanted func(stage, shard int) bool) {
	s := v.stage(j, i)
	next := ranges{} // what only machines keep from running
	for k := range s.st.Len() {
		if !wanted(i, k) {
			continue
		}
		switch sh := s.st.At(k); {
		case s.st.State == task.StageWaiting && sh.State == task.ShardPending:
			rs.add(s.spec.Name, k, s.waits(), "")
		case sh.State == task.ShardSucceeded || sh.State == task.ShardCancelled:
		case s.ready(sh) && !s.crowded() && (sh.Fails == 0 || rs.looks > maxLooks):
			next.add(k)
		default:
			s.lookAt(rs, k, sh, &next)
		}
	}
	if next.n == 0 {
		return
	}
	for _, m := range s.machines() {
		why := m.why
		if m.keeps == canRun {
			why += ": takes the next shard"
		}
		rs.list = append(rs.list, &reason{reasonKey: reasonKey{s.spec.Name, m.name, why}, fix: m.fix, shards: next})
	}
	if len(s.machines()) == 0 {
		rs.list = append(rs.list, &reason{reasonKey: reasonKey{s.spec.Name, "", "the cluster has no machine"}, shards: next})
	}
}

// lookAt adds the reason of a shard that may have one of its own.
func (s *stageWhy) lookAt(rs *reasons, k int, sh *fsm.Shard, next *ranges) {
	if rs.looks++; rs.looks > maxLooks {
		rs.add(s.spec.Name, k, "is one of many, and was not looked at", "")
		return
	}
	if sh.State == task.ShardPending && s.st.State == task.StageOpen && sh.Due > s.Clock {
		x := rs.add(s.spec.Name, k, s.last(sh)+s.used(sh), "")
		if x.first == nil || sh.Due < x.first.Due {
			x.first = sh
		}
		return
	}
	if s.ready(sh) && !s.crowded() && s.elsewhere(sh) == "" {
		next.add(k)
		return
	}
	if why, fix := s.why(sh); why != "" {
		rs.add(s.spec.Name, k, why, fix)
	}
}

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

// shardWanted makes a choice of shards of a stage's name ("" = all) and ranges (none = all).
func shardWanted(j *fsm.Job, stage string, shards []task.Range) (func(i, k int) bool, error) {
	at := -1
	if stage != "" {
		if at = j.Spec.Stage(stage); at < 0 {
			return nil, noStage(j, stage)
		}
	}
	return func(i, k int) bool {
		if at >= 0 && i != at {
			return false
		}
		for _, r := range shards {
			if r.First <= k && k <= r.Last {
				return true
			}
		}
		return len(shards) == 0
	}, nil
}

func noStage(j *fsm.Job, stage string) error {
	var names []string
	for i := range j.Spec.Stages {
		names = append(names, j.Spec.Stages[i].Name)
	}
	detail := fmt.Sprintf("job %s has no stage %s.", j.ID, shown(stage))
	if near := nearest(names, stage); near != "" {
		detail += fmt.Sprintf(" Did you mean %q?", near)
	}
	return task.NewProblem(task.ErrNotFound, detail, "Its stages: "+strings.Join(names, ", "))
}
