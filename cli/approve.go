package cli

import (
	"context"
	"fmt"
	"net/url"
	"time"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
	"lanjobs/transport"
)

func approveRow() *command {
	return &command{
		name: "approve", operands: "[CODE]", max: 1, short: "let in a machine that waits with a code; without CODE, list who waits",
		takes: takesNode | takesOutput | takesYes,
		long: `CODE is what "lanjobs join" shows on the new machine, 8 letters and digits in any case. It never crosses the network: both sides
prove to each other that they have it. Works on any member.`,
		flags: []urfave.Flag{&urfave.StringFlag{Name: "role", Usage: "`ROLE` of the machine: worker, voter (voter, unless it asks to be a worker)"}},
		run:   runApprove,
	}
}

// admittedPatience is how long an approved machine may take until the cluster knows it.
const admittedPatience = 30 * time.Second

func runApprove(ctx context.Context, c *call) error {
	role, err := oneOf("--role", c.flags.String("role"), []string{"voter", "worker"})
	if err != nil {
		return usage(c.path, "%v", err)
	}
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	if len(c.args) == 0 {
		return c.listWaiting(ctx, cl)
	}
	code, err := transport.ParsePairCode(c.args[0])
	if err != nil {
		return err
	}
	if !c.opt.yes && !c.inTTY {
		return usage(c.path, "There is no terminal to ask on: add --yes.") // before the code is spent
	}
	v := &transport.PairingView{}
	if err := cl.post(ctx, "/v1/pairings", transport.PairCodeBody{Code: code.String()}, v); err != nil {
		return c.explainDoor(err)
	}
	c.say("  %s   %s/%s   lanjobs %s   from %s   asked %s ago", v.Name, v.OS, v.Arch, v.Version, v.Address, length(v.AskedSeconds))
	path := "/v1/pairings/" + url.PathEscape(v.ID)
	if err := c.confirm("Let it in? It will run jobs of this cluster and see their files."); err != nil {
		if told := cl.delete(context.WithoutCancel(ctx), path, nil, nil); told != nil {
			c.say("%s was not told: %v", v.Name, told)
		}
		return err
	}
	if err := cl.post(ctx, path+"/approve", transport.PairDecision{Worker: role == "worker"}, v); err != nil {
		return c.explainDoor(err)
	}
	in, err := c.untilAdmitted(ctx, cl, v.Node)
	switch {
	case err != nil:
		return err
	case in == nil:
		return c.done(v, []string{v.Name}, "✓ %s was let in, but has not come in yet. How it stands: lanjobs node ls", v.Name)
	}
	return c.done(in, []string{v.Name}, "✓ %s is in.", v.Name)
}

// listWaiting shows who waits; the codes are known to the machines alone.
func (c *call) listWaiting(ctx context.Context, cl *client) error {
	var l task.List[transport.PairingView]
	if err := cl.get(ctx, "/v1/pairings", nil, &l); err != nil {
		return c.explainDoor(err)
	}
	a := answer{value: l, items: anys(l.Items), table: table{head: []string{"NAME", "SYSTEM", "VERSION", "FROM", "ASKED"}}}
	for _, v := range l.Items {
		a.names = append(a.names, v.Name)
		a.table.rows = append(a.table.rows, cells(v.Name, v.OS+"/"+v.Arch, v.Version, v.Address, length(v.AskedSeconds)+" ago"))
	}
	a.foot = []string{"Each shows its code. To let one in: lanjobs approve CODE"}
	if len(l.Items) == 0 {
		a.foot = []string{"No machine waits. On the new one: lanjobs join MACHINE"}
	}
	return c.show(a)
}

// untilAdmitted waits until the cluster knows an approved machine; nil if it takes too long.
func (c *call) untilAdmitted(ctx context.Context, cl *client, id task.NodeID) (*task.NodeView, error) {
	for start := c.clock.Awake(); c.clock.Awake()-start < admittedPatience; {
		n := &task.NodeView{}
		err := cl.get(ctx, "/v1/nodes/"+url.PathEscape(string(id)), nil, n)
		if err == nil {
			return n, nil
		}
		if code := exitCode(err); code != exitNotFound && code != exitUnreachable {
			return nil, fmt.Errorf("approved, but: %w", c.explainDoor(err))
		}
		if wait(ctx, c.clock, 200*time.Millisecond) != nil {
			return nil, context.Cause(ctx)
		}
	}
	return nil, nil
}
