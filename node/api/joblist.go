package api

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/task/jobfile"
)

// jobFilter is what a list of jobs is asked for.
type jobFilter struct {
	states      []string
	queue, name string
	labels      []task.Requirement
	dead        bool
	since       time.Time // submitted at or after
	until       time.Time // submitted before
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
	if f.since, err = q.moment("since", a.clock.Wall()); err != nil {
		return f, err
	}
	f.until, err = q.moment("until", a.clock.Wall())
	return f, err
}

var jobStates = []string{string(task.JobPending), string(task.JobRunning), string(task.JobSucceeded), string(task.JobPartial), string(task.JobFailed),
	string(task.JobCancelled), string(task.JobExpired)}

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
		(f.since.IsZero() || j.Submitted >= f.since.UnixMilli()) && (f.until.IsZero() || j.Submitted < f.until.UnixMilli()) && labelled(f.labels, j.Spec.Labels) &&
		(!f.dead || slices.ContainsFunc(j.Stages, func(st fsm.Stage) bool { return st.Counts[task.ShardFailed] > 0 }))
}

// listJobs answers GET /v1/jobs, newest first: the history as long as jobs are kept (R22). A page ends when it is full, when
// its jobs are large, or after maxWalk jobs that do not match, so that a rare filter does not hold the state for long.
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
		bytes, looks := 0, 0
		v.JobsNewestFirst(func(j *fsm.Job) bool {
			if !before(j) {
				return true
			}
			if looks++; looks > maxWalk || len(out.Items) == limit || bytes > pageBytes {
				out.Next = fmt.Sprintf("%d-%s", last.SubmittedLed, last.ID)
				return false
			}
			last = j
			if !f.match(j) {
				return true
			}
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
