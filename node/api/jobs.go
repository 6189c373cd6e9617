package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/task/jobfile"
	"lanjobs/transport"
)

// jobFilter is what a list of jobs is asked for.
type jobFilter struct {
	states      []string
	queue, name string
	labels      []task.Requirement
	dead        bool
	since       time.Time
}

func (a *API) jobFilter(q *request) (f jobFilter, err error) {
	f.queue, f.name = q.query.Get("queue"), q.query.Get("name")
	if f.states, err = q.list("state", jobStates); err != nil {
		return f, err
	}
	if f.labels, err = selector(q.query.Get("label")); err != nil {
		return f, err
	}
	if f.dead, err = q.flag("dead"); err != nil {
		return f, err
	}
	f.since, err = q.since(a.clock.Wall())
	return f, err
}

var jobStates = []string{string(task.JobPending), string(task.JobRunning), string(task.JobSucceeded), string(task.JobPartial), string(task.JobFailed), string(task.JobCancelled)}

// selector reads conditions on labels, separated by commas: team=media,os in (linux,darwin).
func selector(text string) ([]task.Requirement, error) {
	var out []task.Requirement
	depth, from := 0, 0
	for i := 0; i <= len(text) && text != ""; i++ {
		if i < len(text) {
			switch text[i] {
			case '(':
				depth++
			case ')':
				depth--
			}
			if text[i] != ',' || depth > 0 {
				continue
			}
		}
		r, ok := jobfile.ParseRequirement(text[from:i])
		if len(out) == maxValues {
			return nil, invalid(fmt.Sprintf("label has more than %d conditions", maxValues), "")
		}
		if !ok {
			return nil, invalid("label "+shown(text[from:i])+" is not a condition", "write team=media, team!=media, team in (a,b), or team")
		}
		out = append(out, r)
		from = i + 1
	}
	return out, nil
}

// labelled tells whether a job's own labels meet all conditions.
func labelled(rs []task.Requirement, labels []task.KV) bool {
	for _, r := range rs {
		i := slices.IndexFunc(labels, func(kv task.KV) bool { return kv.Name == r.Label })
		ok := i >= 0
		switch r.Op {
		case task.OpEqual, task.OpIn:
			ok = ok && slices.Contains(r.Values, labels[i].Value)
		case task.OpNotEqual:
			ok = !ok || !slices.Contains(r.Values, labels[i].Value)
		}
		if !ok {
			return false
		}
	}
	return true
}

func (f *jobFilter) match(j *fsm.Job) bool {
	return (len(f.states) == 0 || slices.Contains(f.states, string(j.State))) &&
		(f.queue == "" || f.queue == j.Spec.Queue) && (f.name == "" || f.name == j.Spec.Name) &&
		(f.since.IsZero() || j.Submitted >= f.since.UnixMilli()) && labelled(f.labels, j.Spec.Labels) &&
		(!f.dead || slices.ContainsFunc(j.Stages, func(st fsm.Stage) bool { return st.Counts[task.ShardFailed] > 0 }))
}

// listJobs answers GET /v1/jobs, newest first.
func (a *API) listJobs(_ context.Context, q *request) (*reply, error) {
	f, err := a.jobFilter(q)
	if err != nil {
		return nil, err
	}
	limit, err := q.page()
	if err != nil {
		return nil, err
	}
	out := task.List[task.JobView]{Kind: "JobList", Items: []task.JobView{}}
	a.look(q, func(v *view) {
		out.Index = v.Index
		var before func(*fsm.Job) bool
		if before, err = v.jobsAfter(q.query.Get("after")); err != nil {
			return
		}
		var last *fsm.Job
		bytes := 0
		v.JobsNewestFirst(func(j *fsm.Job) bool {
			if !before(j) || !f.match(j) {
				return true
			}
			if len(out.Items) == limit || bytes > pageBytes {
				out.Next = fmt.Sprintf("%d-%s", last.SubmittedLed, last.ID)
				return false
			}
			last = j
			out.Items = append(out.Items, v.job(j))
			bytes += 600 + 250*len(j.Stages) // roughly
			return true
		})
	})
	if err != nil {
		return nil, err
	}
	return ok(out)
}

// jobsAfter chooses the jobs of the next page. The last job of the page before may have been collected since; then its
// time says where it stood.
func (v *view) jobsAfter(text string) (func(*fsm.Job) bool, error) {
	if text == "" {
		return func(*fsm.Job) bool { return true }, nil
	}
	led, id, ok := strings.Cut(text, "-")
	at, err := strconv.ParseInt(led, 10, 64)
	if !ok || err != nil {
		return nil, invalid("after "+shown(text)+" is not what the page before gave as next", "")
	}
	if last := v.Job(task.JobID(id)); last != nil {
		return func(j *fsm.Job) bool { return j.Seq < last.Seq }, nil
	}
	return func(j *fsm.Job) bool { return int64(j.SubmittedLed) <= at }, nil
}

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
	if err := a.onJob(q, func(v *view, j *fsm.Job) error { out = v.job(j); return nil }); err != nil {
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
	err := a.onJob(q, func(_ *view, j *fsm.Job) error {
		id = j.ID
		if b.Stage != "" && j.Spec.Stage(b.Stage) < 0 {
			return noStage(j, b.Stage)
		}
		if len(b.Shards) > 0 && b.Stage == "" && len(j.Stages) > 1 {
			return invalid("shards of which stage? job "+string(j.ID)+" has "+plural(len(j.Stages), "stage", "stages"), "")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	c := &fsm.RetryJob{RequestID: q.id, Job: id, Stage: b.Stage, Shards: b.Shards, All: b.All, FromStart: b.FromStart, By: q.by}
	if _, err := a.propose(ctx, c); err != nil {
		return nil, err
	}
	return a.afterJob(q, id)
}
