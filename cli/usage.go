package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	urfave "github.com/urfave/cli/v2"
)

// usageError is a command line that makes no sense: exit 2, nothing was sent.
type usageError struct{ path, text string }

func (e *usageError) Error() string { return e.path + ": " + e.text }

func usage(path, format string, args ...any) error {
	return &usageError{path, fmt.Sprintf(format, args...)}
}

// usageFault puts the words of package flag into ours.
func usageFault(path string) urfave.OnUsageErrorFunc {
	return func(u *urfave.Context, err error, _ bool) error {
		return usage(path, "%s All flags: %s --help", flagFault(u.Command.Flags, err.Error()), path)
	}
}

var (
	unknownFlag   = regexp.MustCompile(`^flag provided but not defined: -(.*)$`)
	valuelessFlag = regexp.MustCompile(`^flag needs an argument: -(.*)$`)
	badValue      = regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?-([^:]*): (.*)$`)
	badVariable   = regexp.MustCompile(`^could not parse (".*") (?:as (?:bool |int |duration )?value )?from environment variable "([^"]*)"`)
	twoForms      = regexp.MustCompile(`^Cannot use two forms of the same flag: (\S+) (\S+)$`)
)

func flagFault(flags []urfave.Flag, text string) string {
	if m := unknownFlag.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("no flag %s.%s", dashed(m[1]), suggestFlag(flags, m[1]))
	}
	if m := valuelessFlag.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("flag %s needs a value.", dashed(m[1]))
	}
	if m := badValue.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s is not a value for %s: %s.", m[1], dashed(m[2]), wantedValue(flags, m[2], m[3]))
	}
	if m := badVariable.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s is not a value for the variable %s.", m[1], m[2])
	}
	if m := twoForms.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s and %s are the same flag: give it once.", dashed(m[1]), dashed(m[2]))
	}
	return text + "."
}

// wantedValue says what a flag takes, where package flag says only that this is not it.
func wantedValue(flags []urfave.Flag, name, reason string) string {
	if reason != "parse error" && reason != "value out of range" {
		return strings.TrimSuffix(reason, "?")
	}
	switch findFlag(flags, name).(type) {
	case *urfave.BoolFlag:
		return "true or false, or nothing at all"
	case *urfave.Float64Flag:
		return "a number"
	}
	return "a whole number" + map[bool]string{true: " that is not as large"}[reason != "parse error"]
}

func dashed(name string) string {
	if q := strconv.Quote(name); q[1:len(q)-1] != name { // it would move the cursor
		name = q[1 : len(q)-1]
	}
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// suggestFlag says which flag was probably meant, or that short flags stand apart: -fq is read as one name, since reading it
// as -f -q and moving flags around do not go together.
func suggestFlag(flags []urfave.Flag, name string) string {
	var names []string
	short := map[string]bool{}
	for _, f := range flags {
		for _, n := range f.Names() {
			if len(n) > 1 {
				names = append(names, n)
			} else {
				short[n] = true
			}
		}
	}
	if near := nearest(names, name); near != "" {
		return fmt.Sprintf(" Did you mean --%s?", near)
	}
	var apart []string
	for _, r := range name {
		if !short[string(r)] {
			return ""
		}
		apart = append(apart, "-"+string(r))
	}
	return fmt.Sprintf(" Write %s apart.", strings.Join(apart, " "))
}

// usageLine is "lanjobs logs [flags] JOB[/STAGE/N[#K]]".
func usageLine(cmd *command, path string) string {
	line := path
	if len(cmd.flags) > 0 || cmd.takes != 0 {
		line += " [flags]"
	}
	if cmd.operands != "" {
		line += " " + cmd.operands
	}
	return line
}
