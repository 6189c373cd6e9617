package cli

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	urfave "github.com/urfave/cli/v2"
)

// leaves gives every command of the tree with its path.
func leaves(g *group, path []string) map[string]*command {
	out := map[string]*command{}
	for _, cmd := range g.commands {
		out[strings.Join(append(slices.Clone(path), cmd.name), " ")] = cmd
	}
	for _, sub := range g.groups {
		for name, cmd := range leaves(sub, append(slices.Clone(path), sub.name)) {
			out[name] = cmd
		}
	}
	return out
}

// sampleValue is a value that a flag takes, and how it reads back.
func sampleValue(f urfave.Flag) (value string, read func(*urfave.Context, string) any, want any) {
	switch f.(type) {
	case *urfave.BoolFlag:
		return "", func(u *urfave.Context, n string) any { return u.Bool(n) }, true
	case *urfave.IntFlag:
		return "7", func(u *urfave.Context, n string) any { return u.Int(n) }, 7
	case *urfave.Int64Flag:
		return "7", func(u *urfave.Context, n string) any { return u.Int64(n) }, int64(7)
	case *urfave.Uint64Flag:
		return "7", func(u *urfave.Context, n string) any { return u.Uint64(n) }, uint64(7)
	case *urfave.Float64Flag:
		return "7", func(u *urfave.Context, n string) any { return u.Float64(n) }, 7.0
	case *urfave.GenericFlag:
		return "7s", func(u *urfave.Context, n string) any { return u.Duration(n).String() }, "7s"
	case *urfave.StringSliceFlag:
		return "a=1,2", func(u *urfave.Context, n string) any { return u.StringSlice(n) }, []string{"a=1,2"}
	}
	value = map[string]string{"output": "json", "color": "never", "selector": "a=b", "require": "a=b"}[f.Names()[0]]
	value = orElse(value, "some text")
	return value, func(u *urfave.Context, n string) any { return u.String(n) }, value
}

// TestFlagAtEachPlace: whatever flag of whatever command may stand at any place between the operands, in any of its forms,
// and means the same.
func TestFlagAtEachPlace(t *testing.T) {
	tried := 0
	for path, cmd := range leaves(tree(), nil) {
		n := max(cmd.min, 3)
		if cmd.max >= 0 {
			n = max(cmd.min, min(n, cmd.max))
		}
		operands := []string{"o1", "-", "o3"}[:min(n, 3)]
		var after []string
		if cmd.line {
			after = []string{"--", "prog", "--wait", "-o"}
		}
		for _, f := range cmd.allFlags() {
			if f.Names()[0] == "help" {
				continue
			}
			value, read, want := sampleValue(f)
			for _, name := range f.Names() {
				forms := [][]string{{dashed(name)}, {"-" + name}}
				if value != "" {
					forms = [][]string{{dashed(name), value}, {dashed(name) + "=" + value}, {"-" + name, value}}
				}
				for i, form := range forms {
					first := len(operands) // the place that urfave/cli alone gets wrong
					if i == 0 && name == f.Names()[0] {
						first = 0
					}
					for place := first; place <= len(operands); place++ {
						words := slices.Concat(operands[:place], form, operands[place:], after)
						tried++
						checkPlace(t, path, words, name, operands, after, read, want)
					}
				}
			}
		}
	}
	if tried < 1000 {
		t.Fatalf("only %d command lines were made: the tree is not what it was", tried)
	}
}

