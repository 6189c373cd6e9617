package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"
)

// command is one row of the tree: what may be typed, and what it does.
type command struct {
	name     string
	operands string // as usage shows them: "JOB…"
	short    string // one line in lists
	long     string // the rest of its help
	min, max int    // how many operands; max < 0: any number
	line     bool   // what stands after "--" is a command line of its own
	takes    takes  // which common flags
	flags    []urfave.Flag
	hidden   bool
	run      func(ctx context.Context, c *call) error
}

// group is a noun with verbs, or the program itself.
type group struct {
	name, short string
	groups      []*group
	commands    []*command
}

// call is one use of a command.
type call struct {
	*world
	cmd   *command
	gone  context.Context // ends with what the command may take; see interruptible
	stdin io.Reader
	path  string // "lanjobs node drain"
	opt   options
	args  []string // operands
	after []string // what stood after "--", of a command with line
	dash  bool     // "--" was there
	// byService: startNode had the service manager start the node.
	byService bool
	flags     *urfave.Context
	onWay     *way // see theWay
}

// runFunc does what a parsed command line asks. Tests put their own in its place.
type runFunc func(ctx context.Context, c *call) error

// newApp makes the parser. urfave/cli does the parsing and nothing else: its own help, exits and texts break the rules of this
// package (exit 3 for an unknown command, a file name taken for a help topic, help on standard output with an error).
func newApp(w *world, t *group, do runFunc) *urfave.App {
	return &urfave.App{
		Name:                      t.name,
		Flags:                     []urfave.Flag{helpFlag(), versionFlag()},
		HideHelp:                  true,
		HideVersion:               true,
		DisableSliceFlagSeparator: true, // a value may hold commas
		Reader:                    w.stdin,
		Writer:                    io.Discard,
		ErrWriter:                 io.Discard,
		ExitErrHandler:            func(*urfave.Context, error) {}, // report exits, in one place
		OnUsageError:              usageFault(t.name),
		Action:                    groupAction(w, t, t.name),
		Commands:                  children(w, t, t.name, do),
	}
}

func children(w *world, g *group, path string, do runFunc) []*urfave.Command {
	var out []*urfave.Command
	for _, sub := range g.groups {
		full := path + " " + sub.name
		out = append(out, &urfave.Command{
			Name: sub.name, HideHelp: true, HideHelpCommand: true,
			Flags:        []urfave.Flag{helpFlag()},
			OnUsageError: usageFault(full),
			Action:       groupAction(w, sub, full),
			Subcommands:  children(w, sub, full, do),
		})
	}
	for _, cmd := range g.commands {
		full := path + " " + cmd.name
		out = append(out, &urfave.Command{
			Name: cmd.name, HideHelp: true, HideHelpCommand: true,
			Flags:        cmd.allFlags(),
			OnUsageError: usageFault(full),
			Action:       leafAction(w, cmd, full, do),
		})
	}
	return out
}

// leafAction turns what was parsed into a call.
func leafAction(w *world, cmd *command, path string, do runFunc) urfave.ActionFunc {
	return func(u *urfave.Context) error {
		c := &call{world: w, cmd: cmd, path: path, flags: u}
		c.interruptible(u.Context)
		c.args, c.after, c.dash = operands(cmd, u.Args().Slice())
		var err error
		if name := emptyFlag(cmd, u); name != "" && !strings.HasPrefix(path, "lanjobs task") {
			return usage(path, "%s is empty (an unset variable?). All flags: %s --help", dashed(name), path)
		}
		if c.opt, err = readOptions(u); err != nil {
			return usage(path, "%v", err)
		}
		if err := c.countOperands(); err != nil {
			return err
		}
		return do(u.Context, c)
	}
}

// emptyFlag names a flag that was typed without anything in it: as if it were not there, --job "" would be all jobs, and --data-dir ""
// another node. Some take "" as a value, and say so in their help.
func emptyFlag(cmd *command, u *urfave.Context) string {
	typed := u.LocalFlagNames()
	for _, f := range cmd.allFlags() {
		s, ok := f.(*urfave.StringFlag)
		emptied := ok && slices.ContainsFunc(s.EnvVars, func(name string) bool { v, is := os.LookupEnv(name); return is && v == "" })
		if ok && u.String(s.Name) == "" && !emptied && !strings.Contains(s.Usage, `""`) && slices.Contains(typed, s.Name) {
			return s.Name
		}
	}
	return ""
}

// operands takes apart what permute left: the operands, and for a command with a command line what stood after "--".
func operands(cmd *command, words []string) (before, after []string, dash bool) {
	for i, word := range words {
		if word != "--" {
			continue
		}
		if cmd.line {
			return words[:i], words[i+1:], true
		}
		return append(append([]string{}, words[:i]...), words[i+1:]...), nil, true
	}
	return words, nil, false
}

var operandNames = regexp.MustCompile(`\b[A-Z]{2,}(\.[A-Z]+)?|bash\|zsh\|fish\|pwsh`)

func (c *call) countOperands() error {
	n := len(c.args)
	switch {
	case n < c.cmd.min:
		return usage(c.path, "%s is missing. Usage: %s", missing(c.cmd.operands, n), usageLine(c.cmd, c.path))
	case n > 0 && slices.Contains(c.args, "") && !c.cmd.line && !strings.HasPrefix(c.path, "lanjobs task"):
		return usage(c.path, "an operand is empty (an unset variable?). Usage: %s", usageLine(c.cmd, c.path))
	case c.cmd.max >= 0 && n > c.cmd.max:
		return usage(c.path, "%q is too much. Usage: %s", c.args[c.cmd.max], usageLine(c.cmd, c.path))
	}
	return nil
}

// missing names the n-th operand of "NODE KEY=VALUE…".
func missing(operands string, n int) string {
	words := operandNames.FindAllString(operands, -1)
	if len(words) == 0 {
		return "an operand"
	}
	return words[min(n, len(words)-1)]
}

// groupAction answers a group named without a known verb, and the program named alone.
func groupAction(w *world, g *group, path string) urfave.ActionFunc {
	return func(u *urfave.Context) error {
		root := path == g.name
		switch {
		case root && u.Bool("version"):
			_, err := fmt.Fprintln(w.stdout, "lanjobs "+w.version)
			return err
		case u.Args().Present():
			return unknownCommand(g, path, u.Args().First())
		case root:
			_, err := io.WriteString(w.stdout, groupHelp(g, path))
			return err
		}
		return usage(path, "say what to do.\n%s", strings.TrimRight(groupHelp(g, path), "\n"))
	}
}

func unknownCommand(g *group, path, word string) error {
	var names []string
	for _, s := range g.groups {
		names = append(names, s.name)
	}
	for _, c := range g.commands {
		if !c.hidden {
			names = append(names, c.name)
		}
	}
	hint := ""
	if near := nearest(names, word); near != "" {
		hint = fmt.Sprintf(" Did you mean %q?", near)
	}
	return usage(path, "no command %q.%s All commands: %s --help", word, hint, path)
}
