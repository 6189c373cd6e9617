package plan

import (
	"container/heap"
	"slices"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/task/schedule"
)

// What misfire: run_all makes up after a break follows each other where runs may not overlap (C15). Overlap is about times that come
// while a run lasts; it would skip all but the first of these, though each was asked for. Only FireSchedule moves the ledger on, one
// occurrence at a time, so a new leader goes on where the last one stopped.

// inTurn tells whether what is made up of a schedule waits for the run before.
func inTurn(s *task.Schedule) bool {
	return s.Misfire == task.MisfireRunAll && (s.Overlap == task.OverlapSkip || s.Overlap == task.OverlapQueue)
}

// makeUp fires the next occurrence of a break, or waits for the run before it. A break is judged as of the moment at which it was
// noticed: what waits for its turn grows no older. now is the decision as of this moment. False: there is no break, and the schedule
// has its normal rhythm.
func (t *Timetable) makeUp(s *fsm.State, e *entry, now schedule.Decision, wall time.Time) (out []fsm.Command, missed int, making bool) {
	began, d := !e.noticed.IsZero(), now
	if began && e.noticed.Before(wall) {
		d = e.calendar.Decide(e.last(), e.noticed)
	} else { // or the clock was set back
		e.noticed = wall
	}
	madeUp := d.Missed - d.Dropped // the oldest of Fire
	switch {
	case len(d.Fire) == 0 || !began && madeUp == 0:
		e.noticed = time.Time{}
		if began {
			return e.passOver(now, wall)
		}
		return nil, 0, false
	case s.Busy(e.known.Name):
		e.look = wall.Add(WatchWall) // the end of the run is what it waits for, see wakeHeld
		if !e.held {
			e.held, t.held = true, append(t.held, e)
		}
		return nil, d.Missed, true
	}
	e.look = wall.Add(time.Second) // unless the ledger has taken it in by then: see update
	f := t.fire(s, e, d.Fire[0])
	f.Missed, f.Dropped = d.Dropped, d.Dropped
	if madeUp > 0 {
		f.Missed++
	}
	return []fsm.Command{f}, d.Missed, true
}

// passOver settles what was due while a break was made up: as overlap says, it is not run any more.
func (e *entry) passOver(d schedule.Decision, wall time.Time) (out []fsm.Command, missed int, making bool) {
	late := d.Missed
	if late == 0 {
		return nil, 0, false
	}
	onTime := d.Fire[late-d.Dropped:]
	upTo := d.Last
	if len(onTime) > 0 { // they fire with the next look
		upTo, _ = e.calendar.Before(onTime[0])
	}
	e.look = wall.Add(time.Second)
	return []fsm.Command{e.skip(upTo, late, "due while missed ones were made up (misfire: run_all)")}, late, true
}

// wakeHeld has those looked at at once whose run has ended.
func (t *Timetable) wakeHeld(s *fsm.State) {
	t.held = slices.DeleteFunc(t.held, func(e *entry) bool {
		if e.place >= 0 && s.Busy(e.known.Name) {
			return false
		}
		e.held = false
		if e.place >= 0 { // neither paused nor removed
			e.look = time.Time{}
			heap.Fix(&t.queue, e.place)
		}
		return true
	})
}
