package api

import (
	"fmt"
	"slices"
	"strings"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

// node is one machine.
func (v *view) node(n *fsm.Node) task.NodeView {
	id := n.Info.ID
	info := n.Labelled()
	m := v.members[id]
	out := task.NodeView{ID: id, Name: nodeName(n), Role: string(v.role(n)), State: v.nodeState(n), Since: wallTime(n.Since), OS: n.Info.OS, Arch: n.Info.Arch,
		CPUs: n.Info.CPUs, Slots: n.Info.Slots, Version: n.Info.Version, Limits: n.Info.Limits, Labels: slices.Clone(info.Labels), Running: v.Held(id),
		Addresses: slices.Clone(m.Addresses), Refusal: m.Refusal}
	if seen, ok := v.seen(id); ok {
		ago := seen.Ago.Seconds()
		load := seen.Load
		out.SeenSeconds, out.Load = &ago, &load
	} else if m.Away > 0 && n.Gone == "" {
		away := m.Away.Seconds()
		out.SeenSeconds = &away
	}
	switch n.Care.Seat {
	case fsm.NodePromote:
		out.Seat = "promoted"
	case fsm.NodeDemote:
		out.Seat = "demoted"
	}
	out.Note = v.nodeNote(n)
	return out
}

// role is a machine's part in Raft. A leader of yesterday, in a copy that nobody leads, is a voter.
func (v *view) role(n *fsm.Node) Role {
	m, known := v.members[n.Info.ID]
	switch {
	case n.Info.ID == v.leader && n.Gone == "":
		return RoleLeader
	case !known || n.Gone != "":
		return RoleWorker
	case m.Role == RoleLeader:
		return RoleVoter
	}
	return m.Role
}

// Names of a machine's states.
const (
	nodeReady    = "ready"
	nodeSilent   = "silent"
	nodeUnstable = "unstable"
	nodeDraining = "draining"
	nodeLeft     = "left"
)

func (v *view) nodeState(n *fsm.Node) string {
	switch {
	case n.Gone != "":
		return nodeLeft
	case v.silent(n):
		return nodeSilent
	case n.Care.Unstable:
		return nodeUnstable
	case n.Draining:
		return nodeDraining
	}
	return nodeReady
}

func (v *view) nodeNote(n *fsm.Node) string {
	held := v.Held(n.Info.ID)
	switch {
	case n.Gone == fsm.NodeRemove:
		return "was removed"
	case n.Gone != "":
		return "has left"
	case n.Incarnation == 0:
		return "was admitted, has not started yet"
	case v.silent(n):
		return v.silentNote(n, held)
	case n.Care.Unstable:
		return fmt.Sprintf("crashed %d times in a row; nothing new until: lanjobs node clear %s", plan.Crashed(n), nodeName(n))
	case n.Draining && held > 0 && n.DrainUntil > v.Clock:
		return "stops what runs in " + shortMillis(n.DrainUntil.Sub(v.Clock))
	case n.Draining && held > 0:
		return "stops what runs"
	case n.Draining:
		return "empty: it may be switched off"
	}
	if f := v.failing(n.Info.ID); f.Flagged() {
		return f.String()
	}
	return ""
}

// silentNote is what a person may want to know of a machine that does not answer.
func (v *view) silentNote(n *fsm.Node, held int) string {
	var parts []string
	if n.Care.Unstable {
		parts = append(parts, fmt.Sprintf("crashed %d times in a row", plan.Crashed(n)))
	}
	if sleeper(n) {
		parts = append(parts, "asleep?")
	}
	switch {
	case held == 1:
		parts = append(parts, "its lease ends in "+shortMillis(v.longest(n)))
	case held > 1:
		parts = append(parts, fmt.Sprintf("its %d leases end within %s", held, shortMillis(v.longest(n))))
	}
	return strings.Join(parts, ", ")
}

// longest is when the last lease of a node ends.
func (v *view) longest(n *fsm.Node) (left task.Millis) {
	v.LeasesOf(n.Info.ID, func(l *fsm.Lease) { left = max(left, v.LeaseDue(l).Sub(v.Clock)) })
	return left
}
