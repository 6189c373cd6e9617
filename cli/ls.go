package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
)

func lsRow() *command {
	return &command{
		name: "ls", short: "list jobs", takes: takesNode | takesOutput | takesWatch | takesSelector,
		flags: []urfave.Flag{
			&urfave.StringFlag{Name: "state", Usage: "only `STATE`: pending, running, succeeded, partial, failed, cancelled"},
			&urfave.StringFlag{Name: "queue", Usage: "only of `QUEUE`"},
			&urfave.StringFlag{Name: "name", Usage: "only jobs called `NAME`"},
			&urfave.BoolFlag{Name: "dead", Usage: "only jobs with dead shards"},
			&urfave.DurationFlag{Name: "since", Usage: "only jobs submitted within the last `TIME`"},
		},
		run: runLs,
	}
}

var jobStates = []string{"pending", "running", "succeeded", "partial", "failed", "cancelled"}

func runLs(ctx context.Context, c *call) error {
	q := url.Values{}
	for _, name := range []string{"state", "queue", "name"} {
		if v := c.flags.String(name); v != "" {
			q.Set(name, v)
		}
	}
	for _, word := range strings.Split(q.Get("state"), ",") {
		if _, err := oneOf("--state", orElse(word, jobStates[0]), jobStates); err != nil {
			return usage(c.path, "%v", err)
		}
	}
	if c.flags.Bool("dead") {
		q.Set("dead", "1")
	}
	if since := c.flags.Duration("since"); since > 0 {
		q.Set("since", seconds(since))
	}
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	return c.showOrWatch(ctx, func(ctx context.Context) (answer, error) {
		jobs, err := gather(ctx, cl, "/v1/jobs", q, func(j task.JobView) bool { return labelled(c.opt.selector, j.Labels) })
		if err != nil {
			return answer{}, c.explainDoor(err)
		}
		jobs.Kind = "JobList"
		a := answer{value: jobs, items: anys(jobs.Items), table: jobTable(jobs.Items), wide: wideJobTable(jobs.Items)}
		for _, j := range jobs.Items {
			a.names = append(a.names, string(j.ID))
		}
		if len(jobs.Items) == 0 {
			a.foot = []string{"No jobs. Hand one in: lanjobs submit job.yaml"}
			if len(q) > 0 || len(c.opt.selector) > 0 {
				a.foot = []string{"No such jobs. All: lanjobs ls"}
			}
		}
		return a, nil
	})
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
