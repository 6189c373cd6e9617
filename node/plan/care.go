package plan

import (
	"slices"
	"strings"

	"lanjobs/fsm"
	"lanjobs/task"
)

// Expire gives the leases whose deadline has passed (R8).
func Expire(v *View) []fsm.Command {
	lapsed := v.State.Lapsed(v.Now)
	if len(lapsed) == 0 {
		return nil
	}
	return []fsm.Command{&fsm.Expire{Tokens: lapsed}}
}

// Presences records once that a node has gone silent. That it is back its registration records, with how long it slept.
func Presences(v *View) []fsm.Command {
	var out []fsm.Command
	caring := v.State.Members() >= fsm.LevelCare
	for id, p := range v.Nodes {
		n := v.State.Node(id)
		if n == nil || n.Gone != "" || n.Incarnation == 0 {
			continue
		}
		if n.Online && p.Silent {
			out = append(out, &fsm.SetOnline{Node: id, Reason: "not heard of for 1 minute", Caring: caring})
		}
	}
	slices.SortFunc(out, func(a, b fsm.Command) int {
		return strings.Compare(string(a.(*fsm.SetOnline).Node), string(b.(*fsm.SetOnline).Node))
	})
	return out
}

// maxCollect bounds one plan's collection, so that a batch stays small.
const maxCollect = 200

// Collect gives finished jobs whose retention is over, and the oldest of those that are too many. It may look at every job:
// call it now and then, not at each plan. more tells that there are more than it gave: call it again soon.
func Collect(v *View) (out []fsm.Command, more bool) {
	ids := v.State.CollectableJobs(maxCollect)
	if len(ids) > 0 {
		out = append(out, &fsm.CollectJobs{Jobs: ids})
	}
	return out, len(ids) == maxCollect
}

// ExpireJobs gives the jobs whose start_within or deadline has passed.
func ExpireJobs(v *View) []fsm.Command {
	var out []fsm.Command
	for _, id := range v.State.Overdue(v.Led) {
		if len(out) == maxCollect {
			break // the others come with the next plan
		}
		out = append(out, &fsm.ExpireJob{Job: id})
	}
	return out
}

// Order is why a leased shard must stop, with its grace; ok is false when it may go on.
func Order(s *fsm.State, now task.Instant, l *fsm.Lease) (reason task.StopReason, grace task.Millis, ok bool) {
	j := s.JobBySeq(l.Seq)
	grace = j.Spec.Stages[l.Ref.Stage].Lease.StopGrace
	if j.Cancelling {
		if j.CancelGrace > 0 {
			grace = j.CancelGrace
		}
		return task.StopCancel, grace, true
	}
	if _, stopping := j.Stopping(l.Ref.Stage); stopping {
		return task.StopCancel, grace, true
	}
	if n := s.NodeByPlace(l.Node); n.Draining && n.DrainUntil <= now {
		return task.StopDrain, grace, true
	}
	return "", 0, false
}

// NextDrain is the earliest instant at which a draining node's attempts must stop, if any still waits for it.
func NextDrain(s *fsm.State, now task.Instant) (at task.Instant, ok bool) {
	for _, n := range s.Nodes() {
		if n.Draining && n.DrainUntil > now && s.Held(n.Info.ID) > 0 && (!ok || n.DrainUntil < at) {
			at, ok = n.DrainUntil, true
		}
	}
	return at, ok
}
