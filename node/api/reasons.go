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
	if near := nearest(names, stage); near != "" {
		detail += fmt.Sprintf(" Did you mean %q?", near)
	}
	return task.NewProblem(task.ErrNotFound, detail, "Its stages: "+strings.Join(names, ", "))
}
