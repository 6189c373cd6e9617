package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// onJob gives f the job of the path.
func (a *API) onJob(q *request, f func(*view, *fsm.Job) error) error {
	var err error
	a.look(q, func(v *view) {
		var j *fsm.Job
		if j, err = v.findJob(q.value("ref")); err == nil {
			err = f(v, j)
		}
	})
	return err
}

// getJob answers GET /v1/jobs/{ref}.
func (a *API) getJob(_ context.Context, q *request) (*reply, error) {
	var out task.JobView
	if err := a.onJob(q, func(v *view, j *fsm.Job) error { out = v.wholeJob(j); return nil }); err != nil {
		return nil, err
	}
	return ok(out)
}

// jobSpec answers GET /v1/jobs/{ref}/spec: the file as it was submitted, or with format=json what was made of it.
func (a *API) jobSpec(_ context.Context, q *request) (*reply, error) {
	format := q.query.Get("format")
	if format != "" && format != "json" {
		return nil, invalid("format "+shown(format)+" is not known", "write json, or leave it out for the file as it was submitted")
	}
	var source, text string
	if err := a.onJob(q, func(_ *view, j *fsm.Job) error { source, text = j.Spec.Source, j.Spec.JSON; return nil }); err != nil {
		return nil, err
	}
	if source == "" || format == "json" {
		return (&reply{status: http.StatusOK, body: []byte(text)}).set("Content-Type", typeJSON), nil
	}
	return textReply([]byte(source)), nil
}

// jobID finds the job of the path for a write.
func (a *API) jobID(q *request) (id task.JobID, err error) {
	err = a.onJob(q, func(_ *view, j *fsm.Job) error { id = j.ID; return nil })
	return id, err
}

// propose commits a command; a refusal is an error.
func (a *API) propose(ctx context.Context, c fsm.Command) (fsm.Result, error) {
	r, err := a.cfg.Leader.Propose(ctx, c)
	if err == nil && r.Err != nil {
		err = r.Err
	}
	return r, err
}

// afterJob shows a job after a write.
func (a *API) afterJob(q *request, id task.JobID) (*reply, error) {
	var out *task.JobView
	a.look(q, func(v *view) {
		if j := v.Job(id); j != nil {
			w := v.job(j)
			out = &w
		}
	})
	if out == nil {
		return nil, task.NewProblem(task.ErrNotFound, "job "+string(id)+" has been collected meanwhile", "")
	}
	return ok(out)
}

// maxGrace bounds how long a cancelled shard may take to stop.
const maxGrace = 24 * time.Hour

// cancelJob answers DELETE /v1/jobs/{ref} (R36).
func (a *API) cancelJob(ctx context.Context, q *request) (*reply, error) {
	grace, err := q.duration("grace", maxGrace)
	if err != nil {
		return nil, err
	}
	reason := q.query.Get("reason")
	if !oneLine(reason, task.MaxMessageLength) {
		return nil, invalid(fmt.Sprintf("reason is not one line of at most %d bytes", task.MaxMessageLength), "")
	}
	id, err := a.jobID(q)
	if err != nil {
		return nil, err
	}
	if _, err := a.propose(ctx, &fsm.CancelJob{Job: id, Grace: task.MillisOf(grace), Reason: reason, By: q.by, RequestID: q.id}); err != nil {
		return nil, err
	}
	return a.afterJob(q, id)
}

// retryJob answers POST /v1/jobs/{ref}/retry (R29, R36).
func (a *API) retryJob(ctx context.Context, q *request) (*reply, error) {
	var b transport.RetryBody
	if err := q.decode(&b); err != nil {
		return nil, err
	}
	if b.All && b.Dead {
		return nil, invalid("all and dead exclude each other", "dead is meant when neither is given")
	}
	for _, r := range b.Shards {
		if r.First < 0 || r.Last < r.First {
			return nil, invalid(fmt.Sprintf("shards %d-%d is not a range", r.First, r.Last), "")
		}
	}
	var id task.JobID
	err := a.onJob(q, func(_ *view, j *fsm.Job) error { id = j.ID; return canRetry(j, &b) })
	if err != nil {
		return nil, err
	}
	c := &fsm.RetryJob{RequestID: q.id, Job: id, Stage: b.Stage, Shards: b.Shards, All: b.All, FromStart: b.FromStart, By: q.by}
	if _, err := a.propose(ctx, c); err != nil {
		return nil, err
	}
	return a.afterJob(q, id)
}

// canRetry tells whether there is what a retry names.
func canRetry(j *fsm.Job, b *transport.RetryBody) error {
	at := j.Spec.Stage(b.Stage)
	switch {
	case b.Stage != "" && at < 0:
		return noStage(j, b.Stage)
	case len(b.Shards) == 0:
		return nil
	case b.Stage == "" && len(j.Stages) > 1:
		return invalid("shards of which stage? job "+string(j.ID)+" has "+plural(len(j.Stages), "stage", "stages"), "")
	}
	for _, r := range b.Shards {
		if at = max(at, 0); j.Shard(at, r.Last) == nil {
			return noShard(j, at, r.Last)
		}
	}
	return nil
}
