package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
	"lanjobs/transport"
)

func approveRow() *command {
	return &command{
		name: "approve", operands: "[CODE]", max: 1, short: "let in who waits with a code; without CODE, list them",
		takes: takesNode | takesOutput | takesYes,
		long: `CODE is what "lanjobs join" or "lanjobs login" shows on the other machine, 8 letters and digits in any case. It never crosses the
network: both sides prove to each other that they have it. Works on any member, and from an admin's login. --role may give another
role than was asked for.`,
		flags: []urfave.Flag{&urfave.StringFlag{Name: "role", Usage: "`ROLE` for a machine: worker, voter; for a person: viewer, operator, admin (what was asked for)"}},
		run:   runApprove,
	}
}

// admittedPatience is how long an approved machine may take until the cluster knows it.
const admittedPatience = 30 * time.Second

func runApprove(ctx context.Context, c *call) error {
	role := c.flags.String("role")
	if _, err := oneOf("--role", role, append([]string{"voter", "worker"}, roles...)); err != nil {
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
	decision, err := c.decision(v, code, role)
	if err != nil {
		return err
	}
	path := "/v1/pairings/" + url.PathEscape(v.ID)
	if err := c.confirm(c.introduce(v, decision)); err != nil {
		if told := cl.delete(context.WithoutCancel(ctx), path, nil, nil); told != nil {
			c.say("%s was not told: %v", v.Name, told)
		}
		return err
	}
	if err := cl.post(ctx, path+"/approve", decision, v); err != nil {
		return c.explainDoor(err)
	}
	if v.Role != "" {
		return c.done(v, []string{v.Name}, "✓ %s is let in as %s. To shut out: lanjobs client rm %s", v.Name, v.Role, v.Name)
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

// decision puts --role together with who waits. A role of the other kind is a slip, and nobody is sent away for it.
func (c *call) decision(v *transport.PairingView, code transport.PairCode, role string) (transport.PairDecision, error) {
	forPerson := slices.Contains(roles, role)
	again := fmt.Sprintf("The code is still good: lanjobs approve %s", code)
	switch {
	case v.Role == "" && forPerson:
		return transport.PairDecision{}, usage(c.path, "%s is a machine that wants to join: --role %s is for people, worker and voter fit. %s", v.Name, role, again)
	case v.Role == "":
		return transport.PairDecision{Worker: role == "worker"}, nil
	case role != "" && !forPerson:
		return transport.PairDecision{}, usage(c.path, "%s wants to log in: --role %s is for machines, viewer, operator and admin fit. %s", v.Name, role, again)
	}
	return transport.PairDecision{Role: orElse(role, v.Role)}, nil
}

// roleMeans says in a few words what a role may do.
func roleMeans(role string) string {
	switch role {
	case "viewer":
		return "reads only"
	case "operator":
		return "reads, submits and acts on jobs: runs programs on the machines"
	case "admin":
		return "everything, also letting in others"
	}
	return "unknown here"
}

// introduce shows who waits and gives the question to ask.
func (c *call) introduce(v *transport.PairingView, d transport.PairDecision) string {
	from := fmt.Sprintf("%s/%s   lanjobs %s   from %s   asked %s ago", v.OS, v.Arch, v.Version, v.Address, length(v.AskedSeconds))
	if v.Role == "" {
		c.say("  %s   %s", v.Name, from)
		return "Let it in? It will run jobs of this cluster and see their files."
	}
	c.say("  %s wants to log in as %s (%s)   %s", v.Name, v.Role, roleMeans(v.Role), from)
	if d.Role != v.Role {
		return fmt.Sprintf("Let %s in as %s instead (%s)?", v.Name, d.Role, roleMeans(d.Role))
	}
	return fmt.Sprintf("Let %s in as %s?", v.Name, d.Role)
}

// listWaiting shows who waits; the codes are known to those alone.
func (c *call) listWaiting(ctx context.Context, cl *client) error {
	var l task.List[transport.PairingView]
	if err := cl.get(ctx, "/v1/pairings", nil, &l); err != nil {
		return c.explainDoor(err)
	}
	a := answer{value: l, items: anys(l.Items), table: table{head: []string{"NAME", "WANTS", "SYSTEM", "VERSION", "FROM", "ASKED"}}}
	for _, v := range l.Items {
		a.names = append(a.names, v.Name)
		a.table.rows = append(a.table.rows, cells(v.Name, wants(&v), v.OS+"/"+v.Arch, v.Version, v.Address, length(v.AskedSeconds)+" ago"))
	}
	a.foot = []string{"Each shows its code. To let one in: lanjobs approve CODE"}
	if len(l.Items) == 0 {
		a.foot = []string{"No machine waits. On the new one: lanjobs join MACHINE, or lanjobs login MACHINE"}
	}
	return c.show(a)
}

// wants is what somebody waits for.
func wants(v *transport.PairingView) string {
	switch {
	case v.Role != "":
		return "login as " + v.Role
	case v.Worker:
		return "join as worker"
	}
	return "join"
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
