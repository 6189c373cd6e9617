package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lanjobs/task"
)

// alikes gathers what is said of machines, once for all of which the same is said.
type alikes []struct {
	what  string
	names []string
}

func (a *alikes) add(name, what string) {
	for i := range *a {
		if x := &(*a)[i]; x.what == what {
			x.names = append(x.names, name)
			return
		}
	}
	*a = append(*a, struct {
		what  string
		names []string
	}{what, []string{name}})
}

// texts are "nas is full (2/2) (likewise mini-1, pc-win)".
func (a alikes) texts() (out []string) {
	for _, x := range a {
		text := x.names[0] + " " + x.what
		if others := x.names[1:]; len(others) > 0 {
			text += " (likewise " + some(others, maxNamed, ", ") + ")"
		}
		out = append(out, text)
	}
	return out
}

// noShell says that no machine that could run a stage has the shell which it names, as far as they have told when they
// registered; "" if one has.
func (v *view) noShell(spec *task.StageSpec, ms []machine) string {
	shell := spec.AsksShell()
	if shell == "" || !anyFits(ms) {
		return ""
	}
	var have alikes
	for _, m := range ms {
		if n := v.Node(m.id); !unable(m.keeps) && n != nil {
			if slices.Contains(n.Info.Shells, shell) {
				return ""
			}
			have.add(m.name, "has "+cmp.Or(strings.Join(n.Info.Shells, ", "), "none"))
		}
	}
	return fmt.Sprintf("none has the shell %s: %s", shell, some(have.texts(), maxNamed, "; "))
}
