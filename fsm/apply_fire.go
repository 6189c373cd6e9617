package fsm

import (
	"slices"
	"strings"

	"lanjobs/task"
)

// apply decides one occurrence, once: what does not lie after the last decided one is refused, whoever proposes it.
func (c *FireSchedule) apply(s *State) Result {
	if !validID(c.Job) || len(c.RequestID) > maxIDLength || len(c.Nominal) > maxIDLength {
		return refuse(task.ErrInvalid, "", "an occurrence needs an id for its job, and an id has at most %d bytes", maxIDLength)
	}
	if a, done := s.did(c.RequestID); done {
		return Result{Job: a.job, Existed: true}
	}
	i, problem := s.undecided(c.Name, c.Nominal, c.Due, c.Manual)
	if problem != nil {
		return Result{Err: problem}
	}
	if _, taken := s.jobAt[c.Job]; taken {
		return refuse(task.ErrConflict, "", "job id %s is taken", c.Job)
	}
	sc, runs := s.schedules[i], s.runs[c.Name]
	overlap := sc.Spec.Spec.Schedule.Overlap
	blocked := len(runs) > 0 && (overlap == task.OverlapSkip || overlap == task.OverlapQueue && sc.Waiting != nil)
	if blocked && c.Manual {
		return refuse(task.ErrConflict, "Wait for it, or cancel it.", "the run %s of %s is not over (overlap: %s)", s.JobBySeq(runs[0]).ID, sc.Name, overlap)
	}
	sc = s.mutSchedule(i)
	if !c.Manual {
		s.settle(sc, c.Nominal, c.Due, c.Missed)
	}
	o := Occurrence{Nominal: strings.Clone(c.Nominal), Due: c.Due, Job: task.JobID(strings.Clone(string(c.Job))), By: clip(c.By, task.MaxMessageLength)}
	r := Result{Schedule: sc.Name}
	switch {
	case blocked:
		s.skip(sc, o.Nominal, "the run "+string(s.JobBySeq(runs[0]).ID)+" is not over")
	case len(runs) == 0 || overlap == task.OverlapAllow:
		r.Job = s.fire(sc, &o, c.Missed, c.Dropped)
	default:
		if sc.Waiting != nil {
			s.dropWaiting(sc, "replaced by a later one")
		}
		sc.Waiting, r.Job = &o, o.Job
		s.emit(task.Event{Kind: task.EventScheduleQueue, Job: o.Job, JobName: sc.Name, Reason: o.Nominal, By: o.By})
		if overlap == task.OverlapReplace {
			s.replace(slices.Clone(runs))
		}
	}
	s.remember(c.RequestID, r.Job)
	return r
}

// apply settles occurrences without a job.
func (c *SkipSchedule) apply(s *State) Result {
	if len(c.Nominal) > maxIDLength {
		return refuse(task.ErrInvalid, "", "an occurrence's name has at most %d bytes", maxIDLength)
	}
	i, problem := s.undecided(c.Name, c.Nominal, c.Due, false)
	if problem != nil {
		return Result{Err: problem}
	}
	sc := s.mutSchedule(i)
	s.settle(sc, c.Nominal, c.Due, c.Missed)
	s.emit(task.Event{Kind: task.EventScheduleSkip, JobName: sc.Name, Reason: sc.LastNominal + ": " + clip(c.Reason, task.MaxMessageLength)})
	return Result{Schedule: sc.Name}
}

// undecided finds the schedule of an occurrence, unless it was decided before or is not to be now.
func (s *State) undecided(name, nominal string, due int64, manual bool) (int, *task.Problem) {
	i, found := s.scheduleAt(name)
	if !found {
		return 0, task.NewProblem(task.ErrNotFound, "there is no schedule "+clip(name, maxIDLength), "")
	}
	sc := s.schedules[i]
	switch {
	case manual:
	case sc.Paused:
		return 0, task.NewProblem(task.ErrConflict, "schedule "+sc.Name+" is paused", "")
	case due <= sc.LastDue || nominal != "" && nominal == sc.LastNominal:
		return 0, task.NewProblem(task.ErrConflict, "that occurrence of "+sc.Name+" was decided before", "")
	}
	return i, nil
}

// settle moves a schedule on: nothing up to due fires any more.
func (s *State) settle(sc *Schedule, nominal string, due int64, missed int) {
	sc.LastDue, sc.LastNominal = due, strings.Clone(nominal)
	sc.Missed += uint64(max(missed, 0))
}

// fire makes the job of an occurrence. Without room for one the occurrence is skipped: trying again and again would help nobody.
func (s *State) fire(sc *Schedule, o *Occurrence, missed, dropped int) task.JobID {
	if problem := s.room(sc.Spec); problem != nil {
		s.skip(sc, o.Nominal, problem.Detail)
		return ""
	}
	id := o.Job
	for n := 2; s.Job(id) != nil; n++ { // taken while it waited
		id = o.Job[:min(len(o.Job), maxIDLength-20)] + task.JobID(itoa(n))
	}
	e := task.Event{Kind: task.EventScheduleFire, Job: id, JobName: sc.Name, Reason: o.Nominal, By: o.By}
	if missed > 0 || dropped > 0 {
		e.Reason += ": " + itoa(missed) + " missed, " + itoa(dropped) + " dropped"
	}
	s.emit(e)
	sc.Fired++
	sc.LastJob = id
	if n := len(sc.Recent); n >= recentRuns {
		sc.Recent = sc.Recent[n-recentRuns+1:]
	}
	sc.Recent = append(sc.Recent[:len(sc.Recent):len(sc.Recent)], id)
	by := o.By
	if by == "" {
		by = sc.By
	}
	s.addJob(&Job{ID: id, Spec: sc.Spec, queue: s.queueNamed(sc.Spec.Queue), By: by, Schedule: sc.Name, ScheduledFor: o.Due, Nominal: o.Nominal})
	return id
}

// replace cancels the runs of a schedule for its next one.
func (s *State) replace(runs []int) {
	for _, seq := range runs {
		if j := s.JobBySeq(seq); !j.Cancelling {
			j = s.mutJob(seq)
			j.Cancelling, j.CancelGrace, j.CancelReason = true, 0, "replaced by the next run (overlap: replace)"
			s.emit(task.Event{Kind: task.EventJobCancel, Job: j.ID, JobName: j.Spec.Name, Reason: j.CancelReason})
			s.stopJob(j)
		}
	}
}

// fireWaiting makes the jobs of occurrences whose schedule's last run has ended in the command just applied.
func (s *State) fireWaiting() {
	for len(s.over) > 0 {
		name := s.over[0]
		s.over = s.over[1:]
		i, found := s.scheduleAt(name)
		if !found || s.schedules[i].Waiting == nil || len(s.runs[name]) > 0 {
			continue
		}
		sc := s.mutSchedule(i)
		o := *sc.Waiting
		sc.Waiting = nil
		s.fire(sc, &o, 0, 0)
	}
	s.over = nil
}
