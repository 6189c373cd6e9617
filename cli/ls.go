package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
)

func lsRow() *command {
	return &command{
		name: "ls", short: "list jobs, newest first; finished ones while they are kept",
		long: `  lanjobs ls --state running,pending      lanjobs ls --queue video --since 24h      lanjobs ls --label team=media
  lanjobs ls --dead                       dead shards of all jobs, those that ended alike in one row, and how to run them again`,
		takes: takesNode | takesOutput | takesWatch | takesSelector,
		flags: []urfave.Flag{
			&urfave.StringFlag{Name: "state", Usage: "only `STATE`: pending, running, succeeded, partial, failed, cancelled, expired; several with commas"},
			&urfave.StringFlag{Name: "queue", Usage: "only of `QUEUE`"},
			&urfave.StringFlag{Name: "name", Usage: "only jobs called `NAME`"},
			&urfave.StringSliceFlag{Name: "label", Usage: "only jobs with `LABEL`: team=media (as -l)"},
			&urfave.BoolFlag{Name: "dead", Usage: "dead shards instead of jobs, grouped by their error"},
			&urfave.StringFlag{Name: "since", Usage: "only jobs submitted within the last `TIME` (90m, 7d), or from a moment on (2026-11-29T12:00:00Z)"},
			&urfave.StringFlag{Name: "until", Usage: "only jobs submitted before `TIME`, written likewise"},
			&urfave.IntFlag{Name: "limit", Usage: "the newest `N`"},
		},
		run: runLs,
	}
}

var jobStates = []string{"pending", "running", "succeeded", "partial", "failed", "cancelled", "expired"}

func runLs(ctx context.Context, c *call) error {
	q, err := c.lsQuery()
	if err != nil {
		return err
	}
	limit := c.flags.Int("limit")
	if limit < 0 || c.flags.IsSet("limit") && limit == 0 {
		return usage(c.path, "--limit %d: write a number from 1 on.", limit)
	}
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	if c.flags.Bool("dead") {
		if limit > 0 {
			q.Set("limit", itoa(limit))
		}
		return c.showOrWatch(ctx, func(ctx context.Context) (answer, error) { return c.deadAnswer(ctx, cl, q) })
	}
	return c.showOrWatch(ctx, func(ctx context.Context) (answer, error) {
		jobs, err := c.listJobs(ctx, cl, q, limit)
		if err != nil {
			return answer{}, c.explainDoor(err)
		}
		a := answer{value: jobs, items: anys(jobs.Items), table: jobTable(jobs.Items), wide: wideJobTable(jobs.Items)}
		for _, j := range jobs.Items {
			a.names = append(a.names, string(j.ID))
		}
		if len(jobs.Items) == 0 {
			a.foot = []string{"No jobs. Hand one in: lanjobs submit job.yaml"}
			if len(q) > 0 {
				a.foot = []string{"No such jobs. All: lanjobs ls"}
			}
		}
		return a, nil
	})
}

// lsQuery is what the flags ask for.
func (c *call) lsQuery() (url.Values, error) {
	q := url.Values{}
	for _, name := range []string{"state", "queue", "name", "since", "until"} {
		if v := c.flags.String(name); v != "" {
			q.Set(name, v)
		}
	}
	for _, word := range strings.Split(q.Get("state"), ",") {
		if _, err := oneOf("--state", orElse(word, jobStates[0]), jobStates); err != nil {
			return nil, usage(c.path, "%v", err)
		}
	}
	if c.flags.Bool("dead") && q.Has("state") {
		return nil, usage(c.path, "--dead lists shards, --state jobs: give one.")
	}
	for _, text := range c.flags.StringSlice("label") {
		more, err := parseSelector(text)
		if err != nil {
			return nil, usage(c.path, "--label: %v", err)
		}
		c.opt.selector = append(c.opt.selector, more...)
	}
	var conditions []string
	for _, r := range c.opt.selector {
		conditions = append(conditions, r.String())
	}
	if len(conditions) > 0 {
		q.Set("label", strings.Join(conditions, ","))
	}
	return q, nil
}

// errEnough ends the turning of pages.
var errEnough = errors.New("enough")

// listJobs gathers jobs, at most limit if that is not 0.
func (c *call) listJobs(ctx context.Context, cl *client, q url.Values, limit int) (task.List[task.JobView], error) {
	var items []task.JobView
	index, err := pages(ctx, cl, "/v1/jobs", q, func(j task.JobView) error {
		if labelled(c.opt.selector, j.Labels) {
			items = append(items, j)
		}
		if limit > 0 && len(items) == limit {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return list("JobList", index, items), err
}

var jobHead = []string{"JOB", "ID", "STATE", "DONE", "RUN", "WAIT", "DEAD", "AGE", "NOTE"}

func jobTable(jobs []task.JobView) table {
	t := table{head: jobHead}
	for i := range jobs {
		t.rows = append(t.rows, jobRow(&jobs[i]))
	}
	return t
}

func jobRow(j *task.JobView) []cell {
	n := j.Shards
	dead := cell{text: itoa(n.Failed)}
	if n.Failed > 0 {
		dead.style = red
	}
	return []cell{{text: j.Name}, {text: string(j.ID)}, state(string(j.State)), {text: fmt.Sprintf("%d/%d", n.Succeeded, n.Total)},
		{text: itoa(n.Running + n.Assigned)}, {text: itoa(n.Pending + n.Waiting)}, dead, {text: short(j.AgeSeconds)}, {text: jobNote(j)}}
}

// jobNote is what the cluster says of a job, else the next step.
func jobNote(j *task.JobView) string {
	switch {
	case j.Note != "":
		return j.Note
	case j.State == task.JobFailed && j.Shards.Failed > 0:
		return "lanjobs retry " + string(j.ID) + " --dead"
	case j.State == task.JobRunning:
		if rest := left(j); rest != "" {
			return "eta ~" + strings.TrimSuffix(strings.TrimPrefix(rest, "about "), " left")
		}
	case j.State == task.JobCancelled:
		return j.Reason
	}
	return ""
}

func wideJobTable(jobs []task.JobView) table {
	t := table{head: slices.Insert(slices.Clone(jobHead), len(jobHead)-1, "QUEUE", "PRIORITY", "BY", "LABELS")}
	for i := range jobs {
		j := &jobs[i]
		row := jobRow(j)
		t.rows = append(t.rows, slices.Insert(row, len(row)-1, cells(j.Queue, itoa(j.Priority), orElse(j.By, "-"), orElse(labelText(j.Labels), "-"))...))
	}
	return t
}

func labelText(labels []task.KV) string {
	words := make([]string, len(labels))
	for i, l := range labels {
		words[i] = l.Name + "=" + l.Value
	}
	return strings.Join(words, " ")
}