func checkPlace(t *testing.T, path string, words []string, flag string, operands, after []string, read func(*urfave.Context, string) any, want any) {
	t.Helper()
	var got *call
	app := newApp(&world{}, tree(), func(_ context.Context, c *call) error { got = c; return nil })
	line := slices.Concat([]string{"lanjobs"}, strings.Fields(path), words)
	permuted, _ := permute(app, line)
	err := app.RunContext(t.Context(), permuted)
	switch {
	case err != nil:
		t.Errorf("%q: %v", line, err)
	case got == nil:
		t.Errorf("%q: the command did not run (%q)", line, permuted)
	case !reflect.DeepEqual(read(got.flags, flag), want):
		t.Errorf("%q: %s is %v, want %v", line, flag, read(got.flags, flag), want)
	case !slices.Equal(got.args, operands):
		t.Errorf("%q: operands %q, want %q", line, got.args, operands)
	case len(after) > 0 && !slices.Equal(got.after, after[1:]):
		t.Errorf("%q: after -- %q, want %q", line, got.after, after[1:])
	}
}

// TestFlagBeforeCommand: common flags also work in front of the command's name, at each level.
func TestFlagBeforeCommand(t *testing.T) {
	for _, line := range []string{"-o json node ls", "node -o json ls", "node ls -o json", "--output=json node ls"} {
		var got *call
		app := newApp(&world{}, tree(), func(_ context.Context, c *call) error { got = c; return nil })
		words, _ := permute(app, append([]string{"lanjobs"}, strings.Fields(line)...))
		if err := app.RunContext(t.Context(), words); err != nil || got == nil || got.opt.output != "json" {
			t.Errorf("%q became %q: %v", line, words, err)
		}
	}
}

func TestPermute(t *testing.T) {
	for _, c := range []struct{ line, want, help string }{
		{"submit a.yaml --wait b.yaml", "submit --wait -- a.yaml b.yaml", ""},
		{"run -- prog --wait", "run -- -- prog --wait", ""},
		{"run --each *.mov -- ffmpeg -i {}", "run --each *.mov -- -- ffmpeg -i {}", ""},
		{"submit -- --wait", "submit -- -- --wait", ""},
		{"task output delta -5", "task output -- delta -5", ""},
		{"task output delta -.5e3", "task output -- delta -.5e3", ""},
		{"logs j --tail", "logs --tail", ""},
		{"logs j --tail 5 -f", "logs --tail 5 -f -- j", ""},
		{"submit --wiat a.yaml", "submit --wiat -- a.yaml", ""},
		{"nonsense --wait a", "nonsense --wait a", ""},
		{"node", "node", ""},
		{"submit a.yaml --help", "", "submit"},
		{"submit a.yaml -h", "", "submit"},
		{"--help node drain", "", "node drain"},
		{"node --help", "", "node"},
		{"cancel --reason --help j1", "cancel --reason --help -- j1", ""},
	} {
		app := newApp(&world{}, tree(), nil)
		words, help := permute(app, append([]string{"lanjobs"}, strings.Fields(c.line)...))
		if got := strings.Join(words[1:], " "); c.want != "" && (got != c.want || help != nil) {
			t.Errorf("%q became %q %q, want %q", c.line, got, help, c.want)
		}
		if c.help != "" && strings.Join(help, " ") != c.help {
			t.Errorf("%q asks for help on %q, want %q", c.line, help, c.help)
		}
	}
}

// TestEveryCommandSaysWhatItIs keeps rows of the tree complete, and names within a level apart.
func TestEveryCommandSaysWhatItIs(t *testing.T) {
	for path, cmd := range leaves(tree(), nil) {
		if cmd.short == "" || cmd.run == nil {
			t.Errorf("%s: no text or no function", path)
		}
		seen := map[string]bool{}
		for _, f := range cmd.allFlags() {
			for _, n := range f.Names() {
				if seen[n] {
					t.Errorf("%s: flag %s twice", path, n)
				}
				seen[n] = true
			}
		}
		if cmd.takes&takesWait != 0 && !seen["timeout"] {
			t.Errorf("%s waits without --timeout", path)
		}
	}
	for _, s := range sections {
		for _, name := range s.names {
			if findGroup(tree(), name) == nil && tree().find(name) == nil {
				t.Errorf("help lists %s, which is not there", name)
			}
		}
	}
}
