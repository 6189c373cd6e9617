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
	spec, problem := s.intern(c.Spec, c.Digest)
	if problem != nil {
		return Result{Err: problem}
	}
	if spec.Schedule != nil {
		return c.applySchedule(s, spec)
	}
	if _, taken := s.jobAt[c.Job]; taken {
		r := refuse(task.ErrConflict, "", "job id %s is taken", c.Job)
		r.IDTaken = true
		return r
	}
	if r, done := s.sameKey(spec); done {
		return r
	}
	queue, problem := s.queueFor(spec)
	if problem != nil {
		return Result{Err: problem}
	}
	if problem := s.room(spec); problem != nil {
		return Result{Err: problem}
	}
	j := &Job{ID: task.JobID(strings.Clone(string(c.Job))), Spec: spec, queue: queue, Request: c.RequestID, By: clip(c.By, task.MaxMessageLength)}
	s.addJob(j)
	return Result{Job: j.ID}
}

// addJob stores a job and opens its first stages. It may end at once, if there is nothing to do.
func (s *State) addJob(j *Job) {
	if s.jobs.n >= maxJobSeq {
		s.rebase()
	}
	spec := j.Spec
	s.useSpec(spec)
	j.epoch, j.Seq, j.State, j.Priority, j.Submitted, j.SubmittedLed = s.epoch, s.jobs.n, task.JobPending, spec.Priority, s.Wall, s.Led
	j.Stages = make([]Stage, len(spec.Stages))
	for i := range j.Stages {
		n := spec.Stages[i].Shards
		j.Stages[i].shards = newCow[Shard](n)
		j.Stages[i].Counts[task.ShardPending] = int32(n)
		s.shards += n
	}
	s.jobs.push(j, s.epoch)
	s.begin(j)
	s.watch(j)
	s.indexIDs(j)
	s.emit(task.Event{Kind: task.EventJobSubmit, Job: j.ID, JobName: spec.Name, By: j.By, To: string(task.JobPending)})
	s.openStages(j)
}

// useSpec and dropSpec count who refers to a spec: the last one takes it along.
func (s *State) useSpec(spec *Spec) {
	if spec.users++; spec.users == 1 {
		s.specs[spec.JSON] = spec
		s.weight += spec.weight()
	}
}

func (s *State) dropSpec(spec *Spec) {
	if spec.users--; spec.users == 0 {
		delete(s.specs, spec.JSON)
		s.weight -= spec.weight()
	}
}

// room refuses a job that the replicas' memory might not hold.
func (s *State) room(spec *Spec) *task.Problem {
	shards, keys := 0, 0
	for i := range spec.Stages {
		shards += spec.Stages[i].Shards
		if spec.Stages[i].ShardKey != "" {
			keys += max(spec.Stages[i].Shards, 1)
		}
	}
	if keys > 0 && len(s.keyAt)+keys > maxKeys {
		return task.NewProblem(task.ErrTooLarge, "the cluster remembers "+itoa(len(s.keyAt))+" shard keys, at most "+itoa(maxKeys)+" are allowed", "Give the keys a shorter idempotency_window.")
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
	surplus := s.surplus()
	for _, id := range c.Jobs {
		j := s.Job(id)
		if j == nil || !s.Collectable(j) && !(j.Seq <= surplus && s.unwanted(j)) {
			continue
		}
		reason := "retention"
		if j.Seq <= surplus && !s.Collectable(j) {
			reason = "more than " + itoa(task.MaxFinishedJobs) + " finished jobs"
		}
		delete(s.jobAt, id)
		if s.byRequest[j.Request] == j.Seq {
			delete(s.byRequest, j.Request)
		}
		if k := j.Spec.IdempotencyKey; s.byKey[k] == j.Seq && j.Schedule == "" {
			delete(s.byKey, k)
		}
		s.weight -= j.weight
		s.dropSpec(j.Spec)
		for i := range j.Stages {
			s.shards -= j.Stages[i].shards.n
		}
		*s.jobs.mut(j.Seq, s.epoch) = nil
		s.jobs.drop(j.Seq, func(j **Job) bool { return *j == nil })
		s.emit(task.Event{Kind: task.EventJobCollect, Job: id, JobName: j.Spec.Name, Reason: reason})
	}
	return Result{}
}

// Collectable tells whether a job's retention and idempotency window are over, and a repeat of its submit is no longer to
// be expected: it would start the job anew.
func (s *State) Collectable(j *Job) bool {
	return s.unwanted(j) && s.Led-j.EndedLed >= j.Spec.Retain
}

// unwanted is Collectable without the retention.
func (s *State) unwanted(j *Job) bool {
	if !j.State.Final() || s.young(j) {
		return false
	}
	return j.Spec.IdempotencyKey == "" || j.Schedule != "" || s.Led-j.SubmittedLed >= j.Spec.IdempotencyWindow
}

// young tells whether a repeat of a job's submit is still to be expected. Jobs that came later are younger.
func (s *State) young(j *Job) bool { return s.Led-j.SubmittedLed < requestWindow }

// surplus is the sequence number up to which finished jobs are more than may be kept, -1 if there are not so many. Young ones are not looked
// at: they are kept in any case.
func (s *State) surplus() int {
	n, last := len(s.jobAt)-s.live-task.MaxFinishedJobs, -1
	if n <= 0 {
		return -1
	}
	s.Jobs(func(j *Job) bool {
		if s.young(j) { // and so are all after it
			return false
		}
		if j.State.Final() {
			last = j.Seq
			n--
		}
		return n > 0
	})
	return last
}

// CollectableJobs gives up to n finished jobs that CollectJobs would remove: those whose retention is over and those beyond
// task.MaxFinishedJobs, oldest first (R22). It may look at every job.
func (s *State) CollectableJobs(n int) (ids []task.JobID) {
	surplus := s.surplus()
	s.Jobs(func(j *Job) bool {
		if s.young(j) {
			return false
		}
		if s.Collectable(j) || j.Seq <= surplus && s.unwanted(j) {
			ids = append(ids, j.ID)
		}
		return len(ids) < n
	})
	return ids
}
