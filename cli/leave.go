package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/transport"
)

func leaveRow() *command {
	return &command{
		name: "leave", short: "take this machine out of its cluster; its data is kept aside",
		long: `Drains it, hands leadership over, tells the others. --force leaves even if they do not answer or work is lost, or if the node here
cannot even start: its data is put aside all the same.`,
		takes: takesNode | takesYes,
		flags: []urfave.Flag{&urfave.BoolFlag{Name: "force", Usage: "leave whatever happens"}},
		run: func(ctx context.Context, c *call) error {
			cl, v, err := c.connectHere(ctx)
			if errors.Is(err, transport.ErrNoNode) && c.flags.Bool("force") {
				return c.leaveStopped(err)
			}
			if err != nil {
				return err
			}
			question, end := fmt.Sprintf("Take %s out of %q?", v.SelfName, v.Name), fmt.Sprintf("%s has left %q", v.SelfName, v.Name)
			if v.Name == "" { // there is nobody to leave
				question = "The node here is in no cluster (this machine only). End it and put its data, jobs and schedules aside?"
				end = "The node here has ended; its data is put aside, in " + c.dataDir()
			}
			if err := c.confirm(question); err != nil {
				return err
			}
			if err := c.leave(ctx, cl, c.flags.Bool("force")); err != nil {
				return err
			}
			return c.done(nil, nil, "%s", end)
		},
	}
}

// leaveStopped puts the data of a node aside that does not run, or cannot.
func (c *call) leaveStopped(noNode error) error {
	cluster, exists := nodeHere(c.dataDir())
	if !exists {
		return noNode
	}
	if err := c.confirm(fmt.Sprintf("The node here does not run, so it can tell nobody. Put its data (%s, in %s) aside?", clusterName(cluster), c.dataDir())); err != nil {
		return err
	}
	cfg, err := c.nodeConfig(serveFlags{})
	if err != nil {
		return err
	}
	if err := c.nodes.setAside(cfg); err != nil {
		return err
	}
	return c.done(nil, nil, "The data of the node here is put aside, in %s", c.dataDir())
}

// leavePatience is how long a node may take to hand over what it has and end.
const leavePatience = 2 * time.Minute

// leave asks the node here to leave and waits until it is gone.
func (c *call) leave(ctx context.Context, cl *client, force bool) error {
	body, err := json.Marshal(transport.LeaveBody{Force: force})
	if err != nil {
		return err
	}
	// The answer comes when all work is given back, or not at all, if the node has gone by then.
	err = cl.write(ctx, request{method: "POST", path: "/v1/leave", body: body, limit: leavePatience}, nil)
	if err != nil && !errors.Is(err, errCut) && !errors.Is(err, transport.ErrNoNode) {
		return c.explainDoor(err)
	}
	// The socket goes first, the data is put aside last: whoever joins next needs the folder.
	for start := c.clock.Awake(); ; {
		err := cl.try(ctx, request{method: "GET", path: "/healthz"}, nil)
		if _, exists := nodeHere(c.dataDir()); errors.Is(err, transport.ErrNoNode) && !exists {
			return nil
		}
		if c.clock.Awake()-start > leavePatience {
			return &exitError{code: exitUnreachable, detail: fmt.Sprintf("the node here has not ended within %s.", leavePatience), hint: "Its log says what it waits for: " + logName}
		}
		if wait(ctx, c.clock, 200*time.Millisecond) != nil {
			return context.Cause(ctx)
		}
	}
}
