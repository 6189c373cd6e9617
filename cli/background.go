package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lanjobs/node"
	"lanjobs/task"
	"lanjobs/transport"
)

// logName is a background node's log, in its data folder.
const logName = "node.log"

// How long a background node may take until its socket answers.
const (
	startPatience = 15 * time.Second
	startPoll     = 50 * time.Millisecond
)

// launcher starts a program that outlives this one: own session, no terminal, output appended to logFile. exited gets the
// reason if it ends while this process lives.
type launcher func(exe string, args []string, logFile string) (exited <-chan error, err error)

// serveFlags are what a background node is told besides its folder.
type serveFlags struct {
	listen, name string
	labels       []string
	rules        node.Rules
}

func (f serveFlags) args(dataDir string) []string {
	args := []string{"serve", "--data-dir", dataDir}
	if f.listen != "" {
		args = append(args, "--listen", f.listen)
	}
	if f.name != "" {
		args = append(args, "--node-name", f.name)
	}
	for _, l := range f.labels {
		args = append(args, "--label", l)
	}
	return append(args, ruleArgs(f.rules)...)
}

// connectOrStart gives a client to the node here; if none runs, it starts one in the background.
func (c *call) connectOrStart(ctx context.Context, noStart bool) (*client, error) {
	cl, _, err := c.connect(ctx)
	if err == nil || !errors.Is(err, transport.ErrNoNode) || noStart {
		return cl, err
	}
	if c.opt.cluster != "" {
		return nil, err // a node started now could not be the one that was meant, or might be: the person decides
	}
	v, err := c.startNode(ctx, serveFlags{})
	if err != nil {
		return nil, err
	}
	c.saidStarted(v)
	return c.clientHere(), nil
}

func (c *call) saidStarted(v *task.ClusterView) {
	what := `"this machine only", no network`
	if v.Name != "" {
		what = fmt.Sprintf("member of %q", v.Name)
	}
	if c.byService {
		c.say("lanjobs: started the service (%s).", what)
		return
	}
	c.say("lanjobs: started a node in the background (%s; log: %s).", what, filepath.Join(c.dataDir(), logName))
	c.say("%sIt does not survive a restart of this machine. To keep it: %s", indent, c.toKeep())
}

// toKeep is the command that makes a node start with its machine.
func (c *call) toKeep() string {
	if c.goos == "windows" {
		return c.here("lanjobs service install") + ", as administrator"
	}
	return c.here("sudo lanjobs service install")
}

// here adds to a command the folder that this one was told, so that it is about the same node; one from a variable holds by itself,
// but not for sudo.
func (c *call) here(command string) string {
	if c.opt.dataDir == "" || c.opt.dataDir == c.getenv("LANJOBS_DATA_DIR") && !strings.HasPrefix(command, "sudo ") {
		return command
	}
	return command + " --data-dir " + c.dataDir()
}

// byManager starts the service, if one is installed for the node here and this user may start it. What the command line says of
// the node is in its folder by then, but for labels.
func (c *call) byManager(ctx context.Context, dir string, f serveFlags) bool {
	if len(f.labels) > 0 {
		return false
	}
	for _, user := range []bool{false, true} {
		m, err := c.services.manager(user)
		if err != nil || !user && !c.services.root() {
			continue
		}
		st, err := m.State(ctx)
		if err == nil && st.Installed && st.Ours && st.DataDir == dir && m.Check(ctx) == nil && m.Start(ctx) == nil {
			c.byService = true
			return true
		}
	}
	return false
}

// startNode starts a node, as the service that is installed for it or in the background, and waits until its socket answers.
func (c *call) startNode(ctx context.Context, f serveFlags) (*task.ClusterView, error) {
	dir, err := filepath.Abs(c.dataDir())
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	logFile := filepath.Join(dir, logName)
	before := fileSize(logFile)
	var exited <-chan error // of a service nobody tells
	if !c.byManager(ctx, dir, f) {
		if exited, err = c.launch(c.exe, f.args(dir), logFile); err != nil {
			return nil, fmt.Errorf("start a node: %w", err)
		}
	}
	cl := c.clientHere()
	cl.slow = nil
	for start := c.clock.Awake(); ; {
		v := &task.ClusterView{}
		if err := cl.try(ctx, request{method: "GET", path: "/v1/status"}, v); err == nil {
			return v, nil
		}
		select {
		case err := <-exited:
			// Another command may have started one at the same moment: then ours left, and theirs answers.
			if cl.try(ctx, request{method: "GET", path: "/v1/status"}, v) == nil {
				return v, nil
			}
			return nil, startFailed(logFile, before, err)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		default:
		}
		if c.clock.Awake()-start > startPatience {
			return nil, startFailed(logFile, before, fmt.Errorf("no answer within %s", startPatience))
		}
		if err := wait(ctx, c.clock, startPoll); err != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// startFailed shows the end of what the node wrote since it was started.
func startFailed(logFile string, from int64, err error) error {
	why := "it ended"
	if err != nil {
		why = err.Error()
	}
	e := &exitError{code: exitBad, detail: fmt.Sprintf("the node in the background did not start (%s).", why), cause: err}
	text, _ := os.ReadFile(logFile)
	if int64(len(text)) > from {
		text = bytes.TrimSpace(text[from:])
		lines := strings.Split(string(text), "\n")
		e.hint = strings.Join(lines[max(len(lines)-5, 0):], "\n") + "\n"
	}
	e.hint += "Its log: " + logFile
	return e
}

func fileSize(name string) int64 {
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}
