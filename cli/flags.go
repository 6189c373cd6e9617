package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
	"lanjobs/task/jobfile"
)

// takes is the set of common flags that mean something to a command.
type takes uint

const (
	takesNode     takes = 1 << iota // --data-dir, --cluster, --timeout: it asks a node
	takesOutput                     // -o
	takesWatch                      // -w
	takesWait                       // --wait
	takesSelector                   // -l
	takesYes                        // -y
	takesDryRun                     // -n
	takesDataDir                    // --data-dir alone: it is about a node that does not run
)

// options are the common flags as given.
type options struct {
	output         string // table, wide, json, yaml, name
	watch, wait    bool
	timeout        time.Duration
	selector       []task.Requirement
	yes, dryRun    bool
	color          string
	cluster        string
	dataDir        string
	quiet          bool
	outputWasGiven bool
}

var (
	outputs = []string{"table", "wide", "json", "yaml", "name"}
	colors  = []string{"auto", "always", "never"}
)

// commonFlags are the flags that mean the same everywhere; each leaf command gets those it takes, since urfave/cli refuses a
// program's flags after the command's name. Their variables: LANJOBS_FORMAT and not LANJOBS_OUTPUT, which is a file's name in
// every running task.
func commonFlags(t takes) []urfave.Flag {
	type row struct {
		when takes
		flag urfave.Flag
	}
	rows := []row{
		{takesOutput, &urfave.StringFlag{Name: "output", Aliases: []string{"o"}, EnvVars: env("FORMAT"), Usage: "`FORMAT`: table, wide, json, yaml, name"}},
		{takesWatch, &urfave.BoolFlag{Name: "watch", Aliases: []string{"w"}, EnvVars: env("WATCH"), Usage: "go on showing changes"}},
		{takesWait, &urfave.BoolFlag{Name: "wait", EnvVars: env("WAIT"), Usage: "wait for the end"}},
		{takesNode | takesWait, lengthFlag("timeout", 0, "leave after `TIME` (30s, 5m) with exit 8", env("TIMEOUT")...)},
		{takesSelector, &urfave.StringFlag{Name: "selector", Aliases: []string{"l"}, EnvVars: env("SELECTOR"), Usage: "only those with these `LABELS`: group=encoders,os!=windows"}},
		{takesYes, &urfave.BoolFlag{Name: "yes", Aliases: []string{"y"}, EnvVars: env("YES"), Usage: "do not ask"}},
		{takesDryRun, &urfave.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, EnvVars: env("DRY_RUN"), Usage: "check only, change nothing"}},
		{takesNode, &urfave.StringFlag{Name: "cluster", EnvVars: env("CLUSTER"), Usage: "cluster `NAME`: of the node here, else of your login"}},
		{takesNode | takesDataDir, &urfave.StringFlag{Name: "data-dir", EnvVars: env("DATA_DIR"), Usage: "the node that keeps its data in `DIR`"}},
		{^takes(0), &urfave.StringFlag{Name: "color", EnvVars: env("COLOR"), Usage: "`WHEN`: auto, always, never"}},
		{^takes(0), &urfave.BoolFlag{Name: "quiet", Aliases: []string{"q"}, EnvVars: env("QUIET"), Usage: "no hints and progress"}},
		{^takes(0), helpFlag()},
	}
	var out []urfave.Flag
	for _, r := range rows {
		if r.when&t != 0 || r.when == ^takes(0) {
			out = append(out, r.flag)
		}
	}
	return out
}

func env(name string) []string { return []string{"LANJOBS_" + name} }

func helpFlag() urfave.Flag {
	return &urfave.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "this text"}
}

func versionFlag() urfave.Flag { return &urfave.BoolFlag{Name: "version", Usage: "print the version"} }

// allFlags are a command's own flags and the common ones it takes. They are made anew for each use: a flag of urfave/cli
// keeps the value it was given.
func (cmd *command) allFlags() []urfave.Flag {
	return slices.Concat(cmd.flags, commonFlags(cmd.takes))
}

// readOptions reads and checks the common flags.
func readOptions(u *urfave.Context) (options, error) {
	o := options{
		output: u.String("output"), color: u.String("color"),
		watch: u.Bool("watch"), wait: u.Bool("wait"), timeout: u.Duration("timeout"),
		yes: u.Bool("yes"), dryRun: u.Bool("dry-run"), quiet: u.Bool("quiet"),
		cluster: u.String("cluster"), dataDir: u.String("data-dir"),
	}
	o.outputWasGiven = o.output != ""
	var err error
	if o.output, err = oneOf("--output", o.output, outputs); err != nil {
		return o, err
	}
	if o.color, err = oneOf("--color", o.color, colors); err != nil {
		return o, err
	}
	if o.timeout < 0 {
		return o, fmt.Errorf("--timeout %s is negative", o.timeout)
	}
	o.selector, err = parseSelector(u.String("selector"))
	return o, err
}

// oneOf checks a word; none is the first.
func oneOf(flag, word string, words []string) (string, error) {
	if word == "" {
		return words[0], nil
	}
	if slices.Contains(words, word) {
		return word, nil
	}
	hint := ""
	if near := nearest(words, word); near != "" {
		hint = fmt.Sprintf(" Did you mean %q?", near)
	}
	return "", fmt.Errorf("%s %q is none of %s.%s", flag, word, strings.Join(words, ", "), hint)
}

// parseSelector reads "group=encoders,os!=windows,arch in (amd64,arm64),ssd".
func parseSelector(s string) ([]task.Requirement, error) {
	var out []task.Requirement
	for _, part := range splitOutsideParens(s) {
		r, ok := jobfile.ParseRequirement(part)
		if !ok {
			return nil, fmt.Errorf("%q is not a condition: write group=encoders, os!=windows, \"arch in (amd64,arm64)\" or ssd, with commas between", part)
		}
		out = append(out, r)
	}
	return out, nil
}

func splitOutsideParens(s string) []string {
	var out []string
	depth, start := 0, 0
	for i, r := range s {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	if rest := s[start:]; strings.TrimSpace(rest) != "" || start > 0 {
		out = append(out, rest)
	}
	return out
}

// labelled tells whether labels meet a selector.
func labelled(selector []task.Requirement, labels []task.KV) bool {
	sorted := slices.SortedFunc(slices.Values(labels), func(a, b task.KV) int { return strings.Compare(a.Name, b.Name) })
	return len(task.Unmatched(selector, &task.NodeInfo{Labels: sorted})) == 0
}
