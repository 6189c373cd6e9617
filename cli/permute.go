package cli

import (
	"strconv"
	"strings"

	urfave "github.com/urfave/cli/v2"
)

// permute moves flags in front of the operands at each level of the command line. urfave/cli stops looking for flags at the
// first operand and drops the rest silently: `submit job.yaml --wait` would not wait, with exit 0.
//
// The result is PROGRAM GROUP… LEAF FLAG… -- OPERAND… [-- AFTER…]. The first "--" keeps operands that begin with "-" from being
// read as flags again; a "--" that the person typed stays where it was, so that `run -- CMD` differs from `run FILE`.
// Common flags typed before the command's name are carried to the leaf, which knows them.
//
// help is not nil if help was asked for: the names of the commands that it is about. urfave/cli has its own idea of --help
// (`submit job.yaml --help` is "No help topic for job.yaml", exit 3) and never gets to see it.
func permute(app *urfave.App, args []string) (words, help []string) {
	if len(args) == 0 {
		return args, nil
	}
	out := []string{args[0]}
	level, flags := app.Commands, app.Flags
	path, carried, asked := []string{}, []string(nil), false
	common := commonFlags(^takes(0))
	for i := 1; i < len(args); {
		word := args[i]
		switch {
		case word == "--":
			return append(out, args[i:]...), ifAsked(asked, path)
		case isFlag(word):
			f := findFlag(flags, word)
			to := &out
			if f == nil {
				if f = findFlag(common, word); f != nil {
					to = &carried
				}
			}
			asked = asked || isHelp(f)
			n := flagWords(f, word)
			*to = append(*to, args[i:min(i+n, len(args))]...)
			i += n
		default:
			cmd := findCommand(level, word)
			if cmd == nil {
				return append(out, args[i:]...), ifAsked(asked, path)
			}
			out, path = append(out, word), append(path, word)
			if len(cmd.Subcommands) == 0 {
				leaf, leafAsked := permuteLeaf(cmd.Flags, withoutPlace(cmd.Flags, carried), args[i+1:])
				return append(out, leaf...), ifAsked(asked || leafAsked, path)
			}
			level, flags = cmd.Subcommands, cmd.Flags
			i++
		}
	}
	return out, ifAsked(asked, path)
}

// withoutPlace leaves out of the flags before a command's name those that say which node is meant, where the command asks none:
// whoever has "lanjobs --data-dir DIR" as an alias can ask for help with it. What would change what a command does is never dropped.
func withoutPlace(known []urfave.Flag, carried []string) (out []string) {
	common := commonFlags(^takes(0))
	for i := 0; i < len(carried); {
		f := findFlag(common, carried[i])
		n := min(flagWords(f, carried[i]), len(carried)-i)
		if name := f.Names()[0]; name != "data-dir" && name != "cluster" || findFlag(known, carried[i]) != nil {
			out = append(out, carried[i:i+n]...)
		}
		i += n
	}
	return out
}

func ifAsked(asked bool, path []string) []string {
	if asked {
		return path
	}
	return nil
}

func isHelp(f urfave.Flag) bool { return f != nil && f.Names()[0] == "help" }

// permuteLeaf sorts the words of one leaf command.
func permuteLeaf(known []urfave.Flag, flags, words []string) (out []string, help bool) {
	var operands, after []string
	for i := 0; i < len(words); {
		word := words[i]
		if word == "--" {
			after = words[i:]
			break
		}
		if !isFlag(word) {
			operands = append(operands, word)
			i++
			continue
		}
		f := findFlag(known, word)
		help = help || isHelp(f)
		n := flagWords(f, word)
		if i+n > len(words) {
			// The last flag lacks its value. Nothing may follow it, or it would take that.
			return append(flags, words[i:]...), help
		}
		flags = append(flags, words[i:i+n]...)
		i += n
	}
	out = append(flags, "--")
	out = append(out, operands...)
	return append(out, after...), help
}

// isFlag tells a flag from an operand: "-" is standard input, -5 is a number.
func isFlag(word string) bool {
	if len(word) < 2 || word[0] != '-' {
		return false
	}
	_, err := strconv.ParseFloat(word, 64)
	return err != nil
}

func findFlag(flags []urfave.Flag, word string) urfave.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, f := range flags {
		for _, n := range f.Names() {
			if n == name {
				return f
			}
		}
	}
	return nil
}

// flagWords is how many words a flag takes. An unknown one takes one: it will be refused whatever follows.
func flagWords(f urfave.Flag, word string) int {
	if f == nil || strings.Contains(word, "=") {
		return 1
	}
	if d, ok := f.(urfave.DocGenerationFlag); ok && d.TakesValue() {
		return 2
	}
	return 1
}

func findCommand(commands []*urfave.Command, name string) *urfave.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}
