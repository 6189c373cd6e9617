package api

import (
	"fmt"
	"slices"
	"strings"

	"lanjobs/fsm"
	"lanjobs/task"
)

// levels says at which level the cluster works, and who keeps it from the next one: new log entries wait until every member
// can read them, those that sleep too (R47).
func (v *view) levels(out *task.ClusterView) {
	out.Level = v.Members()
	highest := out.Level
	v.present(func(n *fsm.Node) { highest = max(highest, n.Info.Level) })
	if highest == out.Level {
		return
	}
	v.present(func(n *fsm.Node) {
		if n.Incarnation > 0 && max(n.Info.Level, 1) == out.Level {
			out.HeldBackBy = append(out.HeldBackBy, fmt.Sprintf("%s (lanjobs %s)", n.Info.Name, n.Info.Version))
		}
	})
	slices.Sort(out.HeldBackBy)
	out.LevelSentence = fmt.Sprintf("An upgrade is under way: the cluster works at level %d, and what needs %d waits for %s. lanjobs help upgrade", out.Level, highest, strings.Join(out.HeldBackBy, ", "))
}
