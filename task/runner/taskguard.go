package runner

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"time"

	"lanjobs/task"
)

// Guard is `lanjobs task guard`: it confirms the lease with a majority, runs a command with this process's streams, and kills it if
// the lease ends meanwhile. It returns the command's exit code, or task.ErrStaleToken if the lease was not enough or ended.
func (c *TaskClient) Guard(ctx context.Context, need time.Duration, argv []string) (int, error) {
	if len(argv) == 0 {
		return 0, task.NewProblem(task.ErrInvalid, "no command given", "lanjobs task guard --need 30s -- mv tmp final")
	}
	info, err := c.Confirm(ctx, need)
	if err != nil {
		return 0, err
	}
	c.hold(info)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdin, os.Stdout, os.Stderr, guardedAttr()
	if err := cmd.Start(); err != nil {
		return 0, task.NewProblem(task.ErrInvalid, err.Error(), "")
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			return exitCode(cmd, err)
		case <-ctx.Done():
			killGuarded(cmd)
			<-ended
			return 0, ctx.Err()
		case <-c.clock.After(guardLook):
		}
		if !c.stillHeld(ctx) {
			killGuarded(cmd)
			<-ended
			return 0, task.NewProblem(task.ErrStaleToken, "the lease ended while "+argv[0]+" ran; it was killed", "what it wrote may be incomplete")
		}
	}
}

// guardLook is how often the lease is looked at; in between its deadline is not known to move.
const guardLook = 200 * time.Millisecond

func (c *TaskClient) hold(info LeaseInfo) {
	c.deadline = c.clock.Boot().Add(time.Duration(info.RemainingSeconds * float64(time.Second)))
}

// stillHeld asks the node. While it is away the last known deadline counts.
func (c *TaskClient) stillHeld(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, guardLook)
	defer cancel()
	before := c.clock.Boot()
	info, err := c.leaseOnce(ctx)
	if err != nil {
		return c.clock.Boot() < c.deadline
	}
	c.deadline = before.Add(time.Duration(info.RemainingSeconds * float64(time.Second)))
	return info.Valid
}

func exitCode(cmd *exec.Cmd, err error) (int, error) {
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		return 0, err
	}
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code, nil
	}
	return 128 + signalOf(cmd.ProcessState), nil
}
