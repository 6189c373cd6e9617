package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
	"lanjobs/task/runner"
)

// taskGroup is the helper inside a running task: each command is one request to the attempt's own endpoint.
func taskGroup() *group {
	need := func() urfave.Flag {
		return lengthFlag("need", 0, "fail with exit 7 if the lease holds for less than `TIME`")
	}
	return &group{name: "task", short: "helper inside a running task: lanjobs help tasks", commands: []*command{
		{name: "info", short: "what this task is, and why it must stop, as JSON", run: inTask(taskInfo)},
		{name: "checkpoint", operands: "[get]", max: 1, short: "save standard input; get: print the last accepted one", run: inTask(taskCheckpoint)},
		{name: "progress", operands: "DONE", min: 1, max: 1, short: "tell people how far it is: 40% or 3/10", run: inTask(taskProgress),
			flags: []urfave.Flag{&urfave.StringFlag{Name: "message", Aliases: []string{"m"}, Usage: "what it is at: `TEXT`"}}},
		{name: "range", short: "what this shard works on, START END (end not included); say how far it is", run: inTask(taskRange),
			flags: []urfave.Flag{&urfave.Int64Flag{Name: "cursor", Usage: "nothing from `N` on is begun; the later part may go to another machine"}}},
		{name: "lease", short: "whether the lease still holds, as JSON", run: inTask(taskLease), flags: []urfave.Flag{need()}},
		{name: "output", operands: "NAME VALUE", min: 2, max: 2, short: "register an output for later stages", run: inTask(taskOutput)},
		{name: "input", operands: "STAGE.NAME", min: 1, max: 1, short: "an output of an earlier stage, one line per shard", run: inTask(taskInput)},
		{name: "inputs", operands: "STAGE", min: 1, max: 1, short: "all outputs of an earlier stage: shard, name, value", run: inTask(taskInputs),
			flags: []urfave.Flag{&urfave.BoolFlag{Name: "missing", Usage: "the shards that did not succeed instead"}}},
		{name: "guard", operands: "-- COMMAND…", line: true, short: "confirm the lease with a majority, run a command, kill it if the lease ends",
			run: inTask(taskGuard), flags: []urfave.Flag{need()}},
		{name: "defer", operands: "TIME", min: 1, max: 1, short: "give the shard back; it runs again after TIME (10m)", run: inTask(taskDefer)},
	}, groups: []*group{{name: "state", short: "values shared by the job's tasks", commands: []*command{
		{name: "get", operands: "KEY", min: 1, max: 1, takes: takesOutput, short: "print a value; -o json: with its version", run: inTask(taskStateGet)},
		{name: "put", operands: "KEY [VALUE]", min: 1, max: 2, short: "write a value, from standard input if not given; prints its version", run: inTask(taskStatePut),
			flags: []urfave.Flag{&urfave.Uint64Flag{Name: "if-version", Usage: "only if it has still version `V` (0: absent), else exit 7"}}},
	}}}}
}

// inTask finds the attempt's endpoint for a helper.
func inTask(do func(context.Context, *call, *runner.TaskClient) error) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		t, err := runner.NewTaskClient(c.getenv, c.clock)
		if err != nil {
			return err
		}
		return do(ctx, c, t)
	}
}

func taskInfo(ctx context.Context, c *call, t *runner.TaskClient) error {
	info, err := t.Info(ctx)
	if err != nil {
		return err
	}
	return writeJSON(c.stdout, info, "  ")
}

func taskCheckpoint(ctx context.Context, c *call, t *runner.TaskClient) error {
	if len(c.args) == 1 && c.args[0] != "get" {
		return usage(c.path, "%q: \"get\" prints the last one; to save, write to standard input.", c.args[0])
	}
	if len(c.args) == 1 {
		data, _, err := t.Checkpoint(ctx)
		if err == nil {
			_, err = c.stdout.Write(data)
		}
		return err
	}
	if c.inTTY {
		return usage(c.path, "the checkpoint comes from standard input: echo 5 | %s", c.path)
	}
	data, err := io.ReadAll(io.LimitReader(c.stdin, task.MaxCheckpointBytes+1))
	if err != nil {
		return err
	}
	_, err = t.SaveCheckpoint(ctx, data)
	return err
}

