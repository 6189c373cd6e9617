package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	urfave "github.com/urfave/cli/v2"
)

func manRow() *command {
	return &command{
		name: "man", short: "the manual page", takes: 0,
		long: "Writes it for man(1): lanjobs man | man -l -      or into a folder of manual pages: lanjobs man > lanjobs.1",
		run: func(_ context.Context, c *call) error {
			page, err := manPage(c.world)
			if err != nil {
				return err
			}
			_, err = io.WriteString(c.stdout, page)
			return err
		},
	}
}

// manPage is all commands with their flags, then the topics of help, as a manual page of section 1.
func manPage(w *world) (string, error) {
	t := tree()
	app := newApp(w, t, nil)
	app.Usage, app.Description = t.short, "First steps: lanjobs run job.yaml, lanjobs status, lanjobs help TOPIC ("+strings.Join(topicNames(), ", ")+")."
	describe(app.Commands, t)
	page, err := app.ToManWithSection(1)
	if err != nil {
		return "", fmt.Errorf("write the manual page: %w", err)
	}
	return page, nil
}

// describe gives urfave's commands the texts of ours, which our own help writes.
func describe(cmds []*urfave.Command, g *group) {
	for _, u := range cmds {
		if sub := findGroup(g, u.Name); sub != nil {
			u.Usage = sub.short
			describe(u.Subcommands, sub)
		} else if c := g.find(u.Name); c != nil {
			u.Usage, u.ArgsUsage, u.Description, u.Hidden = c.short, c.operands, c.long, c.hidden
		}
	}
}
