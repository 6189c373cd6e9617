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
	inhibit      string
}

func (f serveFlags) args(dataDir string) []string {
	args := []string{"serve", "--data-dir", dataDir}
	if f.listen != "" {
		args = append(args, "--listen", f.listen)
	}
	if f.name != "" {
		args = append(args, "--node-name", f.name)
	}
	if f.inhibit != "" {
		args = append(args, "--inhibit", f.inhibit)
	}
	for _, l := range f.labels {
		args = append(args, "--label", l)
	}
	return args
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
	return c.client(), nil
}

func (c *call) saidStarted(v *task.ClusterView) {
	what := `"this machine only", no network`
	if v.Name != "" {
		what = fmt.Sprintf("member of %q", v.Name)
	}
	c.say("lanjobs: started a node in the background (%s; log: %s).", what, filepath.Join(c.dataDir(), logName))
	c.say("%sIt does not survive a restart of this machine; then: lanjobs serve", indent)
}

// startNode starts a node in the background and waits until its socket answers.
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
	exited, err := c.launch(c.exe, f.args(dir), logFile)
	if err != nil {
		return nil, fmt.Errorf("start a node: %w", err)
	}
	cl := c.client()
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
