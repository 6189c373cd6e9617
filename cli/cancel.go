package cli

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
)

func cancelRow() *command {
	return &command{
		name: "cancel", operands: "JOB…", min: 1, max: -1, short: "stop jobs; asks for more than one",
		takes: takesNode | takesOutput | takesYes | takesWait,
		flags: []urfave.Flag{
			lengthFlag("grace", 0, "`TIME` between asking a task to stop and killing it (its stop_grace)"),
			&urfave.StringFlag{Name: "reason", Usage: "`TEXT` for the audit log"},
		},
		run: runCancel,
	}
}

func runCancel(ctx context.Context, c *call) error {
	jobs, cl, err := c.wholeJobs(ctx)
	if err != nil {
		return err
	}
	if len(jobs) > 1 {
		if err := c.confirm(fmt.Sprintf("Cancel %d jobs?", len(jobs))); err != nil {
			return err
		}
	}
	before, err := c.before(ctx, cl)
	if err != nil {
		return err
	}
	var ids []task.JobID
	var views []task.JobView
	for _, j := range jobs {
		v := &task.JobView{}
		if err := cl.delete(ctx, jobPath(j.ID), c.cancelQuery(), v); err != nil {
			return c.explainDoor(err)
		}
		ids, views = append(ids, v.ID), append(views, *v)
		if !c.machine() {
			if err := c.done(nil, []string{string(v.ID)}, "%s", cancelled(j, v)); err != nil {
				return err
			}
		}
	}
	if c.opt.wait {
		if ended, err := follow(ctx, c.clock, cl, ids, before, c.progressDisplay()); err != nil {
			return c.leftFollowing(ctx, unended(ids, ended), err)
		}
	}
	if c.machine() {
		return c.show(answer{value: oneOrList("JobList", views)})
	}
	return nil
}

// before is the place in the events from which --wait looks on: what happened earlier is no news.
func (c *call) before(ctx context.Context, cl *client) (eventCursor, error) {
	if !c.opt.wait {
		return eventCursor{}, nil
	}
	from, err := newest(ctx, cl)
	if err != nil {
		return from, c.explainDoor(err)
	}
	return from, nil
}

func jobPath(id task.JobID) string { return "/v1/jobs/" + url.PathEscape(string(id)) }

func (c *call) cancelQuery() url.Values {
	q := url.Values{}
	if grace := c.flags.Duration("grace"); grace > 0 {
		q.Set("grace", seconds(grace))
	}
	if reason := c.flags.String("reason"); reason != "" {
		q.Set("reason", reason)
	}
	return q
}

func cancelled(before, now *task.JobView) string {
	switch {
	case before.State.Final():
		return fmt.Sprintf("%s %s had ended before: %s", now.Name, now.ID, before.State)
	case !now.State.Final():
		return fmt.Sprintf("%s %s is stopping (%d running)", now.Name, now.ID, now.Shards.Running+now.Shards.Assigned)
	}
	return fmt.Sprintf("%s %s %s", now.Name, now.ID, now.State)
}

// confirm asks a person. Without a terminal there is nobody to ask, and silence is no yes.
func (c *call) confirm(question string) error {
	if c.opt.yes {
		return nil
	}
	if !c.inTTY {
		return usage(c.path, "%s There is no terminal to ask on: add --yes.", question)
	}
	fmt.Fprintf(c.stderr, "%s [y/N] ", question)
	line, _ := bufio.NewReader(c.stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return &exitError{code: exitBad, detail: "nothing was changed."}
}
