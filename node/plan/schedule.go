package plan

import (
	"container/heap"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/task/schedule"
)

// Bounds of one plan's work on schedules; what is left comes with the next.
const (
	maxDecided = 100  // schedules looked at
	maxMissed  = 2000 // occurrences counted
)

// WatchWall is how often a leader with schedules looks at its wall clock: somebody may have set it, and no timer tells.
const WatchWall = 10 * time.Second

// Timetable is when each schedule is to be looked at next. All of it follows from the ledger (LastDue of each schedule) and a
// wall clock, so a new leader builds its own and neither repeats nor forgets an occurrence (R32). While nothing is due it
// costs a plan next to nothing.
type Timetable struct {
	newID   func() task.JobID
	state   *fsm.State
	changes uint64          // State.ScheduleChanges when it was last looked at
	known   []*fsm.Schedule // as they were last seen, by name; the ledger replaces one to change it
	entries map[string]*entry
	queue   entryHeap
	held    []*entry                      // that wait for a run to end, see makeUp
	at      time.Time                     // wall time of the last plan
	woken   map[task.NodeID]time.Duration // awake clock of the last packet, see Wakes
}

// entry is one schedule in the queue.
type entry struct {
	known    *fsm.Schedule
	calendar *schedule.Calendar // nil until it is looked at for the first time
	err      error              // its calendar cannot be made here
	look     time.Time          // when to look at it; zero = at once
	noticed  time.Time          // when the break was noticed that is being made up; zero = none is
	held     bool               // it is in Timetable.held
	place    int                // in the queue, -1 = nothing is to come
}

// NewTimetable is that of a new term. newID draws ids for jobs; taken ones are drawn again.
func NewTimetable(newID func() task.JobID) *Timetable {
	return &Timetable{newID: newID, entries: map[string]*entry{}, woken: map[task.NodeID]time.Duration{}}
}

// Schedules gives the firings of what is due at a wall time, and settles what is dropped.
func (t *Timetable) Schedules(v *View, wall time.Time) []fsm.Command {
	t.refresh(v.State)
	if t.at.Sub(wall) > time.Second { // the clock was set back: what was put off by it comes sooner now
		for _, e := range t.queue {
			e.look = time.Time{}
		}
	}
	t.at = wall
	t.wakeHeld(v.State)
	var out []fsm.Command
	for n, missed := 0, 0; len(t.queue) > 0 && !t.queue[0].look.After(wall) && n < maxDecided && missed < maxMissed; n++ {
		e := t.queue[0]
		commands, late := t.decide(v.State, e, wall)
		out = append(out, commands...)
		missed += late
		if e.look.IsZero() {
			heap.Pop(&t.queue)
		} else {
			heap.Fix(&t.queue, 0)
		}
	}
	return out
}

// Next is how long from a wall time on nothing is due; ok is false if nothing ever is.
func (t *Timetable) Next(s *fsm.State, wall time.Time) (wait time.Duration, ok bool) {
	t.refresh(s)
	if len(t.queue) == 0 {
		return 0, false
	}
	return min(max(t.queue[0].look.Sub(wall), 0), WatchWall), true
}

// Fault is why a schedule cannot be followed on this machine, nil if it can: its zone data lack the zone.
func (t *Timetable) Fault(name string) error {
	if e := t.entries[name]; e != nil {
		return e.err
	}
	return nil
}

// refresh takes in what has changed in the ledger since it was last called.
func (t *Timetable) refresh(s *fsm.State) {
	if t.state == s && t.changes == s.ScheduleChanges() {
		return
	}
	t.state, t.changes = s, s.ScheduleChanges()
	now, i := s.Schedules(), 0
	for _, sc := range now {
		for i < len(t.known) && t.known[i].Name < sc.Name {
			t.remove(t.known[i].Name)
			i++
		}
		if i < len(t.known) && t.known[i].Name == sc.Name {
			if t.known[i] != sc {
				t.update(t.entries[sc.Name], sc)
			}
			i++
			continue
		}
		e := &entry{known: sc, place: -1}
		t.entries[sc.Name] = e
		t.update(e, sc)
	}
	for ; i < len(t.known); i++ {
		t.remove(t.known[i].Name)
	}
	t.known = append(t.known[:0], now...)
}

