package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"lanjobs/fsm"
	"lanjobs/task"
)

// submit answers POST /v1/jobs (R31).
func (a *API) submit(ctx context.Context, q *request) (*reply, error) {
	if isBulk(q.http) {
		return a.submitLines(ctx, q)
	}
	dry, err := q.flag("dry_run")
	if err != nil {
		return nil, err
	}
	s := q.lines[0]
	if dry {
		return a.dryRun(q, s)
	}
	a.look(q, func(v *view) { err = v.wakesWhom(s.spec) })
	if err != nil {
		return nil, err
	}
	results, errs := a.cfg.Leader.SubmitAll(ctx, []fsm.SubmitJob{{RequestID: s.id, Spec: s.data, Digest: s.sum, By: q.by}})
	if errs[0] != nil {
		return nil, errs[0]
	}
	s.result = results[0]
	var out *task.SubmitReply
	a.look(q, func(v *view) { out, err = v.submitted(s) })
	if err != nil {
		return nil, err
	}
	status := http.StatusCreated
	if out.Existed {
		status = http.StatusOK
	}
	rep, err := jsonReply(status, out)
	if err == nil {
		rep.set("Location", location(out))
	}
	return rep, err
}

func location(r *task.SubmitReply) string {
	if r.Schedule != "" {
		return "/v1/schedules/" + r.Schedule
	}
	return "/v1/jobs/" + string(r.ID)
}

// scheduled says what became of a job with a schedule: no job yet. A repeat of this very request is no news to its sender, who has
// had no answer yet; but somebody may have changed or removed the schedule since.
func (v *view) scheduled(sub *submission) *task.SubmitReply {
	r := &sub.result
	out := &task.SubmitReply{Name: r.Schedule, Schedule: r.Schedule, Existed: r.Existed && !r.Repeated}
	s := v.Schedule(r.Schedule)
	switch {
	case s == nil:
		out.Note = "it was removed since"
		return out
	case r.Repeated && s.Spec.Digest != string(sub.sum):
		out.Note = "it has been changed since by " + s.By
	default:
		out.Note = v.cannotRun(&s.Spec.Spec)
	}
	if next := v.schedule(s, 1).Next; len(next) > 0 {
		out.Next = &next[0]
	}
	return out
}

// submitted says what became of a submission.
func (v *view) submitted(s *submission) (*task.SubmitReply, error) {
	r := &s.result
	switch {
	case s.problem != nil:
		return nil, s.problem
	case r.Err != nil && r.Job != "":
		return nil, v.keyConflict(r.Job)
	case r.Err != nil && v.Queue(s.spec.Queue) == nil:
		return nil, v.noQueue(s.spec.Queue)
	case r.Err != nil:
		return nil, r.Err
	}
	if r.Schedule != "" {
		return v.scheduled(s), nil
	}
	out := &task.SubmitReply{ID: r.Job, Name: s.spec.Name}
	if j := v.Job(r.Job); j != nil {
		if j.Spec.Digest != string(s.sum) {
			return nil, task.NewProblem(task.ErrConflict, fmt.Sprintf("the request id %q was used %s ago by %s (%s) with a different file; nothing was submitted.",
				s.id, short(v.ago(j.Submitted)), j.ID, j.Spec.Name), "Other work needs another id.")
		}
		out.Name = j.Spec.Name
		// A repeat of this very request is no news to its sender: he has had no answer yet.
		out.Existed = r.Existed && j.Request != s.id
		if !out.Existed {
			out.Note = v.cannotRun(&j.Spec.Spec)
		}
	}
	return out, nil
}

// dryRun says what a submit would do, and does nothing.
func (a *API) dryRun(q *request, s *submission) (*reply, error) {
	out := task.SubmitReply{Name: s.spec.Name}
	var err error
	a.look(q, func(v *view) {
		out.Note = v.cannotRun(s.spec)
		old := v.keyUser(s.spec)
		if err = v.wakesWhom(s.spec); err != nil {
			return
		}
		switch {
		case v.Queue(s.spec.Queue) == nil:
			err = v.noQueue(s.spec.Queue)
		case old == nil:
		case old.Spec.Digest != string(s.sum):
			err = v.keyProblem(old)
		default:
			out.ID, out.Existed, out.Note = old.ID, true, ""
		}
	})
	if err != nil {
		return nil, err
	}
	return ok(out)
}

// keyUser is the job that a spec's idempotency key leads to, nil if none.
func (v *view) keyUser(spec *task.Spec) (found *fsm.Job) {
	if spec.IdempotencyKey == "" {
		return nil
	}
	v.JobsNewestFirst(func(j *fsm.Job) bool {
		if j.Spec.IdempotencyKey != spec.IdempotencyKey {
			return true
		}
		if v.Led-j.SubmittedLed < j.Spec.IdempotencyWindow {
			found = j
		}
		return false
	})
	return found
}

// keyConflict says who used the key before, and when.
func (v *view) keyConflict(id task.JobID) error {
	if j := v.Job(id); j != nil {
		return v.keyProblem(j)
	}
	return task.NewProblem(task.ErrConflict, "the idempotency key was used with a different file", "")
}

func (v *view) keyProblem(old *fsm.Job) error {
	return task.NewProblem(task.ErrConflict, fmt.Sprintf("idempotency key %q was used %s ago by %s with a different file.",
		old.Spec.IdempotencyKey, short(v.ago(old.Submitted)), old.ID), "Other work needs another key.")
}

// cannotRun says that a stage of a job finds no machine, however long it waits for a busy one: "no machine can run it now:
// gpu=true, 0 of 4 (pc-win has gpu=yes)". "" if each stage has one.
func (v *view) cannotRun(spec *task.Spec) string {
	for i := range spec.Stages {
		st := &spec.Stages[i]
		ms := v.machines(spec.Queue, st)
		why := v.noShell(st, ms)
		if why == "" && anyFits(ms) {
			continue
		}
		what := "it"
		if len(spec.Stages) > 1 {
			what = "stage " + st.Name
		}
		return "no machine can run " + what + " now: " + cmp.Or(why, obstacles(ms, st.Require))
	}
	return ""
}
