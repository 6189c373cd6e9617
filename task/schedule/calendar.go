package schedule

import (
	"strings"
	"time"

	"lanjobs/task"
)

// Occurrence is one time that a schedule names. The zero Occurrence is "none".
type Occurrence struct {
	// Nominal names it: unique in its schedule, the same on every machine. With the schedule's id it is the idempotency key.
	Nominal string `json:"nominal"`
	// Planned is its moment by the calendar; what a task is told it was scheduled for. Strictly rising.
	Planned time.Time `json:"planned"`
	// Due is Planned and its jitter: when to fire it. Before the next Planned.
	Due time.Time `json:"due"`
}

// Calendar gives the occurrences of a schedule. It does not change, so any number of goroutines may use it. No answer takes
// more work than to walk nine years of months.
type Calendar struct {
	compiled
	spec  Spec
	id    string
	start time.Time
}

// The occurrences of a Calendar lie between these Unix seconds: years of four digits, so that names sort.
const (
	minWall = 0            // 1970
	maxWall = 253000000000 // 9987
)

// Compile makes the Calendar of a stored Spec. The id is that of the schedule, start the wall time at which it was made, both
// from replicated state: cron and every have no occurrence up to start, and every counts from it in whole seconds. The error
// is a *task.Problem with all faults (ErrInvalid); for a Spec that passed Check it can only be a zone that this machine
// does not know. A time that has passed since is no fault.
func Compile(spec Spec, id string, start time.Time) (*Calendar, error) {
	c := &Calendar{compiled: compile(&spec), spec: spec, id: id, start: start.Truncate(time.Second)}
	if len(c.faults) > 0 {
		first := c.faults[0]
		p := task.NewProblem(task.ErrInvalid, first.Message, first.Suggestion)
		p.Faults = c.faults
		return nil, p
	}
	return c, nil
}

// Zone is the zone of the schedule.
func (c *Calendar) Zone() *time.Location { return c.zone }

// Next is the first occurrence that is due after a time; false if there is none (any more).
func (c *Calendar) Next(after time.Time) (Occurrence, bool) {
	if c.spec.Jitter > 0 {
		if o, ok := c.back(after); ok {
			if o = c.delayed(o); o.Due.After(after) {
				return o, true
			}
		}
	}
	return c.nextDelayed(after)
}

// Prev is the last occurrence that is due at or before a time.
func (c *Calendar) Prev(upTo time.Time) (Occurrence, bool) {
	o, ok := c.back(upTo)
	if !ok {
		return Occurrence{}, false
	}
	if o = c.delayed(o); o.Due.After(upTo) {
		return c.Before(o)
	}
	return o, true
}

// Between gives the occurrences that are due after one time and up to another, in order, at most limit and MaxCount.
func (c *Calendar) Between(after, until time.Time, limit int) []Occurrence {
	var out []Occurrence
	o, ok := c.Next(after)
	for ok && !o.Due.After(until) && len(out) < min(limit, MaxCount) {
		out = append(out, o)
		o, ok = c.nextDelayed(o.Planned)
	}
	return out
}

// NextTimes gives the next n occurrences that are due after a time, at most MaxRunAll; fewer if the schedule ends. A paused
// schedule has them too: they say what would come.
func (c *Calendar) NextTimes(after time.Time, n int) []Occurrence {
	return c.Between(after, time.Unix(maxWall, 0), min(n, MaxRunAll))
}

// Before is the occurrence before another one.
func (c *Calendar) Before(o Occurrence) (Occurrence, bool) {
	o, ok := c.back(o.Planned.Add(-time.Millisecond)) // moments are whole milliseconds
	if !ok {
		return Occurrence{}, false
	}
	return c.delayed(o), true
}

