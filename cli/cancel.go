package cli

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
	"lanjobs/transport"
)

func cancelRow() *command {
	return &command{
		name: "cancel", operands: "JOB…", min: 1, max: -1, short: "stop jobs; asks for more than one",
		takes: takesNode | takesOutput | takesYes | takesWait,
		flags: []urfave.Flag{
			&urfave.DurationFlag{Name: "grace", Usage: "`TIME` between asking a task to stop and killing it (its stop_grace)"},
			&urfave.StringFlag{Name: "reason", Usage: "`TEXT` for the audit log"},
		},
		run: runCancel,
	}
}

func runCancel(ctx context.Context, c *call) error {
	for _, ref := range c.args {
		if strings.ContainsAny(ref, "/#") {
			return usage(c.path, "%q: only whole jobs are cancelled.", ref)
		}
	}
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	// All names are looked up before the first job is stopped: a typing error in the third stops none.
	var jobs []*task.JobView
	for _, ref := range c.args {
		j, err := c.job(ctx, cl, ref)
		if err != nil {
			return err
		}
		jobs = append(jobs, j)
	}
	if len(jobs) > 1 {
		if err := c.confirm(fmt.Sprintf("Cancel %d jobs?", len(jobs))); err != nil {
			return err
		}
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
		if _, err := follow(ctx, c.clock, cl, ids, c.progressDisplay()); err != nil {
			return c.leftFollowing(ctx, ids, err)
		}
	}
	if c.machine() {
		return c.show(answer{value: oneOrList("JobList", views)})
	}
	return nil
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

func retryRow() *command {
	return &command{
		name: "retry", operands: "JOB[/STAGE/N]", min: 1, max: 1, short: "new attempts for what failed",
		long:  `Without a flag, the dead shards of what is named. Checkpoints are kept, so that work goes on where it stopped, unless --from-start.`,
		takes: takesNode | takesOutput | takesWait | takesYes,
		flags: []urfave.Flag{
			&urfave.BoolFlag{Name: "dead", Usage: "dead shards only (the default)"},
			&urfave.BoolFlag{Name: "all", Usage: "the whole job again, done shards too"},
			&urfave.BoolFlag{Name: "from-start", Usage: "drop checkpoints"},
		},
		run: runRetry,
	}
}

func runRetry(ctx context.Context, c *call) error {
	ref, err := task.ParseRef(c.args[0])
	if err != nil {
		return usage(c.path, "%v", err)
	}
	body := transport.RetryBody{Dead: c.flags.Bool("dead"), All: c.flags.Bool("all"), FromStart: c.flags.Bool("from-start")}
	switch {
	case ref.Attempt > 0:
		return usage(c.path, "%q: a shard is tried again, not an attempt.", c.args[0])
	case body.Dead && body.All:
		return usage(c.path, "--dead and --all exclude each other.")
	case body.All && ref.Stage != "":
		return usage(c.path, "--all is about the whole job: leave out %q.", ref.Stage)
	}
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	j, err := c.job(ctx, cl, ref.Job)
	if err != nil {
		return err
	}
	if ref, err = stageOf(j, ref); err != nil {
		return err
	}
	if body.All {
		if err := c.confirm(fmt.Sprintf("Run all %s of %s %s again, done ones too?", count(j.Shards.Total, "shard"), j.Name, j.ID)); err != nil {
			return err
		}
	}
	body.Stage, body.Shards = ref.Stage, ref.Shards
	v := &task.JobView{}
	if err := cl.post(ctx, jobPath(j.ID)+"/retry", body, v); err != nil {
		return c.explainDoor(err)
	}
	if err := c.done(v, []string{string(v.ID)}, "%s %s runs again: %s to do", v.Name, v.ID,
		count(v.Shards.Total-v.Shards.Succeeded-v.Shards.Failed-v.Shards.Cancelled, "shard")); err != nil {
		return err
	}
	if c.opt.wait {
		return c.followToEnd(ctx, cl, []task.JobID{v.ID}, c.progressDisplay())
	}
	return nil
}
