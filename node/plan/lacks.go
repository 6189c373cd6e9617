package plan

import (
	"maps"
	"slices"
	"strings"
	"time"

	"lanjobs/task"
)

// LackFor is for how long a node is left out for stages that need a path or program it was found not to have.
const LackFor = 30 * time.Second

// Lacks is what nodes were found not to have: an attempt that needs a path, program or shell that is not there is given back, neither
// failed nor lost, and its node gets nothing that needs the same for LackFor. It is a leader's memory of one term, on its
// Awake clock; a new leader finds out anew.
type Lacks struct {
	now   time.Duration
	until map[lack]time.Duration
}

type lack struct {
	node task.NodeID
	what string // the path or program
}

// Note remembers what an attempt was given back for. message is what its node said; of the stage's paths and programs the
// longest that stands in it is meant, or all of them if none does.
func (l *Lacks) Note(node task.NodeID, spec *task.StageSpec, message string, awake time.Duration) {
	if l.until == nil {
		l.until = map[lack]time.Duration{}
	}
	found := ""
	for _, what := range needs(spec) {
		if len(what) > len(found) && strings.Contains(message, what) {
			found = what
		}
	}
	for _, what := range needs(spec) {
		if found == "" || what == found {
			l.until[lack{node, what}] = awake + LackFor
		}
	}
}

// Pass forgets what is over at a moment of the Awake clock, and tells when the next of the others is: false = there is none.
func (l *Lacks) Pass(awake time.Duration) (next time.Duration, ok bool) {
	l.now = awake
	for k, until := range l.until {
		switch {
		case until <= awake:
			delete(l.until, k)
		case !ok || until < next:
			next, ok = until, true
		}
	}
	return next, ok
}

// of is what a stage needs that a node was found not to have, "" if there is nothing.
func (l *Lacks) of(spec *task.StageSpec, node task.NodeID) string {
	if l == nil || len(l.until) == 0 {
		return ""
	}
	for _, what := range needs(spec) {
		if until, ok := l.until[lack{node, what}]; ok && until > l.now {
			return what
		}
	}
	return ""
}

// needs is all paths and programs of a stage, the user that it runs as, and the shell that it names.
func needs(spec *task.StageSpec) []string {
	if shell := spec.AsksShell(); spec.User != "" || shell != "" {
		out := slices.Concat(spec.Paths, spec.Programs)
		if spec.User != "" {
			out = append(out, "user "+spec.User)
		}
		if shell != "" {
			out = append(out, "shell "+shell)
		}
		return out
	}
	if len(spec.Programs) == 0 {
		return spec.Paths
	}
	return append(spec.Paths[:len(spec.Paths):len(spec.Paths)], spec.Programs...)
}

// Clone is a copy for who looks at it while plans go on.
func (l *Lacks) Clone() *Lacks { return &Lacks{now: l.now, until: maps.Clone(l.until)} }
