package task

import "time"

// JobView is one job in a list or by itself.
type JobView struct {
	ID         JobID       `json:"id"`
	Name       string      `json:"name"`
	State      JobState    `json:"state"`
	Queue      string      `json:"queue"`
	Priority   int         `json:"priority"`
	Key        string      `json:"idempotency_key,omitempty"`
	Labels     []KV        `json:"labels,omitempty"`
	Submitted  time.Time   `json:"submitted"`
	By         string      `json:"submitted_by,omitempty"`
	Started    *time.Time  `json:"started,omitempty"`
	Ended      *time.Time  `json:"ended,omitempty"`
	AgeSeconds float64     `json:"age_seconds"`
	Shards     Counts      `json:"shards"` // over all stages opened so far and to come
	Stages     []StageView `json:"stages"`
	Note       string      `json:"note,omitempty"`   // why it waits or what to do next, in plain words
	Reason     string      `json:"reason,omitempty"` // of a cancel

	Paused       bool       `json:"paused,omitempty"`        // nothing new of it starts until it is resumed
	Schedule     string     `json:"schedule,omitempty"`      // that it is a run of
	ScheduledFor *time.Time `json:"scheduled_for,omitempty"` // the planned time of that run
	// Only in the view of one job. Ahead is how many jobs of its queue with waiting shards have a higher priority and go first,
	// Beside how many have the same and share what is free; nil = nothing of it waits. P50, P99: of the run times of its
	// shards that succeeded, from grant to end; nil before the first (R30).
	Ahead            *int     `json:"queue_ahead,omitempty"`
	Beside           *int     `json:"queue_beside,omitempty"`
	P50Seconds       *float64 `json:"p50_seconds,omitempty"`
	P99Seconds       *float64 `json:"p99_seconds,omitempty"`
	SuggestedTimeout *float64 `json:"suggested_timeout_seconds,omitempty"` // 2 to 3 times P99 of its slowest stage
}

// Counts is how many shards are in which state. Waiting shards belong to stages that are not open yet; Backoff is part of Pending.
type Counts struct {
	Total     int `json:"total"`
	Waiting   int `json:"waiting"`
	Pending   int `json:"pending"`
	Backoff   int `json:"backoff"`
	Assigned  int `json:"assigned"`
	Running   int `json:"running"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
}

// StageView is one stage of a job.
type StageView struct {
	Name        string   `json:"name"`
	State       string   `json:"state"`
	Needs       []string `json:"needs,omitempty"`
	Shards      Counts   `json:"shards"`
	Parallelism int      `json:"parallelism,omitempty"`
	// As in JobView, of this stage alone.
	TimeoutSeconds   float64  `json:"timeout_seconds,omitempty"` // of one attempt; 0 = none
	P50Seconds       *float64 `json:"p50_seconds,omitempty"`
	P99Seconds       *float64 `json:"p99_seconds,omitempty"`
	SuggestedTimeout *float64 `json:"suggested_timeout_seconds,omitempty"`
}

// ShardView is one shard.
type ShardView struct {
	Stage         string        `json:"stage"`
	Shard         int           `json:"shard"`
	Item          string        `json:"item,omitempty"`
	State         string        `json:"state"` // a ShardState, "backoff", "waiting" or "skipped"
	Node          NodeID        `json:"node,omitempty"`
	NodeName      string        `json:"node_name,omitempty"`
	Attempt       int           `json:"attempt,omitempty"` // number of the current or last attempt
	Failures      int           `json:"failures"`          // attempts used up
	Attempts      int           `json:"attempts"`          // attempts allowed
	Token         Token         `json:"fence,omitempty"`
	Execution     ExecutionID   `json:"execution_id,omitempty"`
	LeaseSeconds  *float64      `json:"lease_seconds,omitempty"` // left, on the cluster clock
	RetrySeconds  *float64      `json:"retry_seconds,omitempty"` // until the next attempt may start
	CheckpointSeq uint64        `json:"checkpoint_seq,omitempty"`
	CheckpointAge *float64      `json:"checkpoint_age_seconds,omitempty"`
	Progress      string        `json:"progress,omitempty"`
	Outputs       []KV          `json:"outputs,omitempty"`
	Last          string        `json:"last,omitempty"` // how the last ended attempt ended: "exit 1 on pc-win"
	Why           string        `json:"why,omitempty"`
	History       []AttemptView `json:"attempt_list,omitempty"`
	Range         *ShardRange   `json:"range,omitempty"`   // what it works on, end exclusive, in a stage with a range
	Pinned        NodeID        `json:"pinned,omitempty"`  // the only machine that may run it (broadcast)
	Skipped       JobID         `json:"skipped,omitempty"` // it did not run: its key had succeeded in this job (R31)
}

// AttemptView is one attempt of a shard, the current one included.
type AttemptView struct {
	Stage     string      `json:"stage"`
	Shard     int         `json:"shard"`
	Attempt   int         `json:"attempt"`
	Node      NodeID      `json:"node"`
	NodeName  string      `json:"node_name"`
	Token     Token       `json:"fence"`
	Execution ExecutionID `json:"execution_id"`
	State     string      `json:"state"` // assigned, running, succeeded, or how it ended
	Counted   bool        `json:"counted"`
	Seconds   float64     `json:"seconds"` // from grant to end, cluster clock
	ExitCode  *int        `json:"exit_code,omitempty"`
	Reason    string      `json:"reason,omitempty"`
	Tail      string      `json:"tail,omitempty"`
}

// DeadGroup is dead shards of one job and stage whose last attempts ended alike (R29).
type DeadGroup struct {
	Job     JobID  `json:"job"`
	Name    string `json:"name"`
	Stage   string `json:"stage"`
	Error   string `json:"error"` // how they ended: "exit 1", "timed out"
	Count   int    `json:"count"`
	Shards  string `json:"shards"` // 3,7,10-19; the first of them, if there are many
	Example int    `json:"example"`
	Node    string `json:"node"` // the machine of the example
	Tail    string `json:"tail,omitempty"`
	Retry   string `json:"retry"` // the command that gives them new attempts
}

// SubmitReply answers a submit.
type SubmitReply struct {
	ID      JobID  `json:"id,omitempty"`
	Name    string `json:"name"`
	Existed bool   `json:"existed"`        // an idempotency key led to an earlier job
	Note    string `json:"note,omitempty"` // "no machine can run it now: …"
	// Schedule is set where the job has a schedule: it was created or, with Existed, was there and is now as submitted, and ID is
	// empty. Next is when it runs first.
	Schedule string          `json:"schedule,omitempty"`
	Next     *OccurrenceView `json:"next,omitempty"`
}
