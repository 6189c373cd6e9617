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

func tokenGroup() *group {
	return &group{name: "token", short: "tokens that let machines join and people log in", commands: []*command{
		{name: "create", short: "make a token; prints a whole join or login line, with -q the token alone", takes: takesNode | takesOutput, run: runTokenCreate,
			flags: []urfave.Flag{
				lengthFlag("ttl", time.Hour, "it ends after `TIME` (1h)"),
				&urfave.IntFlag{Name: "uses", Value: 1, Usage: "it lets `N` machines in (1)"},
				&urfave.BoolFlag{Name: "worker", Usage: "who joins with it never votes"},
				&urfave.StringFlag{Name: "role", Usage: "not for a machine, but for a login as `ROLE`: viewer, operator, admin"},
			}},
		{name: "ls", short: "list tokens that are still good", takes: takesNode | takesOutput | takesWatch, run: runTokenLs},
		{name: "rm", operands: "ID…", min: 1, max: -1, short: "end tokens at once", takes: takesNode, run: runTokenRm},
	}}
}

func runTokenCreate(ctx context.Context, c *call) error {
	body := transport.TokenBody{TTLSeconds: c.flags.Duration("ttl").Seconds(), Uses: c.flags.Int("uses"), Worker: c.flags.Bool("worker"), Role: c.flags.String("role")}
	if body.TTLSeconds <= 0 || body.Uses < 1 {
		return usage(c.path, "--ttl is longer than 0 and --uses at least 1.")
	}
	verb, whom := "join", "machine"
	if body.Role != "" {
		if _, err := oneOf("--role", body.Role, roles); err != nil {
			return usage(c.path, "%v", err)
		}
		if body.Worker {
			return usage(c.path, "--worker is for machines and --role for people: give one.")
		}
		verb, whom = "login", "login"
	}
	cl, v, err := c.connect(ctx)
	if err != nil {
		return err
	}
	if v.Name == "" {
		return &exitError{code: exitConflict, detail: "this machine is no cluster yet, so there is nothing to join.", hint: "Make one of it: lanjobs init"}
	}
	t := &transport.TokenView{}
	if err := cl.post(ctx, "/v1/tokens", body, t); err != nil {
		return c.explainDoor(err)
	}
	if c.opt.quiet && !c.machine() {
		_, err := fmt.Fprintln(c.stdout, t.Token)
		return err
	}
	lines := t.Join
	if len(lines) == 0 {
		lines = []string{fmt.Sprintf("lanjobs %s %s --token %s", verb, v.SelfName, t.Token)}
	}
	if err := c.show(answer{value: t, names: []string{t.ID}, head: lines[:1]}); err != nil {
		return err
	}
	for _, l := range lines[1:] {
		c.say("or: %s", l)
	}
	c.say("Good for %s, %s. It is shown this once; end it early: lanjobs token rm %s", length(t.LeftSeconds), count(t.UsesLeft, whom), t.ID)
	return nil
}

func runTokenLs(ctx context.Context, c *call) error {
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	return c.showOrWatch(ctx, func(ctx context.Context) (answer, error) {
		var l task.List[transport.TokenView]
		if err := cl.get(ctx, "/v1/tokens", nil, &l); err != nil {
			return answer{}, c.explainDoor(err)
		}
		a := answer{value: l, items: anys(l.Items), table: table{head: []string{"ID", "FOR", "LEFT", "USES", "ROLE", "BY"}}}
		for _, t := range l.Items {
			what, role := "machine", "voter"
			switch {
			case t.Role != "":
				what, role = "login", t.Role
			case t.Worker:
				role = "worker"
			}
			a.names = append(a.names, t.ID)
			a.table.rows = append(a.table.rows, cells(t.ID, what, length(t.LeftSeconds), itoa(t.UsesLeft), role, orElse(t.By, "-")))
		}
		if len(l.Items) == 0 {
			a.foot = []string{"No tokens. Make one: lanjobs token create"}
		}
		return a, nil
	})
}

func runTokenRm(ctx context.Context, c *call) error {
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	for _, id := range c.args {
		if err := cl.delete(ctx, "/v1/tokens/"+url.PathEscape(id), nil, nil); err != nil {
			return c.explainDoor(err)
		}
		if err := c.done(nil, nil, "token %s is no good any more", id); err != nil {
			return err
		}
	}
	return nil
}