func taskProgress(ctx context.Context, c *call, t *runner.TaskClient) error {
	return t.Progress(ctx, c.args[0], c.flags.String("message"))
}

func taskRange(ctx context.Context, c *call, t *runner.TaskClient) error {
	ask := t.Range
	if c.flags.IsSet("cursor") {
		ask = func(ctx context.Context) (task.ShardRange, error) { return t.SetCursor(ctx, c.flags.Int64("cursor")) }
	}
	now, err := ask(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.stdout, now.Start, now.End)
	return err
}

func taskLease(ctx context.Context, c *call, t *runner.TaskClient) error {
	info, err := t.Lease(ctx, c.flags.Duration("need"))
	if err != nil {
		return err
	}
	return writeJSON(c.stdout, info, "")
}

func taskOutput(ctx context.Context, c *call, t *runner.TaskClient) error {
	return t.Output(ctx, c.args[0], c.args[1])
}

func taskInput(ctx context.Context, c *call, t *runner.TaskClient) error {
	values, err := t.Input(ctx, c.args[0])
	if err != nil {
		return err
	}
	for _, v := range values {
		if _, err := fmt.Fprintln(c.stdout, v); err != nil {
			return err
		}
	}
	return nil
}

func taskInputs(ctx context.Context, c *call, t *runner.TaskClient) error {
	missing := c.flags.Bool("missing")
	inputs, err := t.Inputs(ctx, c.args[0], missing)
	if err != nil {
		return err
	}
	for _, in := range inputs {
		lines := itoa(in.Shard)
		if !missing { // a value of several lines is several lines here too
			head := fmt.Sprintf("%d\t%s\t", in.Shard, in.Name)
			lines = head + strings.ReplaceAll(in.Value, "\n", "\n"+head)
		}
		if _, err := fmt.Fprintln(c.stdout, lines); err != nil {
			return err
		}
	}
	return nil
}

func taskGuard(ctx context.Context, c *call, t *runner.TaskClient) error {
	if len(c.after) == 0 {
		return usage(c.path, "no command. Usage: %s", usageLine(c.cmd, c.path))
	}
	code, err := t.Guard(ctx, c.flags.Duration("need"), c.after)
	if err == nil && code != 0 {
		return silently(code) // what the command had to say, it has said
	}
	if code := notStarted(err); code != 0 {
		return &exitError{code: code, detail: fmt.Sprintf("cannot start %q: %v", c.after[0], cmp.Or(errors.Unwrap(err), err)), cause: err}
	}
	return err
}

// notStarted is the exit code that shells have for a command that could not be started, 0 if that is not what happened: a job's retry
// rules know these codes.
func notStarted(err error) int {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return 127
	case errors.Is(err, fs.ErrPermission):
		return 126
	}
	return 0
}

func taskDefer(ctx context.Context, c *call, t *runner.TaskClient) error {
	var wait lengthValue
	if err := wait.Set(c.args[0]); err != nil {
		return usage(c.path, "%q is not a length of time: %v.", c.args[0], err)
	}
	return t.Defer(ctx, time.Duration(wait))
}

func taskStateGet(ctx context.Context, c *call, t *runner.TaskClient) error {
	value, version, err := t.StateGet(ctx, c.args[0])
	if err != nil {
		return err
	}
	if c.machine() {
		return c.show(answer{value: map[string]any{"key": c.args[0], "value": string(value), "version": version}})
	}
	_, err = c.stdout.Write(value)
	return err
}

func taskStatePut(ctx context.Context, c *call, t *runner.TaskClient) error {
	var value []byte
	if len(c.args) == 2 {
		value = []byte(c.args[1])
	} else {
		var err error
		if value, err = io.ReadAll(io.LimitReader(c.stdin, task.MaxStateValueBytes+1)); err != nil {
			return err
		}
	}
	var ifVersion *uint64
	if c.flags.IsSet("if-version") {
		v := c.flags.Uint64("if-version")
		ifVersion = &v
	}
	version, err := t.StatePut(ctx, c.args[0], value, ifVersion)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.stdout, version)
	return err
}
