package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"lanjobs/task"
	"lanjobs/transport"
)

func itoa(n int) string { return strconv.Itoa(n) }

// dataDir is the folder of the node that is meant.
func (c *call) dataDir() string {
	return orElse(c.opt.dataDir, c.nodes.config().DataDir)
}

// client leads to the node here, or where there is none to the cluster of a login: the first request finds out.
func (c *call) client() *client {
	w := c.theWay()
	return c.clientBy(w, w.whom)
}

// clientHere leads to the node here and nowhere else.
func (c *call) clientHere() *client {
	return c.clientBy(c.door(transport.SocketPath(c.dataDir())), nil)
}

func (c *call) clientBy(door http.RoundTripper, whom func() string) *client {
	cl := &client{door: door, clock: c.clock, whom: whom}
	if c.errTTY && !c.opt.quiet {
		cl.slow = func(text string) { c.say("%s", text) }
	}
	return cl
}

// connect gives a client after it has answered, and the status that it gave. With --cluster the node here must be of that cluster,
// or there must be a login of that name.
func (c *call) connect(ctx context.Context) (*client, *task.ClusterView, error) {
	cl, v, err := c.reach(ctx, c.client())
	if err != nil {
		return nil, nil, err
	}
	want := c.opt.cluster
	if want == "" || want == v.Name || c.onWay.login() != nil {
		c.noteMembers(v)
		return cl, v, nil
	}
	switch found, err := c.onWay.takeLogin(want); {
	case err != nil:
		return nil, nil, err
	case found:
		return c.reach(ctx, c.client())
	}
	return nil, nil, c.otherCluster(v.Name)
}

// connectHere is connect for what is about this machine: no login will do.
func (c *call) connectHere(ctx context.Context) (*client, *task.ClusterView, error) {
	cl, v, err := c.reach(ctx, c.clientHere())
	if errors.Is(err, transport.ErrNoNode) {
		return nil, nil, c.noMachine(err)
	}
	if want := c.opt.cluster; err == nil && want != "" && want != v.Name {
		return nil, nil, c.otherCluster(v.Name)
	}
	return cl, v, err
}

// noMachine tells a person with a login, but no node here, that this is about a machine.
func (c *call) noMachine(err error) error {
	names := c.loggedInTo()
	if _, exists := nodeHere(c.dataDir()); exists || len(names) == 0 {
		return err
	}
	return &exitError{code: exitNoNode, detail: fmt.Sprintf("no node is running on this machine, and %s is about the node here: your login to %s is no node.", c.path, andList(names)),
		hint: "On a machine of the cluster, as its owner: " + c.path, cause: err}
}

func (c *call) reach(ctx context.Context, cl *client) (*client, *task.ClusterView, error) {
	v := &task.ClusterView{}
	if err := cl.get(ctx, "/v1/status", nil, v); err != nil {
		return nil, nil, c.explainDoor(err)
	}
	return cl, v, nil
}

func (c *call) otherCluster(name string) error {
	e := &exitError{code: exitNotFound, detail: fmt.Sprintf("the node here belongs to %s, not to %q.", clusterName(name), c.opt.cluster)}
	if names := c.loggedInTo(); len(names) > 0 {
		e.hint = "You are logged in to: " + strings.Join(names, ", ")
	}
	return e
}

// loggedInTo names this person's logins.
func (c *call) loggedInTo() []string {
	book, _ := c.logins(false)
	if book == nil {
		return nil
	}
	defer book.close()
	return book.names()
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
	case c.opt.cluster != "":
		return c.noSuchLogin(err)
	}
	if _, exists := nodeHere(c.dataDir()); exists {
		return &exitError{code: exitNoNode, detail: transport.ErrNoNode.Error() + ", but one was: its data is in " + c.dataDir() + ".",
			hint: "start it again: " + c.here("lanjobs serve") + " · in the background, and with the machine: " + c.toKeep(), cause: transport.ErrNoNode}
	}
	return err
}

// noSuchLogin: no node runs here, and none of the logins is that of --cluster.
func (c *call) noSuchLogin(err error) error {
	e := &exitError{code: exitNoNode, detail: fmt.Sprintf("no node is running on this machine, and you have no login called %q.", c.opt.cluster), cause: err,
		hint: "Log in: lanjobs login MACHINE"}
	if names := c.loggedInTo(); len(names) > 0 {
		e.hint = "You are logged in to: " + strings.Join(names, ", ")
	}
	return e
}

func baseName(dir string) string { return filepath.Base(dir) }

// nodeHere tells whether a data folder is that of a node, and which cluster that belongs to: "" = this machine only. One that
// cannot be read is a node all the same; starting it says what is wrong.
func nodeHere(dataDir string) (cluster string, exists bool) {
	identity, err := transport.LoadIdentity(dataDir)
	if err != nil {
		return "", !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, syscall.ENAMETOOLONG)
	}
	return identity.Cluster.Name, true
}
