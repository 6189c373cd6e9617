package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

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
		Addresses: slices.Clone(m.Addresses), Refusal: m.Refusal, Laptop: sleeper(n), MACs: slices.Clone(n.Info.MACs)}
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
	out.Note, out.Rules = v.nodeNote(n), rulesOf(&n.Info)
	return out
}

// rulesOf is what a machine said of its owner's rules when it registered.
func rulesOf(i *task.NodeInfo) task.RulesView {
	r := task.RulesView{RefuseQueues: append([]string{}, i.Refuses...), RunAs: i.RunAs, AllowUsers: []string{}, Inhibit: cmp.Or(i.Inhibit, task.DefaultInhibit), ReservePercent: max(i.Reserve, 0)}
	if i.Reserve == 0 {
		r.ReservePercent = task.DefaultReserve
	}
	for _, l := range i.Labels {
		if user, is := strings.CutPrefix(l.Name, task.UserLabel); is && l.Value == "true" && user != i.RunAs {
			r.AllowUsers = append(r.AllowUsers, user)
		}
	}
	return r
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
	nodeAsleep   = "asleep" // it said so before it slept
	nodeDraining = "draining"
	nodeLeft     = "left"
)

func (v *view) nodeState(n *fsm.Node) string {
	switch {
	case n.Gone != "":
		return nodeLeft
	case v.asleep(n):
		return nodeAsleep
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
	case v.asleep(n):
		return v.awayNote(n, held, "")
	case v.silent(n) && sleeper(n):
		return v.awayNote(n, held, "asleep?")
	case v.silent(n):
		return v.awayNote(n, held, "")
	case n.Care.Unstable && n.Draining:
		return fmt.Sprintf("crashed %d times in a row; draining, %s", plan.Crashed(n), v.drainNote(n, held))
	case n.Care.Unstable:
		return fmt.Sprintf("crashed %d times in a row; nothing new until: lanjobs node clear %s", plan.Crashed(n), nodeName(n))
	case n.Draining:
		return v.drainNote(n, held)
	case v.members[n.Info.ID].Away > 0: // the table must not look calm beside a sentence that is not
		return fmt.Sprintf("no answer for %s: silent after %s", short(v.members[n.Info.ID].Away), shortMillis(plan.RegistrationTTL))
	case strings.HasPrefix(n.Reason, sleptPrefix) && v.ago(n.Since) < sleptShown:
		return n.Reason
	}
	if f := v.failing[n.Info.ID]; f.Flagged() {
		return f.String()
	}
	return ""
}

// drainNote is how far the drain of a machine is that is here.
func (v *view) drainNote(n *fsm.Node, held int) string {
	switch {
	case held > 0 && n.DrainUntil > v.Clock:
		return "stops what runs in " + shortMillis(n.DrainUntil.Sub(v.Clock))
	case held > 0:
		return "stops what runs"
	}
	return "empty: it may be switched off"
}

// The reason of a node that is back from a sleep begins so (leader.comeBack); it is shown for a day.
const (
	sleptPrefix = "slept "
	sleptShown  = 24 * time.Hour
)

// asleep tells whether a machine said that it goes to sleep, and has not been heard of since. While nobody leads, what this member
// hears counts more.
func (v *view) asleep(n *fsm.Node) bool {
	return !n.Online && n.Reason == task.ReasonAsleep && v.silent(n)
}

// awayNote is what a person may want to know of a machine that does not answer.
func (v *view) awayNote(n *fsm.Node, held int, why string) string {
	var parts []string
	if n.Care.Unstable {
		parts = append(parts, fmt.Sprintf("crashed %d times in a row", plan.Crashed(n)))
	}
	if n.Draining {
		parts = append(parts, nodeDraining)
	}
	if why != "" {
		parts = append(parts, why)
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
