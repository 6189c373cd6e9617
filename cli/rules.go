package cli

import (
	"strconv"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/node"
	"lanjobs/task/runner"
)

// ruleFlags are what the owner of a machine lets the cluster do with it. The node keeps what it was told.
func ruleFlags() []urfave.Flag {
	return []urfave.Flag{
		&urfave.StringSliceFlag{Name: "refuse-queue", Usage: "take nothing of queue `NAME`; kept, \"\" takes it back"},
		&urfave.StringFlag{Name: "run-as", Usage: "run tasks as `USER`, if the node runs as root; kept, \"\" takes it back"},
		&urfave.StringSliceFlag{Name: "allow-user", Usage: "let job files ask for `USER` (user: …), if the node runs as root; kept, \"\" takes it back"},
		&urfave.StringFlag{Name: "inhibit", EnvVars: env("INHIBIT"), Usage: "awake while tasks run, `WHEN`: mains (not on battery), always, never; kept"},
		&urfave.IntFlag{Name: "reserve", Usage: "leave `PERCENT` of the machine free (20); kept"},
	}
}

// rules reads them.
func (c *call) rules() node.Rules {
	var r node.Rules
	if c.flags.IsSet("refuse-queue") {
		r.Refuses = named(c.flags.StringSlice("refuse-queue"))
	}
	if c.flags.IsSet("run-as") {
		user := c.flags.String("run-as")
		r.RunAs = &user
	}
	if c.flags.IsSet("allow-user") {
		r.AllowUsers = named(c.flags.StringSlice("allow-user"))
	}
	r.Inhibit = runner.InhibitPolicy(c.flags.String("inhibit"))
	if c.flags.IsSet("reserve") {
		r.Reserve = new(c.flags.Int("reserve"))
	}
	return r
}

// named leaves out the empty ones; the list is not nil.
func named(words []string) []string {
	out := []string{}
	for _, w := range words {
		if w != "" {
			out = append(out, w)
		}
	}
	return out
}

// ruleArgs are the same flags for a node that is started in the background.
func ruleArgs(r node.Rules) []string {
	var args []string
	list := func(flag string, words []string) {
		if words != nil && len(words) == 0 {
			words = []string{""}
		}
		for _, w := range words {
			args = append(args, flag, w)
		}
	}
	list("--refuse-queue", r.Refuses)
	if r.RunAs != nil {
		args = append(args, "--run-as", *r.RunAs)
	}
	list("--allow-user", r.AllowUsers)
	if r.Reserve != nil {
		args = append(args, "--reserve", strconv.Itoa(*r.Reserve))
	}
	if r.Inhibit != "" {
		args = append(args, "--inhibit", string(r.Inhibit))
	}
	return args
}
