package fsm

import "lanjobs/task"

// openStages opens every waiting stage whose needs are done, skips those whose `when` does not hold, and ends the job when
// nothing is left. A skipped stage may decide others, all of which stand after it.
func (s *State) openStages(j *Job) {
	for i := range j.Stages {
		if j.Stages[i].State == task.StageWaiting {
			s.decideStage(j, i)
		}
	}
	s.endJob(j)
	s.refreshReady(j)
}

// decideStage opens or skips a waiting stage if all that it needs is done.
func (s *State) decideStage(j *Job, i int) {
	for _, need := range j.Spec.needs[i] {
		if !j.Stages[need].State.Done() {
			return
		}
	}
	st := &j.Stages[i]
	if open, broken := j.holds(i); !open {
		st.Broken = broken
		s.setStageState(j, i, task.StageSkipped, "when: "+string(j.Spec.Stages[i].When))
		return
	}
	if empty, reason := s.fixShards(j, i); reason != "" || empty {
		if !empty {
			st.Broken, st.Reason = true, reason
			s.setStageState(j, i, task.StageFailed, reason)
			return
		}
		s.setStageState(j, i, task.StageSucceeded, reason)
		return
	}
	st.ready = newBitset(st.shards.n, j.Spec.ranks[i])
	if int(st.Counts[task.ShardPending]) == st.shards.n {
		st.ready.full(st.shards.n)
	} else { // some are done since before a retry
		for k := range st.shards.n {
			if st.shards.at(k).State == task.ShardPending {
				st.ready.set(k)
			}
		}
	}
	s.setStageState(j, i, task.StageOpen, "")
	s.skipAllKnown(j, i)
	s.failGone(j, i)
	s.stageProgress(j, i)
}

// holds tells whether a stage's `when` holds for the ends of the stages it needs, and whether one of those is broken.
func (j *Job) holds(i int) (open, broken bool) {
	for _, need := range j.Spec.needs[i] {
		broken = broken || j.Stages[need].Broken
	}
	when := j.Spec.Stages[i].When
	return when == task.WhenAlways || broken == (when == task.WhenFailure), broken
}

// stageProgress ends an open stage when all of its shards are done.
func (s *State) stageProgress(j *Job, i int) {
	st := &j.Stages[i]
	done := st.Counts[task.ShardSucceeded] + st.Counts[task.ShardFailed] + st.Counts[task.ShardCancelled]
	if st.State != task.StageOpen || int(done) < st.shards.n {
		return
	}
	st.ready = nil
	succeeded := int(st.Counts[task.ShardSucceeded])
	switch {
	case succeeded == st.shards.n:
		s.setStageState(j, i, task.StageSucceeded, "")
	case j.Cancelling && st.Counts[task.ShardCancelled] > 0:
		st.Broken = true
		s.setStageState(j, i, task.StageCancelled, j.CancelReason)
	case succeeded >= j.Spec.Stages[i].Success.Needed(st.shards.n):
		s.setStageState(j, i, task.StagePartial, itoa(succeeded)+" of "+itoa(st.shards.n)+" succeeded")
	default:
		st.Broken = true
		reason := itoa(succeeded) + " of " + itoa(st.shards.n) + " succeeded"
		if st.Stopping {
			reason = st.Reason
		}
		s.setStageState(j, i, task.StageFailed, reason)
	}
	st.Stopping = false
	s.openStages(j)
}

func (s *State) setStageState(j *Job, i int, to task.StageState, reason string) {
	st := &j.Stages[i]
	e := task.Event{Kind: task.EventStageState, Job: j.ID, JobName: j.Spec.Name, Stage: j.Spec.Stages[i].Name, From: st.State.String(), To: to.String(), Reason: reason}
	st.State = to
	s.emit(e)
}

// endJob gives the job its final state when all stages are done.
func (s *State) endJob(j *Job) {
	if j.State.Final() {
		return
	}
	state := task.JobSucceeded
	for i := range j.Stages {
		switch st := j.Stages[i].State; {
		case !st.Done():
			return
		case st == task.StageFailed && state != task.JobCancelled:
			state = task.JobFailed
		case st == task.StageCancelled:
			state = task.JobCancelled
		case st == task.StagePartial && state == task.JobSucceeded:
			state = task.JobPartial
		}
	}
	if state == task.JobCancelled && j.Expired {
		state = task.JobExpired
	}
	j.Ended, j.EndedLed = s.Wall, s.Led
	s.setJobState(j, state, j.CancelReason)
}

func (s *State) setJobState(j *Job, to task.JobState, reason string) {
	if was, is := j.State.Final(), to.Final(); was != is {
		if is {
			s.finish(j)
		} else {
			s.begin(j)
		}
	}
	from := j.State
	j.State = to
	s.emit(task.Event{Kind: task.EventJobState, Job: j.ID, JobName: j.Spec.Name, From: string(from), To: string(to), Reason: reason})
}
