package cli

import (
	"context"
	"fmt"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
	"lanjobs/transport"
)

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
	before, err := c.before(ctx, cl)
	if err != nil {
		return err
	}
	v := &task.JobView{}
	if err := cl.post(ctx, jobPath(j.ID)+"/retry", body, v); err != nil {
		return c.explainDoor(err)
	}
	if err := c.done(v, []string{string(v.ID)}, "%s %s runs again: %s to do", v.Name, v.ID,
		count(v.Shards.Total-v.Shards.Succeeded-v.Shards.Failed-v.Shards.Cancelled, "shard")); err != nil {
		return err
	}
	if c.opt.wait {
		return c.followToEnd(ctx, cl, []task.JobID{v.ID}, before)
	}
	return nil
}
