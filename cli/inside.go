package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lanjobs/node"
	"lanjobs/task"
)

// insideDirs is how many runs may go on beside each other, each in a folder of its own.
const insideDirs = 64

// Patience with a node in this process: until it is ready, and until a job that was told to stop has ended.
const (
	insideReady = 15 * time.Second
	insideGrace = 5 * time.Minute // longer than any sensible stop_grace; the second Ctrl-C is there for the rest
)

// runInside runs a job in this process: the node is the same, with one voter and no doors.
func (c *call) runInside(ctx context.Context, spec *task.Spec) error {
	dir, unlock, err := c.insideDir()
	if err != nil {
		return err
	}
	defer unlock()
	cfg := c.insideConfig(dir)
	// The node is not to end with ctx: on Ctrl-C it is still needed, to stop the job.
	always := context.WithoutCancel(ctx)
	n, err := c.nodes.open(always, cfg)
	if err != nil {
		return err
	}
	nodeCtx, stop := context.WithCancel(always)
	jobCtx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		fault := n.Run(nodeCtx)
		// A node that breaks takes the job with it. When the job ended first, nobody listens any more.
		fail(fmt.Errorf("the node in this process ended: %w", cmp.Or(fault, errEndedItself)))
	}()
	defer func() { stop(); <-ended }()
	defer c.stopAtOnce(n)()
	return c.runOn(jobCtx, &client{door: handlerDoor{n.API()}, clock: c.clock}, spec)
}

var errEndedItself = errors.New("without saying why")

func (c *call) insideConfig(dir string) node.Config {
	cfg := c.nodes.config()
	cfg.DataDir, cfg.Embedded = dir, true
	cfg.Version, cfg.Exe, cfg.Clock = c.version, c.exe, c.clock
	return cfg
}

// insideDir is a folder that no other run uses: <data-dir>-run, or -run-2 … while others go on.
func (c *call) insideDir() (dir string, unlock func(), err error) {
	base, err := filepath.Abs(c.dataDir())
	if err != nil {
		return "", nil, err
	}
	for i := 1; i <= insideDirs; i++ {
		dir = base + "-run"
		if i > 1 {
			dir += "-" + itoa(i)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", nil, err
		}
		unlock, free, err := c.lock(filepath.Join(dir, "run.lock"))
		if err != nil {
			return "", nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		if free {
			return dir, unlock, nil
		}
	}
	return "", nil, &exitError{code: exitConflict, detail: fmt.Sprintf("%d jobs run in processes of their own already.", insideDirs),
		hint: "Hand it to a node instead: lanjobs submit"}
}

// runOn runs a job on the node in this process.
func (c *call) runOn(ctx context.Context, cl *client, spec *task.Spec) error {
	if err := untilReady(ctx, cl); err != nil {
		return err
	}
	if err := c.clearLeft(ctx, cl); err != nil {
		return err
	}
	reply, err := submitSpec(ctx, cl, spec, false)
	if err != nil {
		return err
	}
	if reply.Note != "" {
		c.say("lanjobs: %s.", reply.Note)
	}
	jobs, err := c.followOutput(ctx, cl, reply.ID, spec)
	switch {
	case err == nil:
		c.saidEnd(jobs)
		return c.outcome(jobs, false)
	case ctx.Err() == nil:
		return err
	}
	c.stopJob(ctx, cl, reply.ID)
	if context.Cause(ctx) == errInterrupted {
		return stoppedInside(reply.Name)
	}
	if context.Cause(ctx) == errTimedOut {
		return &exitError{code: exitTimeout, detail: fmt.Sprintf("%s passed (--timeout); %s was stopped.", c.opt.timeout, reply.Name), cause: errTimedOut}
	}
	return context.Cause(ctx)
}

// untilReady waits for the node to lead itself and to offer its machine: a job handed in before that is told that nobody can
// run it.
func untilReady(ctx context.Context, cl *client) error {
	for start := cl.clock.Awake(); ; {
		v := &task.ClusterView{}
		err := cl.try(ctx, request{method: "GET", path: "/v1/status"}, v)
		ready := func(n task.NodeView) bool { return n.ID == v.Self && n.State == "ready" }
		if err == nil && v.Leader != "" && slices.ContainsFunc(v.Nodes, ready) {
			return nil
		}
		if err != nil && exitCode(err) != exitUnreachable {
			return err
		}
		if cl.clock.Awake()-start > insideReady {
			return task.NewProblem(task.ErrNoLeader, "the node in this process was not ready within "+insideReady.String(), "")
		}
		if wait(ctx, cl.clock, 10*time.Millisecond) != nil {
			return context.Cause(ctx)
		}
	}
}

// clearLeft stops what an earlier run left that was killed: its person has not asked for it again.
func (c *call) clearLeft(ctx context.Context, cl *client) error {
	left, err := gather(ctx, cl, "/v1/jobs", nil, func(j task.JobView) bool { return !j.State.Final() })
	if err != nil {
		return err
	}
	q := c.stopQuery("left by an earlier lanjobs run")
	for _, j := range left.Items {
		c.say("lanjobs: %s %s, left by an earlier run, is stopped.", j.Name, j.ID)
		if err := cl.delete(ctx, jobPath(j.ID), q, nil); err != nil {
			return err
		}
	}
	return nil
}

// stopJob cancels a job and waits until its tasks have ended: they are told to stop, and have their grace to do so.
func (c *call) stopJob(ctx context.Context, cl *client, id task.JobID) {
	c.say("Stopping … (Ctrl-C again kills)")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), insideGrace)
	defer cancel()
	stopWait := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-c.again:
			cancel()
		case <-stopWait:
		}
	}()
	defer func() { close(stopWait); <-done }()
	if cl.delete(ctx, jobPath(id), c.stopQuery("Ctrl-C"), nil) != nil {
		return
	}
	_, _ = follow(ctx, c.clock, cl, []task.JobID{id}, eventCursor{}, silent{})
}

func (c *call) stopQuery(reason string) url.Values { return url.Values{"reason": {reason}} }
