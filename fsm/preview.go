package fsm

import "lanjobs/task"

// maxPreview bounds the shards of a stage in a preview: with more, waiting for the next entry is nothing beside the job.
const maxPreview = 4096

// Preview is the job that c makes if it is applied next, its first stages open, so that a leader can grant its shards in the
// very entry that stores it. It is nil if c makes no job, or if what opens depends on more than the spec. It only reads;
// Grant checks everything again.
func (s *State) Preview(c *SubmitJob) *Job {
	if _, repeated := s.byRequest[c.RequestID]; repeated && c.RequestID != "" || s.Job(c.Job) != nil {
		return nil
	}
	spec, problem := s.intern(c.Spec, c.Digest)
	if problem != nil || spec.Schedule != nil || spec.IdempotencyKey != "" {
		return nil
	}
	queue, problem := s.queueFor(spec)
	if problem != nil || s.room(spec) != nil {
		return nil
	}
	j := &Job{Seq: s.jobs.n, ID: c.Job, Spec: spec, queue: queue, State: task.JobPending, Priority: spec.Priority, Stages: make([]Stage, len(spec.Stages))}
	for i := range j.Stages {
		st, plan := &j.Stages[i], &spec.Stages[i]
		if len(spec.needs[i]) > 0 {
			continue
		}
		if open, _ := j.holds(i); !open || dynamic(plan) || plan.ShardKey != "" || plan.Shards > maxPreview {
			return nil
		}
		st.State = task.StageOpen
		st.shards = newCow[Shard](plan.Shards)
		st.Counts[task.ShardPending] = int32(plan.Shards)
		st.ready = newBitset(plan.Shards, spec.ranks[i])
		st.ready.full(plan.Shards)
	}
	return j
}
