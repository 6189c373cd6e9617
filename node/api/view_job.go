package api

import (
	"fmt"
	"slices"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
)

// job is one job as lists and its own page show it.
func (v *view) job(j *fsm.Job) task.JobView {
	out := task.JobView{
		ID: j.ID, Name: j.Spec.Name, State: j.State, Queue: j.Queue(), Priority: j.Priority, Key: j.Spec.IdempotencyKey,
		Labels: slices.Clone(j.Spec.Labels), Submitted: time.UnixMilli(j.Submitted).UTC(), By: j.By,
		Started: wallTime(j.Started), Ended: wallTime(j.Ended), AgeSeconds: v.ago(j.Submitted).Seconds(),
		Stages: make([]task.StageView, len(j.Stages)), Reason: j.CancelReason, Note: v.jobNote(j),
		Paused: j.Paused && !j.State.Final(), Schedule: j.Schedule, ScheduledFor: wallTime(j.ScheduledFor),
	}
	for i := range j.Stages {
		out.Stages[i] = stageView(j, i)
		if j.Stages[i].State != task.StageSkipped {
			addCounts(&out.Shards, out.Stages[i].Shards)
		}
	}
	return out
}

// wholeJob is job with what is too dear for lists.
func (v *view) wholeJob(j *fsm.Job) task.JobView {
	out := v.job(j)
	out.Ahead, out.Beside = v.place(j)
	measured(&out, j)
	return out
}

func stageView(j *fsm.Job, i int) task.StageView {
	spec := &j.Spec.Stages[i]
	return task.StageView{Name: spec.Name, State: j.Stages[i].State.String(), Needs: slices.Clone(spec.Needs), Shards: counts(&j.Stages[i]), Parallelism: spec.Parallelism,
		TimeoutSeconds: seconds(spec.Timeout)}
}

// counts of a stage. What is pending in a stage that is not open waits; in a skipped one it is nothing at all.
func counts(st *fsm.Stage) task.Counts {
	n := func(s task.ShardState) int { return int(st.Counts[s]) }
	c := task.Counts{Total: st.Len(), Pending: n(task.ShardPending), Backoff: int(st.Waits), Assigned: n(task.ShardAssigned), Running: n(task.ShardRunning),
		Succeeded: n(task.ShardSucceeded), Failed: n(task.ShardFailed), Cancelled: n(task.ShardCancelled)}
	switch st.State {
	case task.StageWaiting:
		c.Waiting, c.Pending, c.Backoff = c.Pending, 0, 0
	case task.StageSkipped:
		c.Pending, c.Backoff = 0, 0
	}
	return c
}

func addCounts(sum *task.Counts, c task.Counts) {
	sum.Total += c.Total
	sum.Waiting += c.Waiting
	sum.Pending += c.Pending
	sum.Backoff += c.Backoff
	sum.Assigned += c.Assigned
	sum.Running += c.Running
	sum.Succeeded += c.Succeeded
	sum.Failed += c.Failed
	sum.Cancelled += c.Cancelled
}

// jobNote is the one thing to know about a job: why it waits, or what to do next.
func (v *view) jobNote(j *fsm.Job) string {
	active, failed := 0, 0
	for i := range j.Stages {
		active += j.Stages[i].Active()
		failed += int(j.Stages[i].Counts[task.ShardFailed])
	}
	switch {
	case j.State.Final() && failed > 0 && (j.State == task.JobFailed || j.State == task.JobPartial):
		return fmt.Sprintf("lanjobs retry %s --dead", j.ID)
	case j.State.Final():
		return ""
	case j.Cancelling:
		return fmt.Sprintf("is being cancelled: %s to stop", plural(active, "shard", "shards"))
	case j.Paused:
		return "is paused: lanjobs resume " + string(j.ID)
	case active > 0 && failed > 0:
		return plural(failed, "dead shard", "dead shards")
	case active > 0:
		return ""
	}
	for i := range j.Stages {
		if j.Stages[i].State == task.StageOpen {
			if note := v.stageNote(j, i); note != "" {
				return note
			}
		}
	}
	return ""
}

// stageNote says why nothing of an open stage runs.
func (v *view) stageNote(j *fsm.Job, i int) string {
	st := &j.Stages[i]
	pending := int(st.Counts[task.ShardPending])
	switch {
	case pending == 0:
		return ""
	case int(st.Waits) == pending:
		return v.backoffNote(j, i)
	}
	k := j.NextReady(i, 0)
	if k < 0 || v.notes >= maxNotes {
		return ""
	}
	v.notes++
	e := v.stage(j, i).explain(k)
	if e.whole.Kind != "" {
		return e.whole.Text
	}
	if anyRoom(e.machines) {
		return ""
	}
	return "no machine: " + obstacles(e.machines, j.Spec.Stages[i].Require)
}

// maxNotes bounds how many jobs of one answer plan is asked about.
const maxNotes = 500

// maxScan bounds how many shards a note looks at.
const maxScan = 1000

// backoffNote is about the shard that comes back first, of the first so many.
func (v *view) backoffNote(j *fsm.Job, i int) string {
	var first *fsm.Shard
	for k := range min(j.Stages[i].Len(), maxScan) {
		sh := j.Stages[i].At(k)
		if sh.State == task.ShardPending && sh.Due > v.Clock && (first == nil || sh.Due < first.Due) {
			first = sh
		}
	}
	if first == nil {
		return ""
	}
	return v.backoff(first)
}

// backoff is "retry in 18s: exit 1 on pc-win".
func (v *view) backoff(sh *fsm.Shard) string {
	text := "retry in " + shortMillis(sh.Due.Sub(v.Clock))
	if last := v.last(sh); last != "" {
		text += ": " + last
	}
	return text
}