// Follow is the first occurrence after another one, whatever the time is: what Decide waits for. It is false if the schedule is
// over. None (the zero Occurrence) is followed by the first one of all. Only Nominal and Planned of last count.
func (c *Calendar) Follow(last Occurrence) (Occurrence, bool) {
	o, ok := c.ahead(last.Planned)
	// Each round is a minute of local time at least; names lie within maxShift of their moments, so this is enough.
	for range 2 * maxShift / 60 {
		if !ok {
			break
		}
		if c.follows(o, last) {
			return c.delayed(o), true
		}
		o, ok = c.ahead(o.Planned)
	}
	return Occurrence{}, false
}

// follows tells whether an occurrence comes after another in both moment and name. They differ if the other one was found
// with other zone data: then the same local time must not fire again at its new moment.
func (c *Calendar) follows(o, last Occurrence) bool {
	if last.Nominal == "" {
		return true
	}
	if !o.Planned.After(last.Planned) {
		return false
	}
	if c.kind != kindCron || !c.cron.once() {
		return true
	}
	local, zone, _ := strings.Cut(o.Nominal, "[")
	lastLocal, lastZone, _ := strings.Cut(last.Nominal, "[")
	return zone != lastZone || len(local) != len(lastLocal) || local > lastLocal // of another length: it was made of another Spec
}

func (c *Calendar) nextDelayed(after time.Time) (Occurrence, bool) {
	o, ok := c.ahead(after)
	if !ok {
		return Occurrence{}, false
	}
	return c.delayed(o), true
}

// ahead is the first occurrence that is planned after a time, without jitter.
func (c *Calendar) ahead(after time.Time) (Occurrence, bool) {
	if c.kind == kindAt {
		return c.oneOff(), c.at.After(after)
	}
	if after.Before(c.start) {
		after = c.start
	}
	if s := after.Unix(); s < minWall {
		after = time.Unix(minWall, 0)
	} else if s >= maxWall {
		return Occurrence{}, false
	}
	if c.kind == kindEvery {
		o := c.turn(c.turns(after) + 1)
		return o, o.Planned.Unix() < maxWall
	}
	moment, l, ok := nextCron(&c.cron, c.zone, after.Unix()+1)
	if !ok || moment >= maxWall {
		return Occurrence{}, false
	}
	return c.named(moment, l), true
}

// back is the last occurrence that is planned up to a time, without jitter.
func (c *Calendar) back(upTo time.Time) (Occurrence, bool) {
	if c.kind == kindAt {
		return c.oneOff(), !c.at.After(upTo)
	}
	if upTo.Unix() >= maxWall {
		upTo = time.Unix(maxWall-1, 999999999)
	}
	if !upTo.After(c.start) || upTo.Unix() < minWall {
		return Occurrence{}, false
	}
	if c.kind == kindEvery {
		n := c.turns(upTo)
		return c.turn(n), n > 0
	}
	moment, l, ok := prevCron(&c.cron, c.zone, upTo.Unix())
	if !ok || moment <= c.start.Unix() || moment < minWall {
		return Occurrence{}, false
	}
	return c.named(moment, l), true
}

func (c *Calendar) oneOff() Occurrence {
	return Occurrence{Nominal: c.nominal, Planned: c.at}
}

// turns is how many whole turns of every lie between start and a time.
func (c *Calendar) turns(t time.Time) int64 {
	return floorDiv(t.UnixMilli()-c.start.UnixMilli(), int64(c.spec.Every))
}

func (c *Calendar) turn(n int64) Occurrence {
	t := time.UnixMilli(c.start.UnixMilli() + n*int64(c.spec.Every)).UTC()
	return Occurrence{Nominal: t.Format("2006-01-02T15:04:05.999Z07:00"), Planned: t}
}

// named makes the occurrence of a moment and its local time.
func (c *Calendar) named(moment int64, l label) Occurrence {
	t := time.Unix(moment, 0).In(c.zone)
	if c.cron.once() {
		return Occurrence{Nominal: nominalOf(l, c.zone), Planned: t}
	}
	return Occurrence{Nominal: l.String() + t.Format("-07:00") + "[" + c.zone.String() + "]", Planned: t}
}
