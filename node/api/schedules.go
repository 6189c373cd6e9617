package api

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/http"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
)

// maxNext bounds how many coming times of one schedule are worked out, and listNext those of each in a list.
const (
	maxNext     = 100
	defaultNext = 5
	listNext    = 1
)

// listSchedules answers GET /v1/schedules, by name (R32).
func (a *API) listSchedules(_ context.Context, q *request) (*reply, error) {
	limit, err := q.page()
	if err != nil {
		return nil, err
	}
	next, err := q.count("next", listNext, maxNext)
	if err != nil {
		return nil, err
	}
	out := task.List[task.ScheduleView]{Kind: "ScheduleList", Items: []task.ScheduleView{}}
	after := q.query.Get("after")
	a.look(q, func(v *view) {
		out.Index = v.Index
		for _, s := range v.Schedules() {
			if s.Name <= after {
				continue
			}
			if len(out.Items) == limit {
				out.Next = out.Items[limit-1].Name
				return
			}
			out.Items = append(out.Items, v.schedule(s, next))
		}
	})
	return ok(out)
}

// onSchedule gives f the schedule of the path.
func (a *API) onSchedule(q *request, f func(*view, *fsm.Schedule) error) error {
	var err error
	a.look(q, func(v *view) {
		s := v.Schedule(q.value("ref"))
		if s == nil {
			err = v.noSchedule(q.value("ref"))
			return
		}
		err = f(v, s)
	})
	return err
}

func (v *view) noSchedule(ref string) error {
	var names []string
	for _, s := range v.Schedules() {
		names = append(names, s.Name)
	}
	return noSuch("schedule", ref, names, "All schedules: lanjobs schedule ls")
}

// noSuch says that there is nothing of a name, and what was probably meant.
func noSuch(what, ref string, names []string, hint string) error {
	detail := fmt.Sprintf("no %s %s.", what, shown(ref))
	if near := task.Nearest(names, ref); near != "" {
		detail += fmt.Sprintf(" Did you mean %q?", near)
	}
	return task.NewProblem(task.ErrNotFound, detail, hint)
}

// getSchedule answers GET /v1/schedules/{ref}, with the next times that next= asks for.
func (a *API) getSchedule(_ context.Context, q *request) (*reply, error) {
	next, err := q.count("next", defaultNext, maxNext)
	if err != nil {
		return nil, err
	}
	var out task.ScheduleView
	if err := a.onSchedule(q, func(v *view, s *fsm.Schedule) error { out = v.schedule(s, next); return nil }); err != nil {
		return nil, err
	}
	return ok(out)
}

func (a *API) pauseSchedule(ctx context.Context, q *request) (*reply, error) {
	return a.setSchedule(ctx, q, fsm.SchedulePause)
}

func (a *API) resumeSchedule(ctx context.Context, q *request) (*reply, error) {
	return a.setSchedule(ctx, q, fsm.ScheduleResume)
}

// setSchedule answers POST /v1/schedules/{ref}/pause and resume (R36).
func (a *API) setSchedule(ctx context.Context, q *request, act fsm.ScheduleAction) (*reply, error) {
	name := q.value("ref")
	if err := a.onSchedule(q, func(*view, *fsm.Schedule) error { return nil }); err != nil {
		return nil, err
	}
	if _, err := a.propose(ctx, &fsm.SetSchedule{Name: name, Action: act, By: q.by, RequestID: q.id}); err != nil {
		return nil, err
	}
	return a.getSchedule(ctx, q)
}

// removeSchedule answers DELETE /v1/schedules/{ref}. Its jobs stay. One that a repeat of this request finds gone was removed by it.
func (a *API) removeSchedule(ctx context.Context, q *request) (*reply, error) {
	var out task.ScheduleView
	err := a.onSchedule(q, func(v *view, s *fsm.Schedule) error { out = v.schedule(s, 0); return nil })
	if err != nil {
		return nil, err
	}
	if _, err := a.propose(ctx, &fsm.SetSchedule{Name: out.Name, Action: fsm.ScheduleRemove, By: q.by, RequestID: q.id}); err != nil {
		return nil, err
	}
	return ok(out)
}

// triggerSchedule answers POST /v1/schedules/{ref}/trigger: a run beside those of the calendar, under the same overlap rule. The
// id of its job follows from the request's, so that a repeat makes the same one.
func (a *API) triggerSchedule(ctx context.Context, q *request) (*reply, error) {
	c := &fsm.FireSchedule{Name: q.value("ref"), Job: triggered(q.id), Due: a.clock.Wall().UnixMilli(), Manual: true, By: q.by, RequestID: q.id}
	c.Nominal = "manual " + time.UnixMilli(c.Due).UTC().Format(time.RFC3339)
	if err := a.onSchedule(q, func(*view, *fsm.Schedule) error { return nil }); err != nil {
		return nil, err
	}
	r, err := a.propose(ctx, c)
	if err != nil {
		return nil, err
	}
	out := task.SubmitReply{ID: r.Job, Name: c.Name, Schedule: c.Name}
	err = a.onSchedule(q, func(v *view, s *fsm.Schedule) error {
		running := v.running(s)
		switch {
		case r.Job == "":
			return task.NewProblem(task.ErrConflict, "nothing was started: the cluster has no room for another job.", "The audit log has the reason: lanjobs events --kind schedule")
		case v.Job(r.Job) == nil && running != "":
			out.Note = fmt.Sprintf("it starts when run %s has ended", running)
		case v.Job(r.Job) != nil:
			out.Note = v.cannotRun(&v.Job(r.Job).Spec.Spec)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return jsonReply(http.StatusCreated, out)
}

// triggered makes a job's id of a request's.
func triggered(id task.RequestID) task.JobID {
	sum := sha256.Sum256([]byte("trigger " + id))
	return task.JobID("j" + crockford.EncodeToString(sum[:5]))
}

// crockford is the alphabet of job ids.
var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// running is a run of a schedule that is not over, "" if there is none.
func (v *view) running(s *fsm.Schedule) task.JobID {
	for i := len(s.Recent) - 1; i >= 0; i-- {
		if j := v.Job(s.Recent[i]); j != nil && !j.State.Final() {
			return j.ID
		}
	}
	return ""
}
