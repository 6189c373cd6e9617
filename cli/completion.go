package cli

import (
	"context"
	"embed"
	"io"
	"slices"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
	"lanjobs/transport"
)

//go:embed completion/*
var completionScripts embed.FS

var shells = []string{"bash", "zsh", "fish", "pwsh"}

func completionRow() *command {
	return &command{
		name: "completion", operands: "bash|zsh|fish|pwsh", min: 1, max: 1, short: "script for your shell",
		long: `bash: source <(lanjobs completion bash)      zsh: source <(lanjobs completion zsh)
fish: lanjobs completion fish | source       pwsh: lanjobs completion pwsh | Out-String | Invoke-Expression
Put the line into the file that your shell reads at its start.`,
		run: func(_ context.Context, c *call) error {
			shell, err := oneOf("shell", c.args[0], shells)
			if err != nil {
				return usage(c.path, "%v", err)
			}
			text, err := completionScripts.ReadFile("completion/" + shell)
			if err != nil {
				return err
			}
			_, err = c.stdout.Write(text)
			return err
		},
	}
}

// completeRow is what the scripts ask: the words so far, the last one being typed.
func completeRow() *command {
	return &command{
		name: "__complete", operands: "-- WORD…", max: 0, line: true, hidden: true, takes: takesNode, short: "for the completion scripts",
		run: func(ctx context.Context, c *call) error {
			for _, word := range c.complete(ctx, c.after) {
				if _, err := io.WriteString(c.stdout, word+"\n"); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// completeWithin bounds the wait for live values: nobody waits for a suggestion.
const completeWithin = 300 * time.Millisecond

func (c *call) complete(ctx context.Context, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	typed, before := words[len(words)-1], words[:len(words)-1]
	var out []string
	for _, w := range c.candidates(ctx, before, typed) {
		if strings.HasPrefix(w, typed) {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (c *call) candidates(ctx context.Context, before []string, typed string) []string {
	g, cmd, rest := walk(tree(), before)
	if cmd == nil {
		if strings.HasPrefix(typed, "-") {
			return []string{"--help"}
		}
		names := g.verbs()
		if g.name == "lanjobs" {
			for _, sub := range g.groups {
				names = append(names, sub.name)
			}
		}
		return names
	}
	if slices.Contains(rest, "--") {
		return nil
	}
	if len(before) > 0 {
		if f := findFlag(cmd.allFlags(), before[len(before)-1]); isFlag(before[len(before)-1]) && f != nil && flagWords(f, before[len(before)-1]) == 2 {
			return c.flagValues(ctx, f)
		}
	}
	if strings.HasPrefix(typed, "-") {
		var out []string
		for _, f := range cmd.allFlags() {
			out = append(out, dashed(f.Names()[0]))
		}
		return out
	}
	return c.operandValues(ctx, cmd)
}

// walk follows words down the tree; rest is what follows a command.
func walk(g *group, words []string) (*group, *command, []string) {
	for i, w := range words {
		if isFlag(w) {
			continue
		}
		if sub := findGroup(g, w); sub != nil {
			g = sub
			continue
		}
		if cmd := g.find(w); cmd != nil {
			return g, cmd, words[i+1:]
		}
	}
	return g, nil, nil
}

func (c *call) flagValues(ctx context.Context, f urfave.Flag) []string {
	switch f.Names()[0] {
	case "output":
		return outputs
	case "color":
		return colors
	case "state":
		return jobStates
	case "job":
		return c.liveJobs(ctx)
	case "node", "on":
		return c.liveNodes(ctx)
	case "queue":
		return c.liveQueues(ctx)
	case "name":
		return c.liveJobNames(ctx)
	case "balance":
		return balances()
	case "role":
		return roles
	case "refuse-queue":
		return c.liveQueues(ctx)
	case "cluster":
		return c.loggedInTo()
	}
	return nil
}

func (c *call) operandValues(ctx context.Context, cmd *command) []string {
	switch {
	case cmd.name == "help":
		out := topicNames()
		for _, s := range sections {
			out = append(out, s.names...)
		}
		return out
	case cmd.name == "completion":
		return shells
	case strings.HasPrefix(cmd.operands, "JOB"):
		return c.liveJobs(ctx)
	case strings.HasPrefix(cmd.operands, "SCHEDULE"):
		return c.liveSchedules(ctx)
	case strings.HasPrefix(cmd.operands, "CLIENT"):
		return liveNames(ctx, c, "/v1/clients", func(k transport.ClientView) string { return k.ID })
	case strings.HasPrefix(cmd.operands, "QUEUE"):
		return c.liveQueues(ctx)
	case strings.HasPrefix(strings.Trim(cmd.operands, "["), "NODE"):
		return c.liveNodes(ctx)
	}
	return nil
}

func (c *call) liveJobs(ctx context.Context) []string {
	var l task.List[task.JobView]
	c.live(ctx, "/v1/jobs", &l)
	var out []string
	for _, j := range l.Items {
		out = append(out, string(j.ID), j.Name)
	}
	return out
}

func (c *call) liveNodes(ctx context.Context) []string {
	return liveNames(ctx, c, "/v1/nodes", func(n task.NodeView) string { return n.Name })
}

// liveJobNames are the names of jobs without their ids.
func (c *call) liveJobNames(ctx context.Context) []string {
	return liveNames(ctx, c, "/v1/jobs", func(j task.JobView) string { return j.Name })
}

func (c *call) liveSchedules(ctx context.Context) []string {
	return liveNames(ctx, c, "/v1/schedules", func(s task.ScheduleView) string { return s.Name })
}

func (c *call) liveQueues(ctx context.Context) []string {
	return liveNames(ctx, c, "/v1/queues", func(q task.QueueView) string { return q.Name })
}

// liveNames are the names of what a list of the API has.
func liveNames[T any](ctx context.Context, c *call, path string, name func(T) string) []string {
	var l task.List[T]
	c.live(ctx, path, &l)
	var out []string
	for _, item := range l.Items {
		out = append(out, name(item))
	}
	return out
}

// live asks the node here; without an answer in time there are no suggestions.
func (c *call) live(ctx context.Context, path string, reply any) {
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	_ = c.client().try(ctx, request{method: "GET", path: path}, reply)
}
