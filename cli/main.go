package cli

import (
	"context"
	"io"

	"lanjobs/task/runner"
)

// Main runs one command line and gives its exit code. args[0] is the program.
func Main(args []string, version string) int {
	// The guard outlives its agent and catches its own signals: nothing of what follows may run in it.
	if len(args) > 1 && args[1] == "guard" {
		return runner.GuardMain(args[2:])
	}
	w := system(version)
	ctx, stop := interruptible(context.Background(), w)
	defer stop()
	return execute(ctx, w, args)
}

// execute parses a command line, runs its command and tells of its error.
func execute(ctx context.Context, w *world, args []string) int {
	app := newApp(w, tree(), run)
	words, help := permute(app, args)
	if help != nil {
		text, err := helpOn(app.Name, help)
		if err == nil {
			_, err = io.WriteString(w.stdout, screenOf(w, w.stdout, w.outTTY, "").text(text))
		}
		return report(w, err)
	}
	return report(w, app.RunContext(ctx, words))
}

// run runs a command within its --timeout.
func run(ctx context.Context, c *call) error {
	if c.opt.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.opt.timeout, errTimedOut)
		defer cancel()
		c.interruptible(ctx)
	}
	err := c.cmd.run(ctx, c)
	if err == nil {
		c.rememberMembers(ctx)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return leftEarly(err, cause)
	}
	return err
}
