package fsm

import (
	"encoding/json"
	"strings"

	"lanjobs/task"
)

// apply stores a job and opens its first stages in the same step. The same request, or the same idempotency key with the
// same file, finds the first job (R31).
func (c *SubmitJob) apply(s *State) Result {
	if seq, ok := s.byRequest[c.RequestID]; ok && c.RequestID != "" {
		return Result{Job: s.JobBySeq(seq).ID, Existed: true}
	}
	if _, taken := s.jobAt[c.Job]; taken || c.Job == "" {
		return refuse(task.ErrConflict, "", "job id %s is taken", c.Job)
	}
	spec, problem := s.intern(c.Spec, c.Digest)
	if problem != nil {
		return Result{Err: problem}
	}
	if r, done := s.sameKey(spec); done {
		return r
	}
	spec.users++
	s.specs[spec.JSON] = spec
	j := &Job{epoch: s.epoch, Seq: s.jobs.n, ID: c.Job, Spec: spec, Request: c.RequestID, State: task.JobPending, By: strings.Clone(c.By),
		Submitted: s.Wall, SubmittedLed: s.Led, Stages: make([]Stage, len(spec.Stages))}
	for i := range j.Stages {
		n := spec.Stages[i].Shards
		j.Stages[i].shards = newCow[Shard](n, s.epoch)
		j.Stages[i].Counts[task.ShardPending] = int32(n)
	}
	s.jobs.push(j, s.epoch)
	s.live++
	s.indexIDs(j)
	s.emit(task.Event{Kind: task.EventJobSubmit, Job: j.ID, JobName: spec.Name, By: j.By, To: string(task.JobPending)})
	s.openStages(j)
	return Result{Job: j.ID}
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

// intern decodes a spec, or finds the equal one that is already here.
func (s *State) intern(data, digest []byte) (*Spec, *task.Problem) {
	if len(data) > task.MaxSpecBytes {
		return nil, task.NewProblem(task.ErrTooLarge, "the job is larger than "+itoa(task.MaxSpecBytes)+" bytes", "")
	}
	if sp := s.specs[string(data)]; sp != nil {
		return sp, nil
	}
	sp := &Spec{JSON: string(data), Digest: string(digest)}
	if err := json.Unmarshal(data, &sp.Spec); err != nil {
		return nil, task.NewProblem(task.ErrInvalid, "job spec: "+err.Error(), "")
	}
	if p := checkSpec(&sp.Spec); p != "" {
		return nil, task.NewProblem(task.ErrInvalid, "job spec: "+p, "")
	}
	return sp, nil
}

// checkSpec holds what Apply itself relies on; the job file's own checks are at the edge.
func checkSpec(sp *task.Spec) string {
	if len(sp.Stages) == 0 || len(sp.Stages) > task.MaxStages {
		return "between 1 and " + itoa(task.MaxStages) + " stages are needed"
	}
	total := 0
	for i := range sp.Stages {
		st := &sp.Stages[i]
		total += max(st.Shards, 0)
		switch {
		case st.Shards < 1 || st.Shards > task.MaxShards || total > task.MaxShards:
			return "stage " + st.Name + ": between 1 and " + itoa(task.MaxShards) + " shards are allowed in a job"
		case len(st.Items) > 0 && len(st.Items) != st.Shards:
			return "stage " + st.Name + ": items and shards differ in number"
		case st.Lease.TTL < task.MinTTL || st.Lease.TTL > task.MaxTTL:
			return "stage " + st.Name + ": lease.ttl out of bounds"
		case st.Retry.Attempts < 1 || st.Retry.LeaseLosses < 1:
			return "stage " + st.Name + ": retry.attempts and retry.lease_losses must be at least 1"
		case st.When != task.WhenSuccess && st.When != task.WhenFailure && st.When != task.WhenAlways:
			return "stage " + st.Name + ": unknown when"
		}
		for _, need := range st.Needs {
			if k := sp.Stage(need); k < 0 || k >= i {
				return "stage " + st.Name + " needs " + need + ", which must stand before it"
			}
		}
	}
	return ""
}

// apply cancels what waits and marks what runs to be stopped.
func (c *CancelJob) apply(s *State) Result {
	j := s.Job(c.Job)
	if j == nil {
		return refuse(task.ErrNotFound, "", "no job %s", c.Job)
	}
	if j.State.Final() || j.Cancelling {
		return Result{Job: j.ID}
	}
	j = s.mutJob(j.Seq)
	j.Cancelling, j.CancelGrace, j.CancelReason = true, c.Grace, c.Reason
	s.emit(task.Event{Kind: task.EventJobCancel, Job: j.ID, JobName: j.Spec.Name, Reason: c.Reason, By: c.By})
	for i := range j.Stages {
		s.cancelStage(j, i)
	}
	s.endJob(j)
	s.refreshReady(j)
	return Result{Job: j.ID}
}

func (s *State) cancelStage(j *Job, i int) {
	st := &j.Stages[i]
	if st.State.Done() {
		return
	}
	for k := range st.shards.n {
		if st.shards.at(k).State == task.ShardPending {
			sh := s.mutShard(j, i, k)
			sh.Due = 0
			s.move(st, sh, task.ShardCancelled)
		}
	}
	st.Waits = 0
	if st.State == task.StageWaiting {
		s.setStageState(j, i, task.StageCancelled, j.CancelReason)
		return
	}
	if st.ready != nil {
		st.ready = newBitset(st.shards.n)
	}
	s.stageProgress(j, i)
}

// apply gives the chosen shards new attempts; stages after them run again, since what they read changes (R36).
func (c *RetryJob) apply(s *State) Result {
	j := s.Job(c.Job)
	if j == nil {
		return refuse(task.ErrNotFound, "", "no job %s", c.Job)
	}
	if c.RequestID != "" && j.LastRetry == c.RequestID {
		return Result{Job: j.ID, Existed: true}
	}
	if j.Cancelling && !j.State.Final() {
		return refuse(task.ErrConflict, "", "job %s is being cancelled: wait until its running shards have stopped", j.ID)
	}
	if c.Stage != "" && j.Spec.Stage(c.Stage) < 0 {
		return refuse(task.ErrNotFound, "", "job %s has no stage %q", j.ID, c.Stage)
	}
	chosen, n := c.choose(j)
	if n == 0 {
		return refuse(task.ErrConflict, "", "nothing to retry in job %s: no shard of the kind asked for", j.ID)
	}
	if c.All && !j.State.Final() {
		return refuse(task.ErrConflict, "Cancel it first, or retry its failed shards alone.", "job %s still runs", j.ID)
	}
	j = s.mutJob(j.Seq)
	j.LastRetry, j.Cancelling, j.CancelReason, j.CancelGrace = c.RequestID, false, "", 0
	s.emit(task.Event{Kind: task.EventJobRetry, Job: j.ID, JobName: j.Spec.Name, Stage: c.Stage, By: c.By, Reason: itoa(n) + " shards"})
	if j.State.Final() {
		j.Ended, j.EndedLed = 0, 0
		s.setJobState(j, task.JobRunning, "retry")
	}
	c.reset(s, j, chosen)
	s.openStages(j)
	return Result{Job: j.ID}
}

// choose gives, per stage, the shards to run again.
func (c *RetryJob) choose(j *Job) ([][]int, int) {
	chosen, n := make([][]int, len(j.Stages)), 0
	for i := range j.Stages {
		if c.Stage != "" && j.Spec.Stages[i].Name != c.Stage {
			continue
		}
		st := &j.Stages[i]
		for k := range st.shards.n {
			state := st.shards.at(k).State
			if inRanges(c.Shards, k) && (state == task.ShardFailed || state == task.ShardCancelled || c.All && state == task.ShardSucceeded) {
				chosen[i] = append(chosen[i], k)
				n++
			}
		}
	}
	return chosen, n
}

func inRanges(rs []task.Range, k int) bool {
	for _, r := range rs {
		if r.First <= k && k <= r.Last {
			return true
		}
	}
	return len(rs) == 0
}

// reset makes the chosen shards pending again, and every finished stage after one of theirs wait again.
func (c *RetryJob) reset(s *State, j *Job, chosen [][]int) {
	again := make([]bool, len(j.Stages))
	for i := range j.Stages {
		st := &j.Stages[i]
		downstream := false
		for _, need := range j.Spec.Stages[i].Needs {
			downstream = downstream || again[j.Spec.Stage(need)]
		}
		if downstream && st.State.Done() && st.State != task.StageCancelled && st.State != task.StageFailed {
			for k := range st.shards.n {
				s.resetShard(j, i, k, true)
			}
		}
		for _, k := range chosen[i] {
			s.resetShard(j, i, k, c.FromStart)
		}
		again[i] = downstream || len(chosen[i]) > 0
		if again[i] && st.State.Done() {
			st.Broken, st.ready = false, nil
			s.setStageState(j, i, task.StageWaiting, "retry")
		} else if st.State == task.StageOpen {
			for _, k := range chosen[i] {
				s.enqueue(j, i, k, st.shards.at(k))
			}
		}
	}
}

// resetShard makes one done shard pending. A checkpoint is kept unless it is to start anew; one that had succeeded always does.
func (s *State) resetShard(j *Job, stage, shard int, fromStart bool) {
	sh := s.mutShard(j, stage, shard)
	if sh.State == task.ShardPending || sh.State.Leased() {
		return
	}
	if sh.State == task.ShardSucceeded {
		fromStart = true
		s.record(sh, task.Outcome{End: task.EndExited}, false) // its place in the history, before its record starts anew
	}
	if fromStart && sh.Extra != nil {
		x := sh.mutExtra()
		x.Checkpoint, x.Outputs = task.Checkpoint{}, nil
	}
	sh.Fails, sh.Losses, sh.Defers, sh.Due = 0, 0, 0, 0
	s.move(&j.Stages[stage], sh, task.ShardPending)
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
		if j.Spec.users--; j.Spec.users == 0 {
			delete(s.specs, j.Spec.JSON)
		}
		*s.jobs.mut(j.Seq, s.epoch) = nil
		s.jobs.drop(j.Seq, func(j **Job) bool { return *j == nil })
		s.emit(task.Event{Kind: task.EventJobCollect, Job: id, JobName: j.Spec.Name, Reason: "retention"})
	}
	return Result{}
}

// Collectable tells whether a job's retention and idempotency window are over.
func (s *State) Collectable(j *Job) bool {
	if !j.State.Final() || s.Led-j.EndedLed < j.Spec.Retain {
		return false
	}
	return j.Spec.IdempotencyKey == "" || s.Led-j.SubmittedLed >= j.Spec.IdempotencyWindow
}
