package fsm

import (
	"slices"
	"strings"

	"lanjobs/task"
)

// applySchedule makes the schedule of a spec, or changes the one of its name. What it has decided stays decided; if its times
// have changed, what lies before the change does not count as missed.
func (c *SubmitJob) applySchedule(s *State, spec *Spec) Result {
	if _, done := s.did(c.RequestID); done {
		return Result{Schedule: spec.Name, Existed: true, Repeated: true}
	}
	q, problem := s.queueFor(spec)
	if problem != nil {
		return Result{Err: problem}
	}
	i, found := s.scheduleAt(spec.Name)
	if !found && len(s.schedules) >= task.MaxSchedules {
		return refuse(task.ErrTooLarge, "", "there are %d schedules, as many as are allowed", task.MaxSchedules)
	}
	if spec.users == 0 {
		if problem := s.full(spec.weight()); problem != nil {
			return Result{Err: problem}
		}
	}
	s.remember(c.RequestID, "")
	if found && s.schedules[i].Spec == spec {
		return Result{Schedule: spec.Name, Existed: true}
	}
	s.useSpec(spec)
	q.users++
	by, to := clip(c.By, task.MaxMessageLength), "created"
	if !found {
		sc := &Schedule{Name: strings.Clone(spec.Name), Spec: spec, By: by, Created: s.Wall, LastDue: s.Wall, Paused: spec.Schedule.Paused}
		s.schedules = slices.Insert(s.schedules, i, sc)
		s.scheduleChanges++
	} else {
		sc, old := s.mutSchedule(i), s.schedules[i].Spec
		if was, is := *old.Schedule, *spec.Schedule; was != is {
			if was.Paused != is.Paused {
				sc.Paused = is.Paused
			}
			sc.LastDue, sc.LastNominal = max(sc.LastDue, s.Wall), ""
		}
		sc.Spec, sc.By, to = spec, by, "changed"
		s.queueNamed(old.Queue).users--
		s.dropSpec(old)
	}
	s.emit(task.Event{Kind: task.EventScheduleSet, JobName: spec.Name, To: to, By: by})
	if sc := s.Schedule(spec.Name); sc.Paused && sc.Waiting != nil {
		s.dropWaiting(s.mutSchedule(i), "paused")
	}
	return Result{Schedule: spec.Name, Existed: found}
}

// apply is a person's act on a schedule.
func (c *SetSchedule) apply(s *State) Result {
	if len(c.RequestID) > maxIDLength {
		return refuse(task.ErrInvalid, "", "a request id has at most %d bytes", maxIDLength)
	}
	if _, done := s.did(c.RequestID); done {
		return Result{Schedule: clip(c.Name, maxIDLength), Existed: true}
	}
	i, found := s.scheduleAt(c.Name)
	if !found {
		return refuse(task.ErrNotFound, "", "there is no schedule %s", clip(c.Name, maxIDLength))
	}
	sc, by := s.schedules[i], clip(c.By, task.MaxMessageLength)
	e := task.Event{JobName: sc.Name, By: by}
	switch c.Action {
	case SchedulePause, ScheduleResume:
		pause := c.Action == SchedulePause
		s.remember(c.RequestID, "")
		if sc.Paused == pause {
			return Result{Schedule: sc.Name, Existed: true}
		}
		sc = s.mutSchedule(i)
		sc.Paused = pause
		if e.Kind = task.EventSchedulePause; !pause {
			e.Kind, sc.LastDue = task.EventScheduleResume, max(sc.LastDue, s.Wall)
		}
		s.emit(e)
		if pause && sc.Waiting != nil {
			s.dropWaiting(sc, "paused")
		}
	case ScheduleRemove:
		s.remember(c.RequestID, "")
		e.Kind = task.EventScheduleRemove
		s.emit(e)
		s.queueNamed(sc.Spec.Queue).users--
		s.dropSpec(sc.Spec)
		s.schedules = slices.Delete(s.schedules, i, i+1)
		s.scheduleChanges++
	default:
		return refuse(task.ErrInvalid, "", "unknown act %q on a schedule", clip(string(c.Action), maxIDLength))
	}
	return Result{Schedule: sc.Name}
}

// dropWaiting leaves out the occurrence that waits.
func (s *State) dropWaiting(sc *Schedule, reason string) {
	s.skip(sc, sc.Waiting.Nominal, reason)
	sc.Waiting = nil
}

// skip counts an occurrence that makes no job.
func (s *State) skip(sc *Schedule, nominal, reason string) {
	sc.Skipped++
	s.emit(task.Event{Kind: task.EventScheduleSkip, JobName: sc.Name, Reason: nominal + ": " + reason})
}

// act is a person's act on a queue or schedule that was done: a repeat is answered with its job.
type act struct {
	request task.RequestID
	job     task.JobID
	until   task.Millis // on Led
}

// maxActs bounds the acts that are remembered, besides requestWindow.
const maxActs = 1000

func (s *State) did(r task.RequestID) (act, bool) {
	if r != "" {
		for _, a := range s.acts {
			if a.request == r && a.until > s.Led {
				return a, true
			}
		}
	}
	return act{}, false
}

// remember notes an act. What a snapshot holds of the list is not changed: it is only cut at its beginning and written behind its
// end.
func (s *State) remember(r task.RequestID, job task.JobID) {
	for len(s.acts) > 0 && (s.acts[0].until <= s.Led || len(s.acts) >= maxActs) {
		s.acts = s.acts[1:]
	}
	if r != "" {
		s.acts = append(s.acts, act{r, job, s.Led + requestWindow})
	}
}
