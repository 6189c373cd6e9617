package fsm

import "lanjobs/task"

// Job is one job. Outside this package it is for reading only.
type Job struct {
	epoch                     uint64
	Seq                       int
	ID                        task.JobID
	Spec                      *Spec
	queue                     *queue // derived; nil if it is gone, which happens to final jobs only
	Request                   task.RequestID
	acts                      []task.RequestID // of the last cancels and retries: a repeat is answered, not done again
	State                     task.JobState
	By                        string
	Submitted, Started, Ended int64 // leader's wall clock, Unix milliseconds; 0 = not yet
	SubmittedLed, EndedLed    task.Millis
	Cancelling                bool
	CancelGrace               task.Millis
	CancelReason              string
	Expired                   bool        // Cancelling since start_within or deadline passed: it ends as expired
	Paused                    bool        // nothing more of it is granted
	Priority                  int         // 0 … 100, higher first; starts as Spec.Priority
	Schedule                  string      // that it is a run of, "" = none
	ScheduledFor              int64       // planned moment of that run, Unix milliseconds
	Nominal                   string      // name of that occurrence
	StartedLed                task.Millis // its deadline counts from here; only kept for a job with a deadline
	Stages                    []Stage
	KV                        []StateKey // sorted by key
	kvVersion                 uint64
	weight                    int64 // derived: bytes that its shards' extras, its items and its shared keys hold
}

// Stage is one stage of a job.
type Stage struct {
	State  task.StageState
	Broken bool // failed, cancelled, or skipped because a stage it needs was
	Counts [task.ShardStates]int32
	Waits  int32 // of the pending ones, those that wait for their retry time
	// Stopping: what runs of it is to be stopped, since its success is out of reach (fail_fast). Reason says why, or why the
	// stage failed when it opened; for people.
	Stopping bool
	Reason   string
	Items    []string      // of a stage that got its shards from an output when it opened
	Pins     []task.NodeID // of a broadcast stage: the node of each shard
	shards   cow[Shard]
	ready    *bitset // derived: shards that may be granted now
}

// Shard is one shard's record, kept small: there may be a million.
type Shard struct {
	State   task.ShardState
	Defers  uint8
	Fails   uint16     // attempts used up
	Losses  uint16     // leases lost
	Tries   int32      // all assignments so far = number of the current or last attempt
	Node    int32      // place in nodes of the current or last attempt
	Token   task.Token // of the current or last attempt
	Granted task.Instant
	Ended   task.Instant
	Due     task.Instant // leased: the lease's deadline; pending: not before
	Renewed task.Instant // last renewal, 0 = none
	Extra   *Extra       // nil for most; replaced whole, never changed in place
}

// Extra is what only some shards have.
type Extra struct {
	Checkpoint   task.Checkpoint
	CheckpointAt task.Instant
	CheckpointBy task.Token
	Outputs      []task.KV
	History      []task.AttemptRecord // ended attempts but a successful one, oldest first
	Range        *task.ShardRange     // what it works on, if that is not what the spec says: it was split, or came of a split
	Cursor       int64                // with HasCursor: the current attempt has begun nothing from here on
	HasCursor    bool
	SplitWanted  bool       // at the next cursor
	SkippedBy    task.JobID // its key had succeeded in this job, so that it did not run; "" = none
	puts         []put      // of the current attempt's writes of outputs and shared keys, the last few
}

// put is an accepted write: a repeat is answered with its version, even if the same was written again since.
type put struct {
	request task.RequestID
	version uint64
}

// StateKey is one shared key of a job (R12).
type StateKey struct {
	Key     string
	Version uint64
	Value   []byte
}

// Lease is the derived record of a shard that a node holds.
type Lease struct {
	Ref   task.ShardRef
	Seq   int // of the job
	Token task.Token
	Node  int32
}