// update has a schedule looked at, at once unless it is paused.
func (t *Timetable) update(e *entry, sc *fsm.Schedule) {
	if e.known.Spec != sc.Spec || e.known.Created != sc.Created {
		e.calendar, e.err = nil, nil
	}
	if e.calendar == nil || sc.Paused {
		e.noticed = time.Time{}
	}
	e.known, e.look = sc, time.Time{}
	switch {
	case sc.Paused && e.place >= 0:
		heap.Remove(&t.queue, e.place)
	case sc.Paused:
	case e.place >= 0:
		heap.Fix(&t.queue, e.place)
	default:
		heap.Push(&t.queue, e)
	}
}

func (t *Timetable) remove(name string) {
	if e := t.entries[name]; e.place >= 0 {
		heap.Remove(&t.queue, e.place)
	}
	delete(t.entries, name)
}

// decide gives what is to be done about one schedule, and sets when to look again.
func (t *Timetable) decide(s *fsm.State, e *entry, wall time.Time) (out []fsm.Command, missed int) {
	e.look = time.Time{}
	if e.calendar == nil {
		spec := *e.known.Spec.Schedule
		spec.Paused = false // the ledger says that
		e.calendar, e.err = schedule.Compile(spec, e.known.Name, time.UnixMilli(e.known.Created))
		if e.err != nil {
			e.calendar = nil
			return nil, 0
		}
	}
	d := e.calendar.Decide(e.last(), wall)
	if inTurn(e.known.Spec.Schedule) {
		if out, missed, making := t.makeUp(s, e, d, wall); making {
			return out, missed
		}
	}
	if !d.Settled() {
		if d.Next.Nominal != "" {
			e.look = d.Next.Due
		}
		return nil, 0
	}
	e.look = wall.Add(time.Second) // unless the ledger has taken it in by then: see update
	n := len(d.Fire)
	skips := n == 0 || d.Fire[n-1].Nominal != d.Last.Nominal
	for i, o := range d.Fire {
		f := t.fire(s, e, o)
		if i == n-1 && !skips {
			f.Missed, f.Dropped = d.Missed, d.Dropped
		}
		out = append(out, f)
	}
	if skips {
		out = append(out, e.skip(d.Last, d.Missed, "missed (misfire: "+string(e.known.Spec.Schedule.Misfire)+")"))
	}
	return out, d.Missed
}

// fire makes the job of an occurrence.
func (t *Timetable) fire(s *fsm.State, e *entry, o schedule.Occurrence) *fsm.FireSchedule {
	return &fsm.FireSchedule{Name: e.known.Name, Nominal: o.Nominal, Due: o.Planned.UnixMilli(), Job: t.freshID(s)}
}

// skip settles all occurrences up to one without a job.
func (e *entry) skip(upTo schedule.Occurrence, missed int, reason string) *fsm.SkipSchedule {
	return &fsm.SkipSchedule{Name: e.known.Name, Nominal: upTo.Nominal, Due: upTo.Planned.UnixMilli(), Missed: missed, Reason: reason}
}

// last is the occurrence up to which all are decided. A schedule that is new or was changed has no name of one: then it is the
// last one before.
func (e *entry) last() schedule.Occurrence {
	if e.known.LastNominal != "" {
		return schedule.Occurrence{Nominal: e.known.LastNominal, Planned: time.UnixMilli(e.known.LastDue)}
	}
	if e.known.LastDue <= e.known.Created {
		return schedule.Occurrence{}
	}
	o, _ := e.calendar.Prev(time.UnixMilli(e.known.LastDue))
	return o
}

func (t *Timetable) freshID(s *fsm.State) task.JobID {
	for {
		if id := t.newID(); s.Job(id) == nil {
			return id
		}
	}
}

// entryHeap orders entries by when to look at them.
type entryHeap []*entry

func (h entryHeap) Len() int           { return len(h) }
func (h entryHeap) Less(i, j int) bool { return h[i].look.Before(h[j].look) }
func (h entryHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}
func (h *entryHeap) Push(x any) {
	e := x.(*entry)
	e.place = len(*h)
	*h = append(*h, e)
}
func (h *entryHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	e.place = -1
	*h = old[:len(old)-1]
	return e
}
