package api

import (
	"fmt"
	"slices"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/task/schedule"
)

// Names of a schedule's states.
const (
	scheduleActive  = "active"
	schedulePaused  = "paused"
	scheduleOver    = "over"    // no occurrence is left
	scheduleInvalid = "invalid" // this machine cannot work it out: it does not know the zone
)

// schedule is one schedule with its next n times. What is said of the calendar is this machine's opinion; the leader decides.
func (v *view) schedule(s *fsm.Schedule, n int) task.ScheduleView {
	spec := *s.Spec.Schedule
	out := task.ScheduleView{Name: s.Name, State: scheduleActive, When: schedule.Describe(spec), Schedule: spec, Queue: s.Spec.Queue, Priority: s.Spec.Priority,
		Labels: slices.Clone(s.Spec.Labels), Created: time.UnixMilli(s.Created).UTC(), By: s.By, Next: []task.OccurrenceView{}, Runs: []task.RunView{},
		Fired: s.Fired, Missed: s.Missed, Skipped: s.Skipped}
	out.Schedule.Paused = s.Paused
	c, err := schedule.Compile(spec, s.Name, time.UnixMilli(s.Created))
	if err != nil {
		out.State, out.Note = scheduleInvalid, "this machine cannot work out its times: "+task.Explain(err).Detail
	} else {
		from := v.now
		if last := time.UnixMilli(s.LastDue); last.After(from) {
			from = last // nothing up to there fires again
		}
		next := c.NextTimes(from, max(n, 1))
		if len(next) == 0 {
			out.State = scheduleOver
		}
		for _, o := range next[:min(n, len(next))] {
			out.Next = append(out.Next, occurrence(o, c.Zone()))
		}
	}
	if s.Paused && out.State == scheduleActive {
		out.State = schedulePaused
	}
	if s.LastNominal != "" {
		out.Last = settled(s.LastNominal, s.LastDue, c)
	}
	if w := s.Waiting; w != nil {
		out.Waiting = settled(w.Nominal, w.Due, c)
	}
	for _, id := range slices.Backward(s.Recent) {
		if j := v.Job(id); j != nil {
			out.Runs = append(out.Runs, task.RunView{ID: j.ID, State: j.State, ScheduledFor: wallTime(j.ScheduledFor), Started: wallTime(j.Started), Ended: wallTime(j.Ended)})
		}
	}
	if out.Note == "" {
		out.Note = v.scheduleNote(s, out.State)
	}
	return out
}

// scheduleNote is the one thing to know about a schedule.
func (v *view) scheduleNote(s *fsm.Schedule, state string) string {
	ahead := time.UnixMilli(s.LastDue).Sub(v.now)
	switch {
	case state == schedulePaused:
		return "lanjobs schedule resume " + s.Name
	case state == scheduleOver:
		return "is over: it has no further time"
	case ahead > time.Minute && s.LastNominal != "":
		return fmt.Sprintf("its last time lies %s ahead of the leader's clock: nothing runs until that has passed. If a clock was wrong then: lanjobs schedule rm %s, and submit it again", short(ahead), s.Name)
	case s.Waiting != nil:
		return fmt.Sprintf("the next run starts when %s has ended", v.running(s))
	}
	return ""
}

// settled is an occurrence of which the ledger has the name and the planned time.
func settled(nominal string, due int64, c *schedule.Calendar) *task.OccurrenceView {
	zone := time.UTC
	if c != nil {
		zone = c.Zone()
	}
	out := occurrence(schedule.Occurrence{Nominal: nominal, Planned: time.UnixMilli(due), Due: time.UnixMilli(due)}, zone)
	return &out
}

func occurrence(o schedule.Occurrence, zone *time.Location) task.OccurrenceView {
	return task.OccurrenceView{Name: o.Nominal, Local: o.Planned.In(zone).Format("Mon 2006-01-02 15:04:05 MST"), Due: o.Due.UTC()}
}
