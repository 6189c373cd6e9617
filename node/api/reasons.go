package api

import (
	"fmt"
	"slices"
	"strings"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
	"lanjobs/transport"
)

// maxReasons bounds an answer; what is beyond it is counted together. maxLooks bounds the shards that are looked at one by one
// while the state is held still.
const (
	maxReasons = 100
	maxLooks   = 20_000
	maxAsked   = 500 // questions to plan
)

// reasons gathers why shards do not run, those with the same reason together (R41).
type reasons struct {
	list  []*reason
	at    map[reasonKey]*reason
	looks int
	asked int // questions to plan
}

type reasonKey struct{ stage, node, why string }

type reason struct {
	reasonKey
	fix    string
	shards ranges
	first  *fsm.Shard // of those that wait for their time, the one that comes first
}

func (r *reasons) add(stage, node string, shard int, why, fix string) *reason {
	key := reasonKey{stage, node, why}
	x := r.at[key]
	if x == nil && len(r.list) >= maxReasons {
		key.why, key.node, fix = "further reasons", "", ""
		x = r.at[key]
	}
	if x == nil {
		x = &reason{reasonKey: key, fix: fix}
		r.list = append(r.list, x)
		r.at[key] = x
	}
	if shard >= 0 {
		x.shards.add(shard)
	}
	return x
}

// whyViews says, machine by machine where machines are the reason, why a job's shards do not run or do not get on. wanted
// chooses shards.
func (v *view) whyViews(j *fsm.Job, wanted func(stage, shard int) bool) []transport.WhyView {
	rs := &reasons{at: map[reasonKey]*reason{}}
	v.whyJob(rs, j)
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

// whyJob is about the job's own time limits (R30).
func (v *view) whyJob(rs *reasons, j *fsm.Job) {
	switch {
	case j.State == task.JobExpired:
		rs.add("", "", -1, "expired: "+j.CancelReason, "")
	case j.State == task.JobPending && j.Spec.StartWithin > 0 && !j.Cancelling:
		rs.add("", "", -1, fmt.Sprintf("expires in %s if nothing of it has started by then (start_within)", shortMillis(j.SubmittedLed+j.Spec.StartWithin-v.Led)), "")
	case j.State == task.JobRunning && j.Spec.Deadline > 0 && !j.Cancelling:
		rs.add("", "", -1, fmt.Sprintf("is stopped in %s if it has not ended by then (deadline)", shortMillis(j.StartedLed+j.Spec.Deadline-v.Led)), "")
	}
}

func (v *view) whyStage(rs *reasons, j *fsm.Job, i int, wanted func(stage, shard int) bool) {
	s := v.stage(j, i)
	if s.st.Reason != "" && s.st.State.Done() {
		rs.add(s.spec.Name, "", -1, fmt.Sprintf("the stage is %s: %s", s.st.State, s.st.Reason), "")
	}
	for k := range s.st.Len() {
		if !wanted(i, k) {
			continue
		}
		switch sh := s.st.At(k); {
		case sh.State == task.ShardSucceeded || sh.State == task.ShardCancelled:
		case s.waits != nil, s.fresh != nil && s.ready(sh) && sh.Fails == 0:
			s.group.add(k) // as another one: there may be a million
		default:
			s.lookAt(rs, k, sh)
		}
	}
	e := s.waits
	if e == nil {
		e = s.fresh
	}
	if s.group.n == 0 {
		return
	}
	if e.whole.Kind != "" {
		rs.list = append(rs.list, &reason{reasonKey: reasonKey{s.spec.Name, "", e.whole.Text}, fix: e.whole.Change, shards: s.group})
	}
	for _, m := range e.machines {
		rs.list = append(rs.list, &reason{reasonKey: reasonKey{s.spec.Name, m.name, m.why}, fix: m.fix, shards: s.group})
	}
}

// lookAt adds the reasons of a shard that may have some of its own.
func (s *stageWhy) lookAt(rs *reasons, k int, sh *fsm.Shard) {
	if rs.looks++; rs.looks > maxLooks {
		rs.add(s.spec.Name, "", k, "is one of many, and was not looked at", "")
		return
	}
	switch {
	case sh.State != task.ShardPending:
		if why, fix := s.why(k); why != "" {
			rs.add(s.spec.Name, "", k, why, fix)
		}
	case s.st.State == task.StageOpen && sh.Due > s.Clock:
		x := rs.add(s.spec.Name, "", k, s.last(sh)+s.used(sh), "")
		if x.first == nil || sh.Due < x.first.Due {
			x.first = sh
		}
	case s.st.State == task.StageWaiting, s.ready(sh):
		if rs.asked++; rs.asked > maxAsked {
			rs.add(s.spec.Name, "", k, "is one of many, and was not looked at", "")
			return
		}
		s.tell(rs, k, sh)
	}
}

// tell adds what plan says of a shard. What keeps it back for a machine that it has not failed on is one sentence.
func (s *stageWhy) tell(rs *reasons, k int, sh *fsm.Shard) {
	e := s.explain(k)
	kept := slices.ContainsFunc(e.machines, func(m machine) bool { return m.keeps == plan.KindFailed })
	switch {
	case e == s.fresh, e == s.waits:
		s.group.add(k)
	case e.whole.Kind != "", kept && !anyRoom(e.machines):
		why, fix := s.sentence(e, sh)
		rs.add(s.spec.Name, "", k, why, fix)
	case s.fresh != nil && anyRoom(e.machines):
		s.group.add(k)
	default:
		for i := range e.machines {
			m := &e.machines[i]
			rs.add(s.spec.Name, m.name, k, m.why, m.fix)
		}
	}
}

// shardWanted makes a choice of shards of a stage's name ("" = all) and ranges in order (none = all).
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
		return within(shards, k)
	}, nil
}

func noStage(j *fsm.Job, stage string) error {
	var names []string
	for i := range j.Spec.Stages {
		names = append(names, j.Spec.Stages[i].Name)
	}
	detail := fmt.Sprintf("job %s has no stage %s.", j.ID, shown(stage))
	if near := task.Nearest(names, stage); near != "" {
		detail += fmt.Sprintf(" Did you mean %q?", near)
	}
	return task.NewProblem(task.ErrNotFound, detail, "Its stages: "+strings.Join(names, ", "))
}
