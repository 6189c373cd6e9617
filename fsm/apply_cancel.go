package fsm

import (
	"slices"

	"lanjobs/task"
)

// apply cancels what waits and marks what runs to be stopped.
func (c *CancelJob) apply(s *State) Result {
	j, done := s.actedOn(c.Job, c.RequestID)
	if done != nil {
		return *done
	}
	j = s.mutJob(j.Seq)
	j.remember(c.RequestID) // also if there is nothing to do: a repeat after a retry must not stop what the retry began
	if j.State.Final() || j.Cancelling {
		return Result{Job: j.ID, Existed: true}
	}
	j.Cancelling, j.CancelGrace, j.CancelReason = true, length(c.Grace), clip(c.Reason, task.MaxMessageLength)
	s.emit(task.Event{Kind: task.EventJobCancel, Job: j.ID, JobName: j.Spec.Name, Reason: j.CancelReason, By: clip(c.By, task.MaxMessageLength)})
	s.stopJob(j)
	return Result{Job: j.ID}
}

// stopJob cancels what waits of a job that is marked as cancelling, and ends it if nothing runs.
func (s *State) stopJob(j *Job) {
	// What waits first, all of it: a stage that ends now must find none left to open.
	for i := range j.Stages {
		s.cancelPending(j, i)
	}
	for i := range j.Stages {
		s.stageProgress(j, i)
	}
	s.endJob(j)
	s.refreshReady(j)
}

// cancelPending cancels the shards of a stage that are not with a node, and a stage that never opened.
func (s *State) cancelPending(j *Job, i int) {
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
		st.Broken = true
		s.setStageState(j, i, task.StageCancelled, j.CancelReason)
	} else {
		st.ready = newBitset(st.shards.n, j.Spec.ranks[i])
	}
}

// did tells whether a cancel or retry with this id was done before.
func (j *Job) did(r task.RequestID) bool { return r != "" && slices.Contains(j.acts, r) }

func (j *Job) remember(r task.RequestID) {
	if r != "" {
		j.acts = remember(j.acts, r)
	}
}
