package plan

import "lanjobs/task"

// Kind is a sort of reason why a shard does not run.
type Kind string

// What keeps one machine from taking a shard, in the order of asking: what cannot be at all comes before what will pass. "" is
// nothing: it takes the shard next.
const (
	KindRequire   Kind = "require"     // it does not meet placement.require
	KindRefuses   Kind = "refuses"     // its owner lets it take nothing of the job's queue
	KindTooSmall  Kind = "too_small"   // it has less than the attempt asks for even when nothing runs on it
	KindUnborn    Kind = "not_started" // admitted, never registered
	KindSilent    Kind = "silent"
	KindUnstable  Kind = "unstable" // it crashed several times in a row (R45)
	KindAsleep    Kind = "asleep"   // it said so
	KindDraining  Kind = "draining"
	KindUnheard   Kind = "unheard"   // not since the leader leads: it has not asked for work yet
	KindLacks     Kind = "lacks"     // a path or program was not there a moment ago
	KindLeads     Kind = "leads"     // the leader's own machine runs nothing while another one can (R18)
	KindPinned    Kind = "pinned"    // the shard of a broadcast is another machine's
	KindFailed    Kind = "failed_on" // the shard failed there and waits for another machine
	KindBelongs   Kind = "belongs"   // by the queue's strategy the shard is another machine's
	KindFull      Kind = "full"
	KindResources Kind = "resources" // too little of a resource is left
	KindAsked     Kind = "not_asked" // it has room and has not asked for work at this moment
	KindOther     Kind = "other"     // another machine is taken first
)

// What keeps a shard from every machine.
const (
	KindDone        Kind = "done"
	KindRuns        Kind = "runs"
	KindCancelling  Kind = "cancelling"
	KindStageDone   Kind = "stage_done"
	KindNeeds       Kind = "needs" // its stage waits for another one
	KindBackoff     Kind = "backoff"
	KindJobPaused   Kind = "job_paused"
	KindQueuePaused Kind = "queue_paused"
	KindQueueFull   Kind = "queue_full"
	KindParallelism Kind = "parallelism"
	KindGranting    Kind = "granting" // a grant is on its way
	KindNoMachine   Kind = "no_machine"
)

// Reason is one answer to why a shard does not run (R41). Those with a Node are about that machine, and Text follows its name:
// "is full (2/2)". The others are sentences. Change is what would change it, often a command; "" = only time.
type Reason struct {
	Node   task.NodeID
	Kind   Kind
	Text   string
	Change string
}
