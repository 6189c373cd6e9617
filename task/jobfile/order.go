package jobfile

import (
	"slices"

	"lanjobs/task"
)

// inOrder puts each stage after those it needs, else as written: the cluster opens and resets stages in that order. The
// needs are known to exist and to have no cycle.
func inOrder(stages []task.StageSpec) []task.StageSpec {
	out := make([]task.StageSpec, 0, len(stages))
	done := map[string]bool{}
	rest := slices.Clone(stages)
	for len(rest) > 0 {
		i := slices.IndexFunc(rest, func(s task.StageSpec) bool {
			return !slices.ContainsFunc(s.Needs, func(n string) bool { return !done[n] })
		})
		done[rest[i].Name] = true
		out = append(out, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	return out
}
