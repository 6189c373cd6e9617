package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"lanjobs/task"
	"lanjobs/transport"
)

func pauseRow() *command {
	return &command{
		name: "pause", operands: "JOB…", min: 1, max: -1, short: "start nothing more of jobs; what runs goes on",
		long: `  lanjobs pause score      then: lanjobs resume score
All runs of a schedule: lanjobs schedule pause NAME. All jobs of a queue: lanjobs queue pause NAME.`,
		takes: takesNode | takesOutput, run: actOnJobs("pause"),
	}
}

func resumeRow() *command {
	return &command{
		name: "resume", operands: "JOB…", min: 1, max: -1, short: "end a pause of jobs",
		long: `  lanjobs resume score`, takes: takesNode | takesOutput, run: actOnJobs("resume"),
	}
}

func priorityRow() *command {
	return &command{
		name: "priority", operands: "JOB NUMBER", min: 2, max: 2, short: "let a job go before others, or after them: 0 to 100, higher first",
		long: `What runs goes on; the job's shards that wait move up or down. A job file's default is 50.
  lanjobs priority score 90`,
		takes: takesNode | takesOutput, run: runPriority,
	}
}

// actOnJobs is pause and resume.
func actOnJobs(act string) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		jobs, cl, err := c.wholeJobs(ctx)
		if err != nil {
			return err
		}
		var views []task.JobView
		for _, j := range jobs {
			v := &task.JobView{}
			if err := cl.post(ctx, jobPath(j.ID)+"/"+act, struct{}{}, v); err != nil {
				return c.explainDoor(err)
			}
			views = append(views, *v)
			if !c.machine() {
				if err := c.done(nil, []string{string(v.ID)}, "%s", jobSaid(v, act)); err != nil {
					return err
				}
			}
		}
		if c.machine() {
			return c.show(answer{value: oneOrList("JobList", views)})
		}
		return nil
	}
}

func jobSaid(v *task.JobView, act string) string {
	if act == "pause" {
		return fmt.Sprintf("%s %s is paused (%d running). Undo: lanjobs resume %s", v.Name, v.ID, v.Shards.Running+v.Shards.Assigned, v.ID)
	}
	return fmt.Sprintf("%s %s goes on: %s to do", v.Name, v.ID, count(v.Shards.Total-v.Shards.Succeeded-v.Shards.Failed-v.Shards.Cancelled, "shard"))
}

// wholeJobs looks up all jobs that are named before the first is touched: a typing error in the third changes none.
func (c *call) wholeJobs(ctx context.Context) ([]*task.JobView, *client, error) {
	for _, ref := range c.args {
		if strings.ContainsAny(ref, "/#") {
			return nil, nil, usage(c.path, "%q: only whole jobs are %s.", ref, map[string]string{"cancel": "cancelled", "pause": "paused", "resume": "resumed"}[c.cmd.name])
		}
	}
	cl, err := c.ask(ctx)
	if err != nil {
		return nil, nil, err
	}
	var jobs []*task.JobView
	for _, ref := range c.args {
		j, err := c.job(ctx, cl, ref)
		if err != nil {
			return nil, nil, err
		}
		jobs = append(jobs, j)
	}
	return jobs, cl, nil
}

func runPriority(ctx context.Context, c *call) error {
	n, err := strconv.Atoi(c.args[1])
	if err != nil || n < 0 || n > 100 {
		return usage(c.path, "%q is not a number from 0 to 100.", c.args[1])
	}
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	j, err := c.job(ctx, cl, c.args[0])
	if err != nil {
		return err
	}
	v := &task.JobView{}
	if err := cl.post(ctx, jobPath(j.ID)+"/priority", transport.PriorityBody{Priority: &n}, v); err != nil {
		return c.explainDoor(err)
	}
	return c.done(v, []string{string(v.ID)}, "%s %s has priority %d (had %d)", v.Name, v.ID, v.Priority, j.Priority)
}
