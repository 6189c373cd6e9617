package fsm

import (
	"strings"

	"lanjobs/task"
)

// apply stores a job and opens its first stages in the same step. The same request, or the same idempotency key with the
// same file, finds the first job (R31).
func (c *SubmitJob) apply(s *State) Result {
	if seq, ok := s.byRequest[c.RequestID]; ok && c.RequestID != "" {
		return Result{Job: s.JobBySeq(seq).ID, Existed: true}
	}
	if !validID(c.Job) || len(c.RequestID) > maxIDLength {
		return refuse(task.ErrInvalid, "", "a job needs an id, and an id has at most %d bytes", maxIDLength)
	}
	if _, taken := s.jobAt[c.Job]; taken {
		return refuse(task.ErrConflict, "", "job id %s is taken", c.Job)
	}
	spec, problem := s.intern(c.Spec, c.Digest)
	if problem != nil {
		return Result{Err: problem}
	}
	if r, done := s.sameKey(spec); done {
		return r
	}
	if problem := s.room(spec); problem != nil {
		return Result{Err: problem}
	}
	if s.jobs.n >= maxJobSeq {
		s.rebase()
	}
	if spec.users++; spec.users == 1 {
		s.specs[spec.JSON] = spec
		s.weight += spec.weight()
	}
	j := &Job{epoch: s.epoch, Seq: s.jobs.n, ID: task.JobID(strings.Clone(string(c.Job))), Spec: spec, Request: c.RequestID, State: task.JobPending,
		By: clip(c.By, task.MaxMessageLength), Submitted: s.Wall, SubmittedLed: s.Led, Stages: make([]Stage, len(spec.Stages))}
	for i := range j.Stages {
		n := spec.Stages[i].Shards
		j.Stages[i].shards = newCow[Shard](n)
		j.Stages[i].Counts[task.ShardPending] = int32(n)
		s.shards += n
	}
	s.jobs.push(j, s.epoch)
	s.live++
	s.indexIDs(j)
	s.emit(task.Event{Kind: task.EventJobSubmit, Job: j.ID, JobName: spec.Name, By: j.By, To: string(task.JobPending)})
	s.openStages(j)
	return Result{Job: j.ID}
}

// room refuses a job that the replicas' memory might not hold.
func (s *State) room(spec *Spec) *task.Problem {
	shards := 0
	for i := range spec.Stages {
		shards += spec.Stages[i].Shards
	}
	if s.shards+shards > maxTotalShards {
		return task.NewProblem(task.ErrTooLarge, "the jobs of this cluster have "+itoa(s.shards)+" shards together, at most "+itoa(maxTotalShards)+" are allowed", "Collect finished jobs earlier (retain).")
	}
	if s.jobs.n-s.oldestJob() >= maxJobSpan {
		return task.NewProblem(task.ErrTooLarge, "the oldest job is followed by too many newer ones", "Cancel or collect the oldest job.")
	}
	if spec.users > 0 {
		return nil
	}
	return s.full(spec.weight())
}

// sameKey answers a submit whose idempotency key was used within its window.
func (s *State) sameKey(spec *Spec) (Result, bool) {
	key := spec.IdempotencyKey
	seq, ok := s.byKey[key]
	if key == "" || !ok {
		return Result{}, false
	}
	old := s.JobBySeq(seq)
	if old == nil || s.Led-old.SubmittedLed >= old.Spec.IdempotencyWindow {
		return Result{}, false
	}
	if old.Spec.Digest != spec.Digest {
		r := refuse(task.ErrConflict, "Other work needs another key.", "idempotency key %q was used by %s with a different file", key, old.ID)
		r.Job = old.ID
		return r, true
	}
	return Result{Job: old.ID, Existed: true}, true
}

// apply removes finished jobs; the leader names those whose retention is over, and it is checked again here.
func (c *CollectJobs) apply(s *State) Result {
	for _, id := range c.Jobs {
		j := s.Job(id)
		if j == nil || !s.Collectable(j) {
			continue
		}
		delete(s.jobAt, id)
		if s.byRequest[j.Request] == j.Seq {
			delete(s.byRequest, j.Request)
		}
		if k := j.Spec.IdempotencyKey; s.byKey[k] == j.Seq {
			delete(s.byKey, k)
		}
		s.weight -= j.weight
		if j.Spec.users--; j.Spec.users == 0 {
			delete(s.specs, j.Spec.JSON)
			s.weight -= j.Spec.weight()
		}
		for i := range j.Stages {
			s.shards -= j.Stages[i].shards.n
		}
		*s.jobs.mut(j.Seq, s.epoch) = nil
		s.jobs.drop(j.Seq, func(j **Job) bool { return *j == nil })
		s.emit(task.Event{Kind: task.EventJobCollect, Job: id, JobName: j.Spec.Name, Reason: "retention"})
	}
	return Result{}
}

// Collectable tells whether a job's retention and idempotency window are over, and a repeat of its submit is no longer to
// be expected: it would start the job anew.
func (s *State) Collectable(j *Job) bool {
	if !j.State.Final() || s.Led-j.EndedLed < j.Spec.Retain || s.Led-j.SubmittedLed < requestWindow {
		return false
	}
	return j.Spec.IdempotencyKey == "" || s.Led-j.SubmittedLed >= j.Spec.IdempotencyWindow
}
