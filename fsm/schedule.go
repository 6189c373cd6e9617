package fsm

import (
	"slices"
	"strings"

	"lanjobs/task"
)

// Schedule is a job that runs again and again, or once at a set time (R32). Outside this package it is for reading only.
type Schedule struct {
	Name    string
	Spec    *Spec // what each of its jobs runs; its own Schedule says when
	By      string
	Created int64 // leader's wall clock, Unix milliseconds
	Paused  bool
	// LastDue is the planned moment of the last occurrence that was decided, Unix milliseconds: nothing up to it ever fires
	// again. It starts at Created. LastNominal is its name, "" before the first.
	LastDue     int64
	LastNominal string
	LastJob     task.JobID   // the newest job it made; it may have been collected
	Recent      []task.JobID // the newest jobs it made, oldest first, at most recentRuns
	// Fired counts jobs made, Missed occurrences that were not fired when they were due (those made up later too), Skipped those
	// left out since the run before was not over or there was no room for another job.
	Fired, Missed, Skipped uint64
	Waiting                *Occurrence // overlap queue, replace: fires when the running job has ended; nil = none
}

// Occurrence is one time that a schedule names, and the job to make of it.
type Occurrence struct {
	Nominal string
	Due     int64
	Job     task.JobID
	By      string // who asked for it by hand
}

// recentRuns bounds Schedule.Recent.
const recentRuns = 10

// Schedules gives all schedules, sorted by name.
func (s *State) Schedules() []*Schedule { return s.schedules }

// Busy tells whether a run of a schedule is not over.
func (s *State) Busy(schedule string) bool { return len(s.runs[schedule]) > 0 }

// ScheduleChanges is a number that is another one after any schedule was changed, made or removed. It is derived.
func (s *State) ScheduleChanges() uint64 { return s.scheduleChanges }

// Schedule finds a schedule, nil if there is none of that name.
func (s *State) Schedule(name string) *Schedule {
	if i, found := s.scheduleAt(name); found {
		return s.schedules[i]
	}
	return nil
}

func (s *State) scheduleAt(name string) (int, bool) {
	return slices.BinarySearchFunc(s.schedules, name, func(sc *Schedule, name string) int { return strings.Compare(sc.Name, name) })
}

// mutSchedule gives a schedule for writing, replaced whole, since a snapshot may hold the old one.
func (s *State) mutSchedule(i int) *Schedule {
	clone := *s.schedules[i]
	s.schedules[i] = &clone
	s.scheduleChanges++
	return &clone
}
