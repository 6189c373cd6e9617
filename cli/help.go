package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	urfave "github.com/urfave/cli/v2"
)

func helpRow() *command {
	return &command{
		name: "help", operands: "[TOPIC|COMMAND…]", max: -1, short: "this list, a command, or a topic",
		long: "Topics: " + strings.Join(topicNames(), ", ") + ".",
		run: func(_ context.Context, c *call) error {
			text, err := helpOn(c.path, c.args)
			if err != nil {
				return err
			}
			_, err = io.WriteString(c.stdout, c.out().text(text))
			return err
		},
	}
}

// helpOn finds the text for "help", "help node drain" or "help tasks".
func helpOn(path string, words []string) (string, error) {
	g, at := tree(), "lanjobs"
	for i, word := range words {
		if sub := findGroup(g, word); sub != nil {
			g, at = sub, at+" "+word
			continue
		}
		if cmd := g.find(word); cmd != nil {
			return commandHelp(cmd, at+" "+word), nil
		}
		if i == 0 && len(words) == 1 {
			if text, ok := topic(word); ok {
				return text, nil
			}
		}
		names := topicNames()
		for _, cmd := range tree().commands {
			names = append(names, cmd.name)
		}
		hint := ""
		if near := nearest(names, word); near != "" {
			hint = fmt.Sprintf(" Did you mean %q?", near)
		}
		return "", usage(path, "nothing on %q.%s Topics: %s; commands: lanjobs help", word, hint, strings.Join(topicNames(), ", "))
	}
	return groupHelp(g, at), nil
}

func findGroup(g *group, name string) *group {
	for _, sub := range g.groups {
		if sub.name == name {
			return sub
		}
	}
	return nil
}

func (g *group) find(name string) *command {
	for _, cmd := range g.commands {
		if cmd.name == name {
			return cmd
		}
	}
	return nil
}

// groupHelp lists what a group has.
func groupHelp(g *group, path string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n", path, g.short)
	if path == g.name {
		b.WriteString(rootHelp(g))
		return b.String()
	}
	w := columns(&b)
	for _, sub := range g.groups {
		fmt.Fprintf(w, "  %s %s …\t%s\n", path, sub.name, sub.short)
	}
	for _, cmd := range g.commands {
		if !cmd.hidden {
			fmt.Fprintf(w, "  %s\t%s\n", strings.TrimSpace(path+" "+cmd.name+" "+cmd.operands), cmd.short)
		}
	}
	w.Flush()
	fmt.Fprintf(&b, "\nMore on one: %s COMMAND --help\n", path)
	return b.String()
}

func rootHelp(g *group) string {
	var b strings.Builder
	b.WriteString("First steps: lanjobs run job.yaml · lanjobs run -- COMMAND · lanjobs status\n")
	for _, s := range sections {
		fmt.Fprintf(&b, "\n%s\n", s.title)
		for _, name := range s.names {
			if sub := findGroup(g, name); sub != nil {
				entry(&b, name+" "+strings.Join(sub.verbs(), "|"), sub.short)
				continue
			}
			cmd := g.find(name)
			entry(&b, strings.TrimSpace(name+" "+cmd.operands), cmd.short)
		}
	}
	fmt.Fprintf(&b, "\nOn a command: lanjobs COMMAND --help   On a topic: lanjobs help TOPIC\nTopics: %s\n", strings.Join(topicNames(), ", "))
	return b.String()
}

// besideCommand is where the texts of the program's help begin: with the longest of them, a line fits into 80 columns or nearly so.
const besideCommand = 29

// entry is one line of the program's help, or two if the command has no room beside its text.
func entry(b *strings.Builder, name, text string) {
	if len([]rune(name)) > besideCommand-4 {
		fmt.Fprintf(b, "  %s\n", name)
		name = ""
	}
	fmt.Fprintf(b, "  %-*s%s\n", besideCommand-2, name, text)
}

func (g *group) verbs() []string {
	var out []string
	for _, cmd := range g.commands {
		if !cmd.hidden {
			out = append(out, cmd.name)
		}
	}
	for _, sub := range g.groups {
		out = append(out, sub.name)
	}
	return out
}

// commandHelp is everything about one command.
func commandHelp(cmd *command, path string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\nUsage: %s\n", path, cmd.short, usageLine(cmd, path))
	if cmd.long != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.Trim(cmd.long, "\n"))
	}
	if len(cmd.flags) > 0 {
		b.WriteString("\nFlags:\n" + flagList(cmd.flags))
	}
	b.WriteString("\nCommon flags, also as variables:\n" + flagList(commonFlags(cmd.takes)))
	return b.String()
}

func flagList(flags []urfave.Flag) string {
	var b strings.Builder
	w := columns(&b)
	for _, f := range flags {
		d, ok := f.(urfave.DocGenerationFlag)
		if v, isVisible := f.(urfave.VisibleFlag); !ok || isVisible && !v.IsVisible() {
			continue
		}
		value, text := placeholder(d.GetUsage())
		var names []string
		for _, n := range f.Names() {
			names = append(names, dashed(n))
		}
		left := strings.Join(names, ", ")
		if d.TakesValue() {
			left += " " + orElse(value, "VALUE")
		}
		if vars := d.GetEnvVars(); len(vars) > 0 {
			text += "\t" + vars[0]
		}
		fmt.Fprintf(w, "  %s\t%s\n", left, text)
	}
	w.Flush()
	return b.String()
}

// placeholder takes the name of a flag's value, in back quotes, out of its usage.
func placeholder(text string) (value, rest string) {
	before, after, ok := strings.Cut(text, "`")
	if !ok {
		return "", text
	}
	value, after, _ = strings.Cut(after, "`")
	return value, before + value + after
}

func columns(b *strings.Builder) *tabwriter.Writer { return tabwriter.NewWriter(b, 0, 0, 2, ' ', 0) }
