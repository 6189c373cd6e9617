package fsm

import (
	"slices"

	"lanjobs/task"
)

// apply takes the ends of attempts. Repeating an accepted report is accepted again and changes nothing (R20).
func (c *Report) apply(s *State) Result {
	codes := make([]string, len(c.Reports))
	for i := range c.Reports {
		if p := s.report(c.Node, &c.Reports[i]); p != nil {
			codes[i] = p.Code
		}
	}
	return Result{Codes: codes}
}

func (s *State) report(from task.NodeID, r *task.Report) *task.Problem {
	ref, o := task.ShardRef{Job: r.Job, Stage: r.Stage, Shard: r.Shard}, cleanOutcome(r.Outcome)
	if slices.Contains(clusterEnds, o.End) {
		return task.NewProblem(task.ErrInvalid, "only the cluster ends an attempt as "+string(o.End), "")
	}
	l := s.leases[r.Token]
	if l == nil || l.Ref != ref || s.nodes[l.Node].Info.ID != from {
		if s.alreadyReported(ref, r.Token, from) {
			return nil
		}
		return s.stale(ref, r.Token, from, "report of "+o.String())
	}
	j := s.mutJob(l.Seq)
	sh := s.mutShard(j, ref.Stage, ref.Shard)
	var outputs []task.KV
	if j.Spec.Stages[ref.Stage].Retry.Judge(o) == task.VerdictSucceeded && len(r.Outputs) > 0 {
		for _, kv := range r.Outputs {
			if p := checkOutput(kv); p != nil {
				return p
			}
		}
		outputs = putKVs(sh.Outputs(), r.Outputs)
		if p := checkOutputs(outputs); p != nil {
			return p
		}
		if p := s.full(heavier(sh, outputs)); p != nil && s.Members() >= LevelCare { // those below do not know this rule
			return p
		}
	}
	s.released.add(s, j, ref, sh, o.String())
	s.endAttempt(j, ref.Stage, ref.Shard, sh, o, outputs)
	return nil
}

// heavier is how many bytes more a shard holds once it has succeeded with outputs.
func heavier(sh *Shard, outputs []task.KV) int64 {
	x := Extra{Outputs: outputs}
	more := x.weight()
	if old := sh.Extra; old != nil {
		x.Outputs = old.Outputs
		more -= x.weight() + int64(len(old.Checkpoint.Data))
	}
	return more
}

// clusterEnds are the ends that no node reports: they tell an attempt that was taken from its node from one that it ended.
var clusterEnds = []task.End{task.EndLeaseExpired, task.EndNotConfirmed, task.EndNodeRestarted}

// cleanOutcome cuts a reported outcome to what is kept of it.
func cleanOutcome(o task.Outcome) task.Outcome {
	o.End = task.End(clip(string(o.End), maxEndLength))
	o.Message = clip(o.Message, task.MaxMessageLength)
	o.Tail = clipTail(o.Tail, task.MaxTailBytes)
	o.RunMillis, o.Wait = length(o.RunMillis), length(o.Wait)
	return o
}

const maxEndLength = 32

// alreadyReported tells whether this token's attempt was ended by a report of the same node before.
func (s *State) alreadyReported(ref task.ShardRef, t task.Token, from task.NodeID) bool {
	j := s.Job(ref.Job)
	if j == nil {
		return false
	}
	sh := j.Shard(ref.Stage, ref.Shard)
	if sh == nil {
		return false
	}
	if sh.Token == t && sh.State == task.ShardSucceeded && sh.Skipped() == "" {
		return s.nodes[sh.Node].Info.ID == from
	}
	for _, a := range sh.History() {
		if a.Token == t {
			return a.Node == from && !slices.Contains(clusterEnds, a.Outcome.End)
		}
	}
	return false
}
