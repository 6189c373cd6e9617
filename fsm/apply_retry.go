package fsm

import (
	"cmp"
	"slices"

	"lanjobs/task"
)

// apply gives the chosen shards new attempts; stages after them run again, since what they read changes (R36).
func (c *RetryJob) apply(s *State) Result {
	j, done := s.actedOn(c.Job, c.RequestID)
	if done != nil {
		return *done
	}
	if j.Cancelling && !j.State.Final() {
		return refuse(task.ErrConflict, "", "job %s is being cancelled: wait until its running shards have stopped", j.ID)
	}
	for i := range j.Stages {
		if j.Stages[i].Stopping {
			return refuse(task.ErrConflict, "", "stage %s of job %s is being stopped: wait until its running shards have ended", j.Spec.Stages[i].Name, j.ID)
		}
	}
	if s.queueNamed(j.Spec.Queue) == nil {
		return refuse(task.ErrConflict, "Make it: lanjobs queue set "+j.Queue(), "the queue %s of job %s was removed", j.Queue(), j.ID)
	}
	if c.Stage != "" && j.Spec.Stage(c.Stage) < 0 {
		return refuse(task.ErrNotFound, "", "job %s has no stage %q", j.ID, clip(c.Stage, maxIDLength))
	}
	if c.All && !j.State.Final() {
		return refuse(task.ErrConflict, "Cancel it first, or retry its failed shards alone.", "job %s still runs", j.ID)
	}
	chosen, n := c.choose(j, s.Members())
	if n == 0 {
		hint := ""
		if j.State.Final() {
			hint = "The whole job again, done shards too: lanjobs retry " + string(j.ID) + " --all"
		}
		return refuse(task.ErrConflict, hint, "nothing to retry in job %s: no shard of the kind asked for", j.ID)
	}
	again, busy := rerun(j, chosen)
	if busy >= 0 {
		return refuse(task.ErrConflict, "Wait for it, or cancel the job first.", "stage %s of job %s is running on what the shards to retry have left", j.Spec.Stages[busy].Name, j.ID)
	}
	for i := range j.Stages {
		if open, _ := j.holds(i); again[i] == againSome && !open {
			return refuse(task.ErrConflict, "Retry the stages that it needs as well.", "stage %s of job %s would be skipped, as the stages that it needs have ended", j.Spec.Stages[i].Name, j.ID)
		}
	}
	j = s.mutJob(j.Seq)
	j.remember(c.RequestID)
	j.Cancelling, j.CancelReason, j.CancelGrace, j.Expired = false, "", 0, false
	s.emit(task.Event{Kind: task.EventJobRetry, Job: j.ID, JobName: j.Spec.Name, Stage: c.Stage, By: clip(c.By, task.MaxMessageLength), Reason: itoa(n) + " shards"})
	if j.State.Final() {
		j.Ended, j.EndedLed = 0, 0
		j.queue = s.queueNamed(j.Spec.Queue)
		s.setJobState(j, task.JobRunning, "retry")
		s.startDeadline(j)
	}
	for i := range j.Stages {
		c.reset(s, j, i, again[i], chosen[i])
	}
	if s.Members() >= LevelCare { // those below do not know this rule
		for i := range j.Stages {
			if again[i] != againNot {
				s.failGone(j, i) // what was put back into an open stage; one that opens anew sees to it itself
				s.stageProgress(j, i)
			}
		}
	}
	s.openStages(j)
	return Result{Job: j.ID}
}

// choose gives, per stage, the shards to run again. level is that of all members: those below LevelCare know nothing of a stage that
// was cancelled before it got its shards.
func (c *RetryJob) choose(j *Job, level int) ([][]int, int) {
	chosen, n := make([][]int, len(j.Stages)), 0
	for i := range j.Stages {
		if c.Stage != "" && j.Spec.Stages[i].Name != c.Stage {
			continue
		}
		st := &j.Stages[i]
		cancelled := st.State == task.StageCancelled && level >= LevelCare
		if (st.State == task.StageFailed || cancelled) && st.shards.n == 0 { // it got no shards when it opened, or never opened
			chosen[i] = []int{noShard}
			n++
		}
		for _, r := range within(c.Shards, st.shards.n) {
			for k := r.First; k <= r.Last; k++ {
				state := st.shards.at(k).State
				if state == task.ShardFailed || state == task.ShardCancelled || c.All && state == task.ShardSucceeded {
					chosen[i] = append(chosen[i], k)
					n++
				}
			}
		}
	}
	return chosen, n
}

