package fsm

import "lanjobs/task"

// openStages opens every waiting stage whose needs are done, skips those whose `when` does not hold, and ends the job when
// nothing is left. It repeats until nothing changes: a skipped stage may decide the next.
func (s *State) openStages(j *Job) {
	for changed := true; changed; {
		changed = false
		for i := range j.Stages {
			if j.Stages[i].State == task.StageWaiting && s.decideStage(j, i) {
				changed = true
			}
		}
	}
	s.endJob(j)
	s.refreshReady(j)
}

// decideStage opens or skips a waiting stage if all that it needs is done.
func (s *State) decideStage(j *Job, i int) bool {
	spec := &j.Spec.Stages[i]
	broken := false
	for _, need := range spec.Needs {
		up := &j.Stages[j.Spec.Stage(need)]
		if !up.State.Done() {
			return false
		}
		broken = broken || up.Broken
	}
	st := &j.Stages[i]
	open := spec.When == task.WhenAlways || broken == (spec.When == task.WhenFailure)
	if !open {
		st.Broken = broken && spec.When == task.WhenSuccess
		s.setStageState(j, i, task.StageSkipped, "when: "+string(spec.When))
		return true
	}
	st.ready = newBitset(st.shards.n)
	if int(st.Counts[task.ShardPending]) == st.shards.n && st.Waits == 0 {
		st.ready.full(st.shards.n)
	} else {
		for k := range st.shards.n {
			if sh := st.shards.at(k); sh.State == task.ShardPending {
				s.enqueue(j, i, k, sh)
			}
		}
	}
	s.setStageState(j, i, task.StageOpen, "")
	s.stageProgress(j, i) // after a retry its shards may all be done already
	return true
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
		s.setStageState(j, i, task.StageCancelled, j.CancelReason)
	case succeeded >= j.Spec.Stages[i].Success.Needed(st.shards.n):
		s.setStageState(j, i, task.StagePartial, itoa(succeeded)+" of "+itoa(st.shards.n)+" succeeded")
	default:
		st.Broken = true
		s.setStageState(j, i, task.StageFailed, itoa(succeeded)+" of "+itoa(st.shards.n)+" succeeded")
	}
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
	j.Ended, j.EndedLed = s.Wall, s.Led
	s.setJobState(j, state, j.CancelReason)
}

func (s *State) setJobState(j *Job, to task.JobState, reason string) {
	if was, is := j.State.Final(), to.Final(); was != is {
		if is {
			s.live--
		} else {
			s.live++
		}
	}
	from := j.State
	j.State = to
	s.emit(task.Event{Kind: task.EventJobState, Job: j.ID, JobName: j.Spec.Name, From: string(from), To: string(to), Reason: reason})
}
