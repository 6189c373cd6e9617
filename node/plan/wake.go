package plan

import (
	"slices"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
)

// When a schedule has machines woken (Schedule.Wake): from so long before an occurrence until so long after it, a packet every so
// often while they are not here.
const (
	wakeBefore = 3 * time.Minute
	wakeAfter  = 5 * time.Minute
	wakeEvery  = 30 * time.Second
)

// Wakes gives the nodes that schedules want awake at a wall time and that are not here, each at most every wakeEvery, and how long
// until it may give another one. Nothing of it is replicated: a new leader sends once more. ok is false if no schedule wakes any.
func (t *Timetable) Wakes(s *fsm.State, wall time.Time, awake time.Duration) (out []task.NodeID, wait time.Duration, ok bool) {
	t.refresh(s)
	wait = WatchWall
	for _, sc := range t.known {
		names := sc.Spec.Schedule.WakeNames()
		e := t.entries[sc.Name]
		if len(names) == 0 || sc.Paused || e.calendar == nil {
			continue
		}
		ok = true
		if !e.near(wall) {
			continue
		}
		for _, n := range s.Nodes() {
			id := n.Info.ID
			if n.Gone != "" || n.Online || n.Incarnation == 0 || !slices.Contains(names, n.Info.Name) || slices.Contains(out, id) {
				continue
			}
			last, sent := t.woken[id]
			if left := last + wakeEvery - awake; sent && left > 0 {
				wait = min(wait, left)
				continue
			}
			t.woken[id] = awake
			out = append(out, id)
		}
	}
	return out, wait, ok
}

// near tells whether an occurrence is about to come, or came a short while ago.
func (e *entry) near(wall time.Time) bool {
	if !e.look.IsZero() && e.look.Sub(wall) <= wakeBefore {
		return true
	}
	last := e.known.LastDue
	return last > 0 && e.known.LastNominal != "" && wall.Sub(time.UnixMilli(last)) <= wakeAfter && wall.Sub(time.UnixMilli(last)) >= 0
}
