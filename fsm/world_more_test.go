package fsm

import (
	"fmt"

	"lanjobs/task"
)

// shape gives a stage one of the ways to get its shards, now and then.
func (w *world) shape(spec *task.Spec, st *task.StageSpec) {
	st.Success.FailFast = w.one(4)
	switch w.Intn(15) {
	case 0, 1:
		if len(st.Needs) > 0 {
			st.Shards, st.ShardsFrom = 0, st.Needs[0]+"."+pick(w, "a", "b")
		}
	case 2:
		st.Shards, st.Broadcast = 0, true
		if w.one(3) {
			st.Require = []task.Requirement{{Label: "z", Op: task.OpExists}}
		}
	case 3, 4, 6, 7:
		st.Range = &task.RangeSpec{Start: int64(w.Intn(3)), Size: int64(1 + w.Intn(20))}
		st.Range.End = st.Range.Start + int64(1+w.Intn(30))
		st.Shards = int(st.Range.Shards())
	case 5:
		for range st.Shards {
			st.Weights = append(st.Weights, w.Intn(4))
		}
	}
	if w.one(5) {
		st.ShardKey = pick(w, "k-${LANJOBS_SHARD}", "k-${LANJOBS_ITEM}", "${LANJOBS_SCHEDULED_FOR}-${LANJOBS_SHARD}", "${LANJOBS_STAGE}")
	}
}

// times gives a job its queue, and limits of time or a schedule, now and then.
func (w *world) times(spec *task.Spec) {
	spec.Queue = pick(w, "default", "", "q1", "q1", "q2")
	if w.s.Queue(spec.Queue) == nil && !w.one(4) {
		spec.Queue = "default"
	}
	if w.one(5) {
		spec.StartWithin = task.Millis(w.Intn(40)) * task.Second
	}
	if w.one(5) {
		spec.Deadline = task.Millis(w.Intn(60)) * task.Second
	}
	if w.one(5) {
		spec.Schedule = &task.Schedule{Cron: pick(w, "@daily", "@hourly"), Timezone: "UTC", Overlap: pick(w, overlaps...), Paused: w.one(6)}
	}
}

// fire is an occurrence: mostly the next one of a schedule, sometimes one that was decided before.
func (w *world) fire() Command {
	name, due := "name1", int64(w.Intn(1000))
	if ss := w.s.Schedules(); len(ss) > 0 && !w.one(10) {
		sc := ss[w.Intn(len(ss))]
		name, due = sc.Name, sc.LastDue+int64(w.Intn(5))-1
	}
	if w.one(5) {
		return &SkipSchedule{Name: name, Nominal: fmt.Sprint("t", due), Due: due, Missed: w.Intn(3), Reason: "late"}
	}
	w.jobs++
	return &FireSchedule{Name: name, Nominal: fmt.Sprint("t", due), Due: due, Job: task.JobID(fmt.Sprint("j", w.jobs-1)), Missed: w.Intn(2), Manual: w.one(5), By: "me", RequestID: w.request()}
}

// set is an act of a person, or the end of a job's time.
func (w *world) set() Command {
	switch w.Intn(8) {
	case 0, 1:
		return &SetSchedule{Name: pick(w, "name0", "name1"), Action: pick(w, SchedulePause, ScheduleResume, ScheduleResume, ScheduleRemove, "paint"), By: "me", RequestID: w.request()}
	case 2, 3:
		c := &SetQueue{Name: pick(w, "q1", "q2", "default"), By: "me", RequestID: w.request()}
		if w.one(2) {
			c.Max = new(w.Intn(4))
		}
		if w.one(3) {
			c.Paused = new(w.one(3))
		}
		if w.one(4) {
			c.Balance = new(pick(w, append(task.Balances, "odd")...))
		}
		c.Remove = w.one(6)
		return c
	case 4, 5:
		return &SetJob{Job: w.job(), Action: pick(w, JobPause, JobResume, JobResume, JobPriority, "paint"), Priority: w.Intn(104) - 1, By: "me", RequestID: w.request()}
	default:
		if due := w.s.Overdue(w.s.Led + MaxElapsed); len(due) > 0 {
			return &ExpireJob{Job: due[0]}
		}
		return &ExpireJob{Job: w.job()}
	}
}

// split is a cursor, or the wish for a split at the next one.
func (w *world) split() Command {
	g := w.held()
	for _, h := range w.grants[max(len(w.grants)-30, 0):] { // one with a range, if there is one
		j := w.s.Job(h.ref.Job)
		if j == nil || w.s.Lease(h.token) == nil || j.Spec.Stages[h.ref.Stage].Range == nil || w.one(3) {
			continue
		}
		g = h
		if _, ok := j.Splittable(h.ref.Stage, h.ref.Shard); ok {
			break
		}
	}
	at := int64(w.Intn(30))
	if j := w.s.Job(g.ref.Job); j != nil && j.Shard(g.ref.Stage, g.ref.Shard) != nil && !w.one(5) {
		if _, ok := j.Splittable(g.ref.Stage, g.ref.Shard); ok && w.one(2) {
			return &SplitShard{Ref: g.ref, Token: g.token}
		}
		if r, ok := j.RangeOf(g.ref.Stage, g.ref.Shard); ok {
			at = r.Start + int64(w.Intn(4))
			if x := j.Shard(g.ref.Stage, g.ref.Shard).Extra; x != nil && x.HasCursor {
				at = x.Cursor + int64(w.Intn(4)) - 1
			}
		}
	}
	if w.one(8) {
		return &SplitShard{Ref: g.ref, Token: g.token}
	}
	return &Cursor{Ref: g.ref, Token: g.token, Cursor: at, RequestID: w.request()}
}