// noShard stands for a stage that is to run again and has no shards.
const noShard = -1

// within gives ranges sorted, without overlap and within 0 … n-1, so that going through them visits each shard once; none = all.
func within(rs []task.Range, n int) []task.Range {
	if len(rs) == 0 {
		return []task.Range{{First: 0, Last: n - 1}}
	}
	sorted := append([]task.Range(nil), rs...)
	slices.SortFunc(sorted, func(a, b task.Range) int { return cmp.Compare(a.First, b.First) })
	var out []task.Range
	from := 0
	for _, r := range sorted {
		r.First, r.Last = max(r.First, from), min(r.Last, n-1)
		if r.First <= r.Last {
			out = append(out, r)
			from = r.Last + 1
		}
	}
	return out
}

// again is why a stage runs again.
type again uint8

const (
	againNot   again = iota
	againSome        // some of its shards
	againWhole       // all of it: a stage that it needs runs again
)

// rerun tells for each stage whether it runs again. busy is a stage that would have to and is not done, -1 if none: what it
// has read so far would not be what it reads from now on.
func rerun(j *Job, chosen [][]int) (out []again, busy int) {
	out = make([]again, len(j.Stages))
	for i := range j.Stages {
		if len(chosen[i]) > 0 {
			out[i] = againSome
		}
		for _, need := range j.Spec.needs[i] {
			if out[need] != againNot {
				out[i] = againWhole
			}
		}
		if out[i] == againWhole && j.Stages[i].State == task.StageOpen {
			return nil, i
		}
	}
	return out, -1
}

// reset makes the chosen shards of a stage pending again, or all of a stage that runs again whole.
func (c *RetryJob) reset(s *State, j *Job, i int, why again, chosen []int) {
	st := &j.Stages[i]
	switch {
	case why == againNot || st.State == task.StageWaiting: // all of a waiting stage is pending
		return
	case why == againWhole && dynamic(&j.Spec.Stages[i]):
		s.dropShards(j, i)
	case why == againWhole:
		for k := range st.shards.n {
			s.resetShard(j, i, k, true)
		}
	case chosen[0] != noShard:
		for _, k := range chosen {
			s.resetShard(j, i, k, c.FromStart)
		}
	}
	if st.State == task.StageOpen {
		for _, k := range chosen {
			s.enqueue(j, i, k, st.shards.at(k))
		}
		return
	}
	st.Broken, st.ready, st.Reason = false, nil, ""
	s.setStageState(j, i, task.StageWaiting, "retry")
}

// resetShard makes one done shard pending. A checkpoint is kept unless it is to start anew; one that had succeeded always does.
func (s *State) resetShard(j *Job, stage, shard int, fromStart bool) {
	state := j.Stages[stage].shards.at(shard).State
	if !state.Done() {
		return
	}
	sh := s.mutShard(j, stage, shard)
	if state == task.ShardSucceeded {
		fromStart = true
		if sh.Skipped() == "" {
			s.record(j, sh, task.Outcome{End: task.EndExited}, false) // its place in the history, before its record starts anew
		}
		s.forgetOwn(j, stage, shard)
	}
	if fromStart && sh.Extra != nil {
		s.change(j, sh, func(x *Extra) {
			x.Checkpoint, x.CheckpointAt, x.CheckpointBy, x.Outputs, x.SkippedBy = task.Checkpoint{}, 0, 0, nil, ""
		})
	}
	sh.Fails, sh.Losses, sh.Defers, sh.Due = 0, 0, 0, 0
	s.move(&j.Stages[stage], sh, task.ShardPending)
}
