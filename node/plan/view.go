package plan

import (
	"lanjobs/fsm"
	"lanjobs/task"
)

// View is what a leader knows at one moment.
type View struct {
	State  *fsm.State
	Now    task.Instant // the cluster clock that the next batch will have
	Self   task.NodeID  // the leader's own node
	Nodes  map[task.NodeID]Presence
	Flight *Flight
}

// Presence is what the leader's sessions know of a node.
type Presence struct {
	Want   int  // assignments that its parked poll can take
	Ending int  // leases whose reports stand before the decisions of the batch being built
	Silent bool // not heard of for RegistrationTTL; a new leader waits that long before it says so
	Heard  bool // heard of in this term
	Load   task.Load
}

// RegistrationTTL is how long a node may be silent before it is recorded as offline.
const RegistrationTTL = task.Minute

// Flight is what has been proposed and not yet applied, so that two batches in flight do not grant the same shard twice.
type Flight struct {
	shards map[task.ShardRef]struct{}
	stages map[stageKey]int
	nodes  map[task.NodeID]int
}

type stageKey struct {
	job   task.JobID
	stage int
}

// NewFlight is empty.
func NewFlight() *Flight {
	return &Flight{shards: map[task.ShardRef]struct{}{}, stages: map[stageKey]int{}, nodes: map[task.NodeID]int{}}
}

// Add notes a proposed grant.
func (f *Flight) Add(g *fsm.Grant) { f.change(g, 1) }

// Remove forgets one whose batch was applied or failed.
func (f *Flight) Remove(g *fsm.Grant) { f.change(g, -1) }

func (f *Flight) change(g *fsm.Grant, by int) {
	f.stages[stageKey{g.Job, g.Stage}] += by * len(g.Shards)
	if f.stages[stageKey{g.Job, g.Stage}] == 0 {
		delete(f.stages, stageKey{g.Job, g.Stage})
	}
	f.nodes[g.Node] += by * len(g.Shards)
	for _, s := range g.Shards {
		ref := task.ShardRef{Job: g.Job, Stage: g.Stage, Shard: s}
		if by > 0 {
			f.shards[ref] = struct{}{}
		} else {
			delete(f.shards, ref)
		}
	}
}

func (f *Flight) has(ref task.ShardRef) bool { _, ok := f.shards[ref]; return ok }
