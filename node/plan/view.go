package plan

import (
	"lanjobs/fsm"
	"lanjobs/task"
)

// View is what a leader knows at one moment.
type View struct {
	State  *fsm.State
	Now    task.Instant // the cluster clock that the next batch will have
	Led    task.Millis  // the time led that it will have: start_within and deadlines
	Self   task.NodeID  // the leader's own node
	Nodes  map[task.NodeID]Presence
	Flight *Flight
	// Coming are jobs that the entry being built stores, in its order (fsm.State.Preview).
	Coming []*fsm.Job
	// Lacks is what nodes were found not to have; nil = nothing is known.
	Lacks *Lacks
	// Stranger says that nobody's sessions are known here: every node that the ledger has online is taken to be here, and
	// to ask for all it can hold. For explanations by who does not lead; a leader never places so.
	Stranger bool
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
