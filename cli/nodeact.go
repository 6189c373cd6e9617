package cli

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// target is the machine that is meant: named, or this one with --self.
func (c *call) target(ctx context.Context) (*client, string, error) {
	self := c.flags.Bool("self")
	switch {
	case self && len(c.args) > 0:
		return nil, "", usage(c.path, "--self and %q name two machines: give one.", c.args[0])
	case !self && len(c.args) == 0:
		return nil, "", usage(c.path, "NODE is missing, or --self for this machine. Usage: %s", usageLine(c.cmd, c.path))
	case !self:
		cl, err := c.ask(ctx)
		return cl, c.args[0], err
	}
	cl, v, err := c.connectHere(ctx)
	if err != nil {
		return nil, "", err
	}
	return cl, string(v.Self), nil
}

func runNodeDrain(ctx context.Context, c *call) error {
	cl, ref, err := c.target(ctx)
	if err != nil {
		return err
	}
	deadline := c.flags.Duration("deadline")
	if deadline < 0 {
		return usage(c.path, "--deadline %s is negative.", deadline)
	}
	n := &task.NodeView{}
	body := transport.DrainBody{DeadlineSeconds: deadline.Seconds(), Reason: c.flags.String("reason")}
	if err := cl.post(ctx, nodePath(ref, "drain"), body, n); err != nil {
		return c.explainDoor(err)
	}
	said := 0
	for c.opt.wait && n.Running > 0 {
		if n.Running != said {
			c.say("%s still run on %s …", count(n.Running, "shard"), n.Name)
			said = n.Running
		}
		if wait(ctx, c.clock, followMost) != nil {
			return context.Cause(ctx)
		}
		if err := cl.get(ctx, nodePath(ref, ""), nil, n); err != nil && exitCode(err) != exitUnreachable {
			return c.explainDoor(err)
		}
	}
	return c.done(n, []string{n.Name}, "%s gets nothing new; %s. Undo: lanjobs node resume %s", n.Name, whatRuns(n, deadline), n.Name)
}

// whatRuns says what becomes of the work of a machine that is drained.
func whatRuns(n *task.NodeView, deadline time.Duration) string {
	switch {
	case n.Running == 0:
		return "nothing runs there"
	case deadline > 0:
		return fmt.Sprintf("what runs there (%s) may end within %s, then it moves", count(n.Running, "shard"), length(deadline.Seconds()))
	}
	return fmt.Sprintf("what runs there (%s) is stopped and goes on elsewhere", count(n.Running, "shard"))
}

func runNodeResume(ctx context.Context, c *call) error {
	cl, ref, err := c.target(ctx)
	if err != nil {
		return err
	}
	n := &task.NodeView{}
	if err := cl.post(ctx, nodePath(ref, "resume"), struct{}{}, n); err != nil {
		return c.explainDoor(err)
	}
	return c.done(n, []string{n.Name}, "%s%s", n.Name, atWork(n))
}

// atWork says whether a machine takes work after an act that would have it do so: something else may still keep it from that.
func atWork(n *task.NodeView) string {
	switch n.State {
	case "draining":
		return " is still draining: lanjobs node resume " + n.Name
	case "unstable":
		return " drains no more, but has crashed too often: lanjobs node clear " + n.Name
	case "silent", "asleep":
		return " takes work again when it is back"
	}
	return " takes work again"
}

func runNodePromote(ctx context.Context, c *call) error {
	if c.flags.Bool("auto") {
		return c.setRole(ctx, "auto", "%s: the leader chooses again whether it votes (now: %s)")
	}
	return c.setRole(ctx, "voter", "%s votes before all others, as soon as it has the whole log (now: %s)")
}

func runNodeDemote(ctx context.Context, c *call) error {
	return c.setRole(ctx, "worker", "%s loses its vote, if it has one and others can do without (now: %s). It still runs jobs.")
}

// setRole says whether a machine should vote; text takes its name and its present role.
func (c *call) setRole(ctx context.Context, role, text string) error {
	n, err := c.actOnNode(ctx, "role", transport.RoleBody{Role: role})
	if err != nil {
		return err
	}
	return c.done(n, []string{n.Name}, text, n.Name, n.Role)
}

func runNodeClear(ctx context.Context, c *call) error {
	n, err := c.actOnNode(ctx, "clear", struct{}{})
	if err != nil {
		return err
	}
	return c.done(n, []string{n.Name}, "%s%s. Its crashes are forgotten; what it ran then: lanjobs events --node %s", n.Name, atWork(n), n.Name)
}

// actOnNode asks for an act on the machine that is named, and gives it as it then is.
func (c *call) actOnNode(ctx context.Context, act string, body any) (*task.NodeView, error) {
	cl, err := c.ask(ctx)
	if err != nil {
		return nil, err
	}
	n := &task.NodeView{}
	if err := cl.post(ctx, nodePath(c.args[0], act), body, n); err != nil {
		return nil, c.explainDoor(err)
	}
	return n, nil
}

func runNodeLabel(ctx context.Context, c *call) error {
	body := transport.LabelBody{}
	for _, word := range c.args[1:] {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			if name, ok = strings.CutSuffix(word, "-"); !ok {
				return usage(c.path, "%q: write KEY=VALUE to set a label, KEY- to remove one.", word)
			}
		} else if value == "" {
			return usage(c.path, "%q has no value; to remove the label: %s-", word, name)
		}
		if name == "" {
			return usage(c.path, "%q has no name.", word)
		}
		body.Set = append(body.Set, task.KV{Name: name, Value: value})
	}
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	n := &task.NodeView{}
	if err := cl.post(ctx, nodePath(c.args[0], "label"), body, n); err != nil {
		return c.explainDoor(err)
	}
	return c.done(n, []string{n.Name}, "%s: %s", n.Name, orElse(labelText(n.Labels), "no labels"))
}

func runNodeRm(ctx context.Context, c *call) error {
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	ref := c.args[0]
	n := &task.NodeView{}
	if err := cl.get(ctx, nodePath(ref, ""), nil, n); err != nil {
		return c.explainDoor(err)
	}
	question := fmt.Sprintf("Remove %s (%s, %s) for good? It can come back only by joining anew.", n.Name, n.Role, n.State)
	if n.State == "ready" {
		question = fmt.Sprintf("%s is up and well; \"lanjobs leave\" there is the gentle way. Remove it all the same?", n.Name)
	}
	if err := c.confirm(question); err != nil {
		return err
	}
	var q url.Values
	if c.flags.Bool("force") {
		q = url.Values{"force": {"1"}}
	}
	if err := cl.delete(ctx, nodePath(string(n.ID), ""), q, nil); err != nil {
		return c.explainDoor(err)
	}
	return c.done(nil, nil, "%s is removed", n.Name)
}
