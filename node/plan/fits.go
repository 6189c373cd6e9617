package plan

import (
	"slices"

	"lanjobs/fsm"
	"lanjobs/task"
)

// Fits says machine by machine what keeps it from shards of a stage whatever job of a queue they are of, by the code that places: for a job
// that is not there yet, and where one answer is to do for many jobs. A machine without a Kind takes one now.
func Fits(v *View, queue string, spec *task.StageSpec) []Reason {
	p := newPlacer(v)
	job := &fsm.Job{Spec: &fsm.Spec{Spec: task.Spec{Queue: queue, Stages: []task.StageSpec{*spec}}}}
	c := &cursor{job: job, pick: pick{job: job}, fit: p.fitOf(job.Queue(), &job.Spec.Stages[0])}
	out := make([]Reason, 0, len(p.members))
	for _, m := range p.members {
		r := Reason{Node: m.id, Kind: p.judgeStage(job.Queue(), spec, c.fit.need, m)}
		if r.Kind == "" {
			r.Kind = c.fit.judgeRoom(m)
		}
		p.say(&r, c, m)
		out = append(out, r)
	}
	return out
}

// judgeRoom is what keeps a machine that meets a stage's needs from one of its shards now.
func (f *fit) judgeRoom(m *member) Kind {
	switch {
	case !slices.ContainsFunc(f.seats, func(s seat) bool { return s.member == m }):
		return KindLeads
	case m.held >= m.info.Slots:
		return KindFull
	case m.free > 0 && !m.room(&f.need):
		return KindResources
	case m.free <= 0:
		return KindAsked
	}
	return ""
}
