package plan

import (
	"lanjobs/fsm"
	"lanjobs/task"
)

// Flight is what has been proposed and not yet applied, so that two batches in flight neither grant the same shard twice nor
// more than a queue, a stage or a machine may have; and where the last plan stopped. A new term begins with an empty one.
type Flight struct {
	grants map[*fsm.Grant]*flown
	shards map[task.ShardRef]struct{}
	stages map[stageKey]int
	jobs   map[task.JobID]int
	queues map[string]int
	nodes  map[task.NodeID]claim

	turns   map[string]task.NodeID // per queue: who got its last shard in turn
	scan    scan
	members []member         // of the last plan, to be used again
	looked  map[stageKey]int // where the search for a shard of its own machine stopped
}

type stageKey struct {
	job   task.JobID
	stage int
}

// flown is what a grant in flight takes, as it was when it was proposed.
type flown struct {
	queue string
	claim claim
}

// NewFlight is empty.
func NewFlight() *Flight {
	return &Flight{grants: map[*fsm.Grant]*flown{}, shards: map[task.ShardRef]struct{}{}, stages: map[stageKey]int{}, jobs: map[task.JobID]int{},
		queues: map[string]int{}, nodes: map[task.NodeID]claim{}, turns: map[string]task.NodeID{}, looked: map[stageKey]int{}}
}

// Add notes a proposed grant of a job. It is known by its pointer.
func (f *Flight) Add(j *fsm.Job, g *fsm.Grant) {
	fl := &flown{}
	if j != nil {
		fl.queue = j.Queue()
		fl.claim = claimOf(&j.Spec.Stages[g.Stage]).times(len(g.Shards))
	}
	f.grants[g] = fl
	for _, s := range g.Shards {
		f.shards[task.ShardRef{Job: g.Job, Stage: g.Stage, Shard: s}] = struct{}{}
	}
	f.change(g, fl, 1)
}

// Remove forgets one whose batch was applied or failed.
func (f *Flight) Remove(g *fsm.Grant) {
	fl := f.grants[g]
	if fl == nil {
		return
	}
	delete(f.grants, g)
	for _, s := range g.Shards {
		delete(f.shards, task.ShardRef{Job: g.Job, Stage: g.Stage, Shard: s})
	}
	f.change(g, fl, -1)
}

func (f *Flight) change(g *fsm.Grant, fl *flown, sign int) {
	n := sign * len(g.Shards)
	count(f.stages, stageKey{g.Job, g.Stage}, n)
	count(f.jobs, g.Job, n)
	count(f.queues, fl.queue, n)
	c := f.nodes[g.Node].plus(fl.claim.times(sign))
	if c == (claim{}) {
		delete(f.nodes, g.Node)
	} else {
		f.nodes[g.Node] = c
	}
}

// count adds to an entry of a map and drops it at 0.
func count[K comparable](m map[K]int, k K, by int) {
	if m[k] += by; m[k] == 0 {
		delete(m, k)
	}
}

func (f *Flight) has(ref task.ShardRef) bool {
	if len(f.shards) == 0 {
		return false
	}
	_, ok := f.shards[ref]
	return ok
}

// More tells whether the last plan stopped before it had looked at all that is ready while there was room: plan again soon.
func (f *Flight) More() bool { return f.scan.more }
