package fsm

import (
	"fmt"
	"slices"

	"lanjobs/task"
)

type mQueue struct {
	max    int
	paused bool
}

type mSchedule struct {
	spec                   *task.Spec
	json                   string
	paused                 bool
	due                    int64
	nominal                string
	waiting                *FireSchedule
	fired, missed, skipped uint64
}

type mAct struct {
	job   task.JobID
	until task.Millis
}

func queueOf(spec *task.Spec) string {
	if spec.Queue == "" {
		return task.DefaultQueue
	}
	return spec.Queue
}

// room tells whether a queue has room for one lease more.
func (m *model) room(queue string) bool {
	q, active := m.queues[queue], 0
	m.each(func(r task.ShardRef, sh *mShard) {
		if sh.leased() && m.jobs[r.Job].queue == queue {
			active++
		}
	})
	return !q.paused && (q.max == 0 || active < q.max)
}

func (m *model) fireWaiting() {
	m.settle()
	for name, sc := range m.schedules {
		if sc.waiting != nil && len(m.runs(name)) == 0 {
			c := sc.waiting
			sc.waiting = nil
			m.fire(sc, c)
			m.settle()
		}
	}
}

func (m *model) fire(sc *mSchedule, c *FireSchedule) {
	id := c.Job
	for n := 2; m.jobs[id] != nil; n++ {
		id = c.Job + task.JobID(fmt.Sprint(n))
	}
	sc.fired++
	m.addJob(id, &mJob{spec: sc.spec, schedule: c.Name, due: c.Due})
}

func (m *model) known(r task.RequestID) (mAct, bool) {
	a, ok := m.did[r]
	return a, ok && a.until > m.led
}

func (m *model) note(r task.RequestID, job task.JobID) { m.did[r] = mAct{job, m.led + requestWindow} }

func (m *model) submitSchedule(c *SubmitJob, spec *task.Spec) (bool, string) {
	if _, done := m.known(c.RequestID); done {
		return true, spec.Name
	}
	if m.queues[queueOf(spec)] == nil {
		return false, ""
	}
	m.note(c.RequestID, "")
	sc := m.schedules[spec.Name]
	switch {
	case sc == nil:
		sc = &mSchedule{due: m.wall, paused: spec.Schedule.Paused}
		m.schedules[spec.Name] = sc
	case *sc.spec.Schedule != *spec.Schedule:
		if sc.spec.Schedule.Paused != spec.Schedule.Paused {
			sc.paused = spec.Schedule.Paused
		}
		sc.due, sc.nominal = max(sc.due, m.wall), ""
	}
	if sc.json != string(c.Spec) && sc.paused && sc.waiting != nil {
		sc.waiting = nil
		sc.skipped++
	}
	sc.spec, sc.json = spec, string(c.Spec)
	return true, spec.Name
}

func (m *model) fireSchedule(c *FireSchedule) (bool, string) {
	if a, done := m.known(c.RequestID); done {
		return true, string(a.job)
	}
	sc, runs := m.schedules[c.Name], m.runs(c.Name)
	if sc == nil || m.jobs[c.Job] != nil || !c.Manual && (sc.paused || c.Due <= sc.due || c.Nominal == sc.nominal) {
		return false, ""
	}
	overlap := sc.spec.Schedule.Overlap
	blocked := len(runs) > 0 && (overlap == task.OverlapSkip || overlap == task.OverlapQueue && sc.waiting != nil)
	if blocked && c.Manual {
		return false, ""
	}
	if !c.Manual {
		sc.due, sc.nominal = c.Due, c.Nominal
		sc.missed += uint64(c.Missed)
	}
	job := c.Job
	switch {
	case blocked:
		sc.skipped++
		job = ""
	case len(runs) == 0 || overlap == task.OverlapAllow:
		m.fire(sc, c)
	default:
		if sc.waiting != nil {
			sc.skipped++
		}
		sc.waiting = c
		for _, j := range runs {
			if overlap == task.OverlapReplace && !j.cancelling {
				m.stop(j)
			}
		}
	}
	m.note(c.RequestID, job)
	return true, string(job)
}

func (m *model) setSchedule(c *SetSchedule) bool {
	if _, done := m.known(c.RequestID); done {
		return true
	}
	sc := m.schedules[c.Name]
	if sc == nil || !slices.Contains([]ScheduleAction{SchedulePause, ScheduleResume, ScheduleRemove}, c.Action) {
		return false
	}
	m.note(c.RequestID, "")
	switch {
	case c.Action == ScheduleRemove:
		delete(m.schedules, c.Name)
	case c.Action == SchedulePause && !sc.paused && sc.waiting != nil:
		sc.waiting = nil
		sc.skipped++
	case c.Action == ScheduleResume && sc.paused:
		sc.due = max(sc.due, m.wall)
	}
	sc.paused = c.Action == SchedulePause
	return true
}

func (m *model) setQueue(c *SetQueue) bool {
	if _, done := m.known(c.RequestID); done {
		return true
	}
	q := m.queues[c.Name]
	if c.Remove {
		used := q == nil || c.Name == task.DefaultQueue
		for _, j := range m.jobs {
			used = used || j.queue == c.Name && !j.final
		}
		for _, sc := range m.schedules {
			used = used || queueOf(sc.spec) == c.Name
		}
		if !used {
			m.note(c.RequestID, "")
			delete(m.queues, c.Name)
		}
		return !used
	}
	if c.Balance != nil && !c.Balance.Known() {
		return false
	}
	m.note(c.RequestID, "")
	if q == nil {
		q = &mQueue{}
		m.queues[c.Name] = q
	}
	if c.Max != nil {
		q.max = *c.Max
	}
	if c.Paused != nil {
		q.paused = *c.Paused
	}
	return true
}

func (m *model) setJob(c *SetJob) bool {
	j := m.jobs[c.Job]
	if j == nil || j.acts[c.RequestID] {
		return j != nil
	}
	if j.final || j.cancelling || c.Action == JobPriority && (c.Priority < 0 || c.Priority > 100) {
		return false
	}
	switch c.Action {
	case JobPriority:
		j.priority = c.Priority
	case JobPause, JobResume:
		j.paused = c.Action == JobPause
	default:
		return false
	}
	j.acts[c.RequestID] = true
	return true
}

func (m *model) expire(c *ExpireJob) bool {
	j := m.jobs[c.Job]
	if j == nil || j.expired {
		return j != nil
	}
	late := !j.begun && j.spec.StartWithin > 0 && m.led-j.submitted >= j.spec.StartWithin ||
		j.begun && j.spec.Deadline > 0 && m.led-j.started >= j.spec.Deadline
	if j.final || j.cancelling || !late {
		return false
	}
	m.stop(j)
	j.expired = true
	return true
}
