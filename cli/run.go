package cli

import (
	"context"
	"errors"
	"fmt"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
	"lanjobs/transport"
)

func runRow() *command {
	return &command{
		name: "run", operands: "FILE | -- COMMAND…", max: 1, line: true, short: "run a job to its end and show its output",
		takes: takesNode,
		long: `Without a node on this machine the job runs inside this process: the same rules, state on disk, nothing listens; Ctrl-C stops
it, a second one kills. With a node it is handed in and followed; Ctrl-C leaves it running. The exit code is the result.

A command runs in the current directory (--workdir), which must be there on every machine that may run it.
With --each, one shard per file; in the command's words, each of them one argument, no shell:
  {} the file   {.} without extension   {/} its name   {/.} its name without extension   {//} its directory   {#} the shard, from 0
  lanjobs run --each 'in/*.mov' -- ffmpeg -i {} out/{/.}.mkv`,
		flags: []urfave.Flag{
			&urfave.IntFlag{Name: "shards", Usage: "run the command `N` times, with LANJOBS_SHARD from 0"},
			&urfave.StringFlag{Name: "each", Usage: "one shard per file that matches `GLOB`"},
			&urfave.StringFlag{Name: "require", Usage: "only on machines with these `LABELS`: gpu=true,os!=windows"},
			&urfave.StringFlag{Name: "on", Usage: "only on `NODE`"},
			&urfave.StringFlag{Name: "workdir", Usage: "run in `DIR`; \"\" = a private directory", DefaultText: "current directory"},
			&urfave.StringSliceFlag{Name: "set", Usage: "set `env.NAME=VALUE` in all stages"},
			&urfave.BoolFlag{Name: "detach", Usage: "hand it in and leave"},
			&urfave.BoolFlag{Name: "local", Usage: "in this process even if a node is here"},
		},
		run: runRun,
	}
}

func runRun(ctx context.Context, c *call) error {
	spec, err := c.runSpec()
	if err != nil {
		return err
	}
	local, detach := c.flags.Bool("local"), c.flags.Bool("detach")
	if local && detach {
		return usage(c.path, "--local and --detach exclude each other: what runs in this process ends with it.")
	}
	if detach {
		cl, err := c.connectOrStart(ctx, false)
		if err != nil {
			return err
		}
		_, err = c.submitAll(ctx, cl, []*task.Spec{spec})
		return err
	}
	if !local {
		cl, _, err := c.connect(ctx)
		switch {
		case err == nil:
			return c.runHere(ctx, cl, spec)
		case !errors.Is(err, transport.ErrNoNode):
			return err
		case c.opt.cluster != "":
			return err // a job for a cluster does not run outside of it
		}
		if _, exists := nodeHere(c.dataDir()); exists {
			c.say("lanjobs: the node of this machine does not run (start it: lanjobs serve); this job runs in this process.")
		}
	}
	return c.runInside(ctx, spec)
}

// runSpec is the job that the command line means.
func (c *call) runSpec() (*task.Spec, error) {
	switch {
	case c.dash && len(c.args) > 0:
		return nil, usage(c.path, "%q and a command after \"--\": give one.", c.args[0])
	case c.dash && len(c.after) == 0:
		return nil, usage(c.path, "no command after \"--\".")
	case c.dash:
		return c.quickSpec()
	case len(c.args) == 0:
		return nil, usage(c.path, "FILE is missing, or -- and a command. Usage: %s", usageLine(c.cmd, c.path))
	}
	for _, name := range []string{"shards", "each", "require", "on", "workdir"} {
		if c.flags.IsSet(name) {
			return nil, usage(c.path, "--%s is for a command after \"--\"; in a job file it is a key: lanjobs help job.yaml", name)
		}
	}
	specs, err := c.loadAll(c.args)
	if err != nil {
		return nil, err
	}
	if specs[0].Schedule != nil {
		c.say("lanjobs: the schedule of %s is left out: this is one run, now.", c.args[0])
		specs[0].Schedule = nil
	}
	return specs[0], nil
}

// runHere hands a job to the node here, and shows its output until it ends.
func (c *call) runHere(ctx context.Context, cl *client, spec *task.Spec) error {
	reply, err := submitSpec(ctx, cl, spec, false)
	if err != nil {
		return c.explainDoor(err)
	}
	c.saidRunning(reply)
	jobs, err := c.followOutput(ctx, cl, reply.ID, spec)
	if err != nil {
		return c.leftFollowing(ctx, []task.JobID{reply.ID}, err)
	}
	c.saidEnd(jobs)
	return c.outcome(jobs, true)
}

func (c *call) saidRunning(r *task.SubmitReply) {
	switch {
	case r.Existed:
		c.say("lanjobs: %s was submitted before with this key: following %s", r.Name, r.ID)
	case r.Note != "":
		c.say("%s", submittedBut(r))
	}
}

// followOutput shows what a job writes: what it puts out to standard output, progress to standard error.
func (c *call) followOutput(ctx context.Context, cl *client, id task.JobID, spec *task.Spec) ([]task.JobView, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	s := newLogStream(ctx, cl, outsOf(c.world))
	s.prefix = len(spec.Stages) > 1 || spec.Stages[0].Shards > 1
	s.fail, s.warn = fail, func(text string) { c.say("%s", text) }
	var progress display = silent{}
	if !c.opt.quiet {
		progress = &lines{c: c, news: newNews(), calm: true}
	}
	return follow(ctx, c.clock, cl, []task.JobID{id}, eventCursor{}, both{s, progress})
}

// saidEnd tells how long it took, where there was more than one piece to wait for.
func (c *call) saidEnd(jobs []task.JobView) {
	for _, j := range jobs {
		if j.Shards.Total > 1 && (j.State == task.JobSucceeded || j.State == task.JobPartial) {
			c.say("%s %s: %d/%d in %s", j.Name, j.State, j.Shards.Succeeded, j.Shards.Total, length(runSeconds(&j)))
		}
	}
}

// stoppedInside: unlike a job on a node, one in this process does not go on without it.
func stoppedInside(name string) error {
	return &exitError{code: exitInterrupted, detail: fmt.Sprintf("%s was stopped.", name), cause: errInterrupted}
}
