package cli

import (
	urfave "github.com/urfave/cli/v2"

	"lanjobs/node"
)

// ruleFlags are what the owner of a machine lets the cluster do with it. The node keeps what it was told.
func ruleFlags() []urfave.Flag {
	return []urfave.Flag{
		&urfave.StringSliceFlag{Name: "refuse-queue", Usage: "take nothing of queue `NAME`; kept, \"\" takes it back"},
		&urfave.StringFlag{Name: "run-as", Usage: "run tasks as `USER`, if the node runs as root; kept, \"\" takes it back"},
		&urfave.StringSliceFlag{Name: "allow-user", Usage: "let job files ask for `USER` (user: …), if the node runs as root; kept, \"\" takes it back"},
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
	return args
}
