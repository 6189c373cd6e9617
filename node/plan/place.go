package plan

import (
	"slices"
	"strings"

	"lanjobs/fsm"
	"lanjobs/task"
)

// place is a node that can take work now.
type place struct {
	id   task.NodeID
	node *fsm.Node
	info task.NodeInfo
	free int // assignments it can still take in this plan
	load float64
}

// Place gives grants for what is ready to the nodes that ask for work: jobs by priority, then age; shards in order; each to
// the fitting node with the most room, another one than it failed on where there is one, and never the leader's own
// machine while another machine can run the stage (R18).
func Place(v *View) []fsm.Command {
	places := v.places()
	if len(places) == 0 {
		return nil
	}
	var out []fsm.Command
	v.State.Ready(func(j *fsm.Job) bool {
		for stage := range j.Stages {
			out = append(out, v.placeStage(j, stage, places)...)
		}
		return slices.ContainsFunc(places, func(p *place) bool { return p.free > 0 })
	})
	return out
}

// places lists the nodes with a parked poll, in a fixed order.
func (v *View) places() []*place {
	var out []*place
	for id, p := range v.Nodes {
		n := v.State.Node(id)
		if n == nil || p.Want == 0 || !takesWork(n) {
			continue
		}
		held := v.State.Held(id) - p.Ending + v.Flight.nodes[id]
		free := min(p.Want, n.Info.Slots-held)
		if free > 0 {
			out = append(out, &place{id: id, node: n, info: n.Labelled(), free: free, load: float64(held) / float64(n.Info.Slots)})
		}
	}
	slices.SortFunc(out, func(a, b *place) int { return strings.Compare(string(a.id), string(b.id)) })
	return out
}

func takesWork(n *fsm.Node) bool { return n.Online && !n.Draining && n.Gone == "" && n.Incarnation > 0 }

func (v *View) placeStage(j *fsm.Job, stage int, places []*place) []fsm.Command {
	key := stageKey{j.ID, stage}
	n := j.Grantable(stage)
	if p := j.Spec.Stages[stage].Parallelism; p > 0 {
		n = min(n, p-j.Stages[stage].Active()-v.Flight.stages[key])
	}
	if n <= 0 {
		return nil
	}
	fitting := v.fitting(&j.Spec.Stages[stage], places)
	if len(fitting) == 0 {
		return nil
	}
	grants := make([]*fsm.Grant, len(fitting))
	for shard := j.NextReady(stage, 0); shard >= 0 && n > 0; shard = j.NextReady(stage, shard+1) {
		ref := task.ShardRef{Job: j.ID, Stage: stage, Shard: shard}
		if v.Flight.has(ref) {
			continue
		}
		if !slices.ContainsFunc(fitting, func(p *place) bool { return p.free > 0 }) {
			break
		}
		i := v.choose(j, stage, shard, fitting)
		if i < 0 {
			continue
		}
		p := fitting[i]
		if grants[i] == nil {
			grants[i] = &fsm.Grant{Node: p.id, Incarnation: p.node.Incarnation, Job: j.ID, Stage: stage}
		}
		grants[i].Shards = append(grants[i].Shards, shard)
		p.free--
		p.load += 1 / float64(p.info.Slots)
		n--
	}
	var out []fsm.Command
	for _, g := range grants {
		if g != nil {
			out = append(out, g)
		}
	}
	return out
}

// fitting gives the places that meet a stage's requirements; the leader's own only if no other member does.
func (v *View) fitting(spec *task.StageSpec, places []*place) []*place {
	var out []*place
	for _, p := range places {
		if len(task.Unmatched(spec.Require, &p.info)) == 0 && (p.id != v.Self || !v.othersFit(spec, v.Self)) {
			out = append(out, p)
		}
	}
	return out
}

// othersFit tells whether a machine other than id that is here can run the stage, busy or not.
func (v *View) othersFit(spec *task.StageSpec, except ...task.NodeID) bool {
	for _, n := range v.State.Nodes() {
		if !takesWork(n) || slices.Contains(except, n.Info.ID) || !v.Nodes[n.Info.ID].Heard {
			continue
		}
		info := n.Labelled()
		if len(task.Unmatched(spec.Require, &info)) == 0 {
			return true
		}
	}
	return false
}

// choose gives the index of the place for a shard: the least loaded that it has had no trouble on. If it had some on all that
// are free now, it waits for another machine when its exit code asked for one or it has failed here twice (R27); with no
// other machine it goes back to the same. -1 = wait.
func (v *View) choose(j *fsm.Job, stage, shard int, places []*place) int {
	history := j.Shard(stage, shard).History()
	best, fallback := -1, -1
	for i, p := range places {
		if p.free <= 0 {
			continue
		}
		if !troubled(history, p.id) {
			if best < 0 || p.load < places[best].load {
				best = i
			}
		} else if fallback < 0 || p.load < places[fallback].load {
			fallback = i
		}
	}
	if best >= 0 || fallback < 0 {
		return best
	}
	spec := &j.Spec.Stages[stage]
	var failedOn []task.NodeID
	for _, a := range history {
		if a.Counted {
			failedOn = append(failedOn, a.Node)
		}
	}
	insist := spec.Retry.Judge(history[len(history)-1].Outcome) == task.VerdictElsewhere || failures(history, places[fallback].id) >= 2
	if insist && v.othersFit(spec, append(failedOn, v.Self)...) {
		return -1
	}
	return fallback
}

// troubled tells whether a shard failed on a node, or was lost by it: another one is tried first.
func troubled(history []task.AttemptRecord, node task.NodeID) bool {
	return slices.ContainsFunc(history, func(a task.AttemptRecord) bool {
		end := a.Outcome.End
		return a.Node == node && (a.Counted || end == task.EndLeaseLost || end == task.EndLeaseExpired || end == task.EndNotConfirmed)
	})
}

// failures counts the attempts on a node that used up one of retry.attempts.
func failures(history []task.AttemptRecord, node task.NodeID) int {
	n := 0
	for _, a := range history {
		if a.Counted && a.Node == node {
			n++
		}
	}
	return n
}
