package task

// Event is one line of the audit log (R37): something that a committed entry did. (Index, N) orders events and names each
// one for good: every replica makes the same ones.
type Event struct {
	Index   uint64    `json:"index"`
	N       int       `json:"n"`
	Clock   Instant   `json:"clock"`          // cluster clock, milliseconds led
	Wall    int64     `json:"wall,omitempty"` // leader's wall clock, Unix milliseconds; for display
	Kind    EventKind `json:"event"`
	Job     JobID     `json:"job,omitempty"`
	JobName string    `json:"job_name,omitempty"`
	Stage   string    `json:"stage,omitempty"`
	// Shards is set for events about shards: "9", or "0-63" for several changed by one command on one node.
	Shards      string      `json:"shards,omitempty"`
	Attempt     int         `json:"attempt,omitempty"`
	Execution   ExecutionID `json:"execution,omitempty"`
	Token       Token       `json:"token,omitempty"`      // of the first shard; tokens of a group follow each other
	LastToken   Token       `json:"last_token,omitempty"` // of the last shard of a group
	Node        NodeID      `json:"node,omitempty"`
	NodeName    string      `json:"node_name,omitempty"`
	TTL         Millis      `json:"ttl_ms,omitempty"`
	Expiry      Instant     `json:"expiry,omitempty"` // lease end on the cluster clock
	LastRenewal Instant     `json:"last_renewal,omitempty"`
	Load        *Load       `json:"load,omitempty"`
	Seq         uint64      `json:"checkpoint,omitempty"`
	Bytes       int         `json:"bytes,omitempty"`
	From        string      `json:"from,omitempty"` // old state
	To          string      `json:"to,omitempty"`   // new state
	Reason      string      `json:"reason,omitempty"`
	By          string      `json:"by,omitempty"` // who asked, for acts of a person
}

// EventKind names what happened: noun.verb.
type EventKind string

// The events.
const (
	EventClusterInit   EventKind = "cluster.init"
	EventLeaderElected EventKind = "leader.elected"
	EventNodeJoin      EventKind = "node.join" // admitted: certificate issued
	EventNodeRegister  EventKind = "node.register"
	EventNodeOffline   EventKind = "node.offline"
	EventNodeOnline    EventKind = "node.online"
	EventNodeDrain     EventKind = "node.drain"
	EventNodeResume    EventKind = "node.resume"
	EventNodeLeave     EventKind = "node.leave"
	EventNodeSleep     EventKind = "node.sleep"    // it said so, before it slept
	EventNodeUnstable  EventKind = "node.unstable" // it crashed UnstableAfter times in a row: nothing new for it
	EventNodeClear     EventKind = "node.clear"    // a person lifted that
	EventNodeRole      EventKind = "node.role"     // a person said whether it votes
	EventNodeRemove    EventKind = "node.remove"
	EventTokenCreate   EventKind = "token.create"
	EventTokenUse      EventKind = "token.use"
	EventTokenRemove   EventKind = "token.remove"
	EventClientAdmit   EventKind = "client.admit"
	EventClientRemove  EventKind = "client.remove"
	EventJobSubmit     EventKind = "job.submit"
	EventJobState      EventKind = "job.state"
	EventJobCancel     EventKind = "job.cancel"
	EventJobRetry      EventKind = "job.retry"
	EventJobCollect    EventKind = "job.collect" // removed by its retention rule
	EventJobPause      EventKind = "job.pause"
	EventJobResume     EventKind = "job.resume"
	EventJobPriority   EventKind = "job.priority"
	EventJobExpire     EventKind = "job.expire" // start_within or deadline passed
	EventStageState    EventKind = "stage.state"
	EventLeaseGrant    EventKind = "lease.grant"
	EventLeaseConfirm  EventKind = "lease.confirm" // first renewal: assigned -> running
	EventLeaseRenew    EventKind = "lease.renew"
	EventLeaseExpire   EventKind = "lease.expire"
	EventLeaseRelease  EventKind = "lease.release"
	EventLeaseRefuse   EventKind = "lease.refuse" // a stale token: nothing changed
	EventStop          EventKind = "attempt.stop" // the holder is told to stop
	EventCheckpoint    EventKind = "checkpoint.save"
	EventOutput        EventKind = "output.put"
	EventState         EventKind = "state.put"
	EventShardState    EventKind = "shard.state"
	EventShardSkip     EventKind = "shard.skip" // its shard_key had succeeded before
	EventShardSplit    EventKind = "shard.split"
	EventShardCursor   EventKind = "shard.cursor" // the task said up to where it has begun its range

	EventScheduleSet    EventKind = "schedule.set" // made or changed
	EventScheduleFire   EventKind = "schedule.fire"
	EventScheduleSkip   EventKind = "schedule.skip"  // an occurrence without a job, and why
	EventScheduleQueue  EventKind = "schedule.queue" // overlap: queue; the occurrence waits for the running job
	EventSchedulePause  EventKind = "schedule.pause"
	EventScheduleResume EventKind = "schedule.resume"
	EventScheduleRemove EventKind = "schedule.remove"
	EventQueueSet       EventKind = "queue.set" // made or changed, paused and resumed included
	EventQueueRemove    EventKind = "queue.remove"
)

// EventKinds are all of them.
var EventKinds = []EventKind{
	EventClusterInit, EventLeaderElected, EventNodeJoin, EventNodeRegister, EventNodeOffline, EventNodeOnline,
	EventNodeDrain, EventNodeResume, EventNodeLeave, EventNodeSleep, EventNodeUnstable, EventNodeClear, EventNodeRole,
	EventNodeRemove, EventTokenCreate, EventTokenUse, EventTokenRemove, EventClientAdmit, EventClientRemove,
	EventJobSubmit, EventJobState, EventJobCancel, EventJobRetry, EventJobCollect, EventJobPause, EventJobResume,
	EventJobPriority, EventJobExpire, EventStageState, EventLeaseGrant, EventLeaseConfirm, EventLeaseRenew,
	EventLeaseExpire, EventLeaseRelease, EventLeaseRefuse, EventStop, EventCheckpoint, EventOutput, EventState,
	EventShardState, EventShardSkip, EventShardSplit, EventShardCursor, EventScheduleSet, EventScheduleFire,
	EventScheduleSkip, EventScheduleQueue, EventSchedulePause, EventScheduleResume, EventScheduleRemove, EventQueueSet,
	EventQueueRemove,
}
