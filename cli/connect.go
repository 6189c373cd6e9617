package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"lanjobs/task"
	"lanjobs/transport"
)

func itoa(n int) string { return strconv.Itoa(n) }

// dataDir is the folder of the node that is meant.
func (c *call) dataDir() string {
	return orElse(c.opt.dataDir, c.nodes.config().DataDir)
}

// client leads to the node here, whether one runs or not: the first request finds out.
func (c *call) client() *client {
	cl := &client{door: c.door(transport.SocketPath(c.dataDir())), clock: c.clock}
	if c.errTTY && !c.opt.quiet {
		cl.slow = func(text string) { c.say("%s", text) }
	}
	return cl
}

// connect gives a client to the node here after it has answered, and its status.
func (c *call) connect(ctx context.Context) (*client, *task.ClusterView, error) {
	cl := c.client()
	v := &task.ClusterView{}
	if err := cl.get(ctx, "/v1/status", nil, v); err != nil {
		return nil, nil, c.explainDoor(err)
	}
	if want := c.opt.cluster; want != "" && want != v.Name {
		return nil, nil, &exitError{code: exitNotFound, detail: fmt.Sprintf("the node here belongs to %s, not to %q.", clusterName(v.Name), want)}
	}
	return cl, v, nil
}

// ask is connect for commands that only need the client: they ask for the status only if --cluster wants it checked.
func (c *call) ask(ctx context.Context) (*client, error) {
	if c.opt.cluster == "" {
		return c.client(), nil
	}
	cl, _, err := c.connect(ctx)
	return cl, err
}

func clusterName(name string) string {
	if name == "" {
		return "no cluster (this machine only)"
	}
	return strconv.Quote(name)
}

// explainDoor adds what a person can do when the node here does not answer.
func (c *call) explainDoor(err error) error {
	switch {
	case errors.Is(err, transport.ErrSocketPermission):
		return notYours(ownerOf(c.dataDir()), c.user, c.dataDir())
	case !errors.Is(err, transport.ErrNoNode):
		return err
	}
	if _, exists := nodeHere(c.dataDir()); exists {
		return &exitError{code: exitNoNode, detail: transport.ErrNoNode.Error() + ", but one was: its data is in " + c.dataDir() + ".",
			hint: "start it again: lanjobs serve", cause: transport.ErrNoNode}
	}
	return err
}

// nodeHere tells whether a data folder is that of a node, and which cluster that belongs to: "" = this machine only. One that
// cannot be read is a node all the same; starting it says what is wrong.
func nodeHere(dataDir string) (cluster string, exists bool) {
	identity, err := transport.LoadIdentity(dataDir)
	if err != nil {
		return "", !errors.Is(err, fs.ErrNotExist)
	}
	return identity.Cluster.Name, true
}
