package schedule

import (
	"slices"
	"time"

	"lanjobs/task"
)

// An occurrence that is fired late by no more than this was not missed.
const (
	// Prompt is for every occurrence: a leader looks at its schedules once a second or so.
	Prompt = 2 * task.Second
	// OnTime is for the latest one: an election lay in between.
	OnTime = 30 * task.Second
)

// Decision is what to do about a schedule now.
type Decision struct {
	Fire []Occurrence // in their order
	// Missed counts the occurrences that could not be fired when they were due, Expired those of them that are older than the
	// grace. Dropped counts what will never be fired: missed ones that the policy does not make up. Missed = Dropped + those
	// in Fire that are made up.
	Missed, Expired, Dropped int
	More                     bool // there were more than MaxCount: the counts are too low
	// Last is to be stored with the firing as the new last one: all up to it are settled. It is the one given if nothing is due.
	Last Occurrence
	// Next is the first occurrence after Last; none (Nominal "") if the schedule is over or paused.
	Next Occurrence
	// Ahead is how far Last lies after now: some leader's clock was wrong, or this one's is. Nothing fires until it is past.
	Ahead task.Millis
}

// Settled tells whether Last is to be stored.
func (d *Decision) Settled() bool { return len(d.Fire) > 0 || d.Dropped > 0 }

// Decide is the misfire rule (R32): given the last settled occurrence, from replicated state (none for a new schedule), and
// the leader's wall clock, it says what to fire. Only the two of them count, not when the leader came to office, so a new
// leader neither repeats nor forgets. Of the occurrences after last that are due:
//
//	skip      fires those that are on time, and drops the others
//	run_once  does the same; if none is on time it makes up the latest one, unless that is older than the grace
//	run_all   fires those that are on time or not older than the grace, the latest RunAllMax
//
// On time is what is late by no more than Prompt, and the latest one by no more than OnTime. So a schedule fires at most once
// (three times if it fires each second) after a break, but for run_all, and a regular run also counts as the made-up one.
//
// Clocks: nothing up to last is ever given again, in whatever steps the clock goes. A clock that jumps ahead by years costs
// at most MaxCount occurrences of work and the firings of one long break; Ahead tells of it when the clock is right again.
//
// A paused schedule fires nothing and settles nothing. Whoever resumes it stores Prev(now) as the last one, or its pause
// becomes a break.
func (c *Calendar) Decide(last Occurrence, now time.Time) Decision {
	d := Decision{Last: last}
	if last.Planned.After(now) {
		d.Ahead = task.MillisOf(last.Planned.Sub(now))
	}
	if c.spec.Paused {
		return d
	}
	next, ok := c.Follow(last)
	if !ok || next.Due.After(now) {
		d.Next = next
		return d
	}
	var due []Occurrence // the latest first
	for o, ok := c.Prev(now); ok && c.follows(o, last); o, ok = c.Before(o) {
		if len(due) == MaxCount {
			d.More = true
			break
		}
		due = append(due, o)
	}
	if len(due) == 0 { // Next and Prev do not agree: never, unless the zone data are mad; and then no occurrence is lost
		due = append(due, next)
	}
	c.settle(&d, due, now)
	d.Next, _ = c.Follow(d.Last)
	return d
}

// settle decides about what is due, the latest first.
func (c *Calendar) settle(d *Decision, due []Occurrence, now time.Time) {
	for i, o := range due {
		late := task.MillisOf(now.Sub(o.Due))
		onTime := late <= Prompt || i == 0 && late <= OnTime
		expired := !onTime && late > c.spec.MisfireGrace
		if !onTime {
			d.Missed++
		}
		if expired {
			d.Expired++
		}
		makeUp := !expired && (c.spec.Misfire == task.MisfireRunAll && len(d.Fire) < c.spec.RunAllMax || c.spec.Misfire == task.MisfireRunOnce && i == 0)
		if onTime || makeUp {
			d.Fire = append(d.Fire, o)
		}
	}
	d.Dropped = len(due) - len(d.Fire)
	d.Last = due[0]
	slices.Reverse(d.Fire)
}
