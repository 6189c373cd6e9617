package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"lanjobs/cli/service"
	"lanjobs/task"
	"lanjobs/transport"
)

// stopPatience is how long a node may take to give its work back.
const stopPatience = 2 * time.Minute

// takeOver stops the node that runs on a folder, in order, and gives the flags that make it what it is. Nothing runs: nothing to do.
// The node of the service itself is its manager's to restart.
func (c *call) takeOver(ctx context.Context, dataDir string) (flags []string, err error) {
	cl := c.clientOf(dataDir)
	v := &transport.ProcessView{}
	err = cl.try(ctx, request{method: "GET", path: "/v1/process"}, v)
	switch {
	case errors.Is(err, transport.ErrNoNode):
		return nil, nil
	case errors.Is(err, task.ErrNotFound):
		return nil, &exitError{code: exitConflict, detail: "the node that runs here is of an older version, which cannot be stopped from here.",
			hint: "End its process (SIGTERM), then try again.", cause: task.ErrConflict}
	case err != nil:
		return nil, c.explainDoor(err)
	case v.Service:
		return v.Flags, nil
	}
	c.say("A node runs on %s (process %d): it gives its work back and ends, the service goes on with its data.", dataDir, v.PID)
	if err := cl.write(ctx, request{method: "POST", path: "/v1/process/stop", body: []byte("{}")}, nil); err != nil && !errors.Is(err, errCut) {
		return nil, err
	}
	return v.Flags, c.untilFree(ctx, dataDir)
}

// untilFree waits until no process has a data folder.
func (c *call) untilFree(ctx context.Context, dataDir string) error {
	file := filepath.Join(dataDir, "node.db")
	for start := c.clock.Awake(); ; {
		err := c.clientOf(dataDir).try(ctx, request{method: "GET", path: "/healthz"}, nil)
		if errors.Is(err, transport.ErrNoNode) && fileSize(file) > 0 {
			unlock, free, err := c.lock(file)
			if err != nil {
				return err
			}
			if free {
				unlock()
				return nil
			}
		} else if errors.Is(err, transport.ErrNoNode) {
			return nil
		}
		if c.clock.Awake()-start > stopPatience {
			return &exitError{code: exitUnreachable, detail: fmt.Sprintf("the node on %s has not ended within %s.", dataDir, stopPatience)}
		}
		if wait(ctx, c.clock, 200*time.Millisecond) != nil {
			return context.Cause(ctx)
		}
	}
}

// giveToManager installs; what is not as it should be is said.
func (c *call) giveToManager(ctx context.Context, m service.Manager, spec service.Spec) error {
	err := m.Install(ctx, spec)
	if w, ok := errors.AsType[*service.Warning](err); ok {
		c.say("lanjobs: %s.", w.Text)
		return nil
	}
	return err
}

// readyPatience is how long a service may take until its node answers, and then until that knows a leader.
const (
	readyPatience  = 60 * time.Second
	leaderPatience = 15 * time.Second
)

// untilReady waits until the service's node answers, and a little for its leader: it may need machines that are off.
func (c *call) untilReady(ctx context.Context, dataDir string) (text string, err error) {
	cl := c.clientOf(dataDir)
	start, lived := c.clock.Awake(), false
	for {
		v := &transport.ProcessView{}
		err := cl.try(ctx, request{method: "GET", path: "/v1/process"}, v)
		if lived = err == nil && v.Service; lived {
			if cl.try(ctx, request{method: "GET", path: "/readyz"}, nil) == nil {
				return " and is ready", nil
			}
		}
		waited := c.clock.Awake() - start
		switch {
		case lived && waited > leaderPatience:
			return ", but knows no leader yet", nil
		case waited > readyPatience:
			return "", fmt.Errorf("not within %s", readyPatience)
		}
		if wait(ctx, c.clock, 200*time.Millisecond) != nil {
			return "", context.Cause(ctx)
		}
	}
}
