package task

import "time"

// The view types are what status pages, the API and the CLI show: JSON whose fields are only added. Times are RFC 3339 in
// UTC from the leader's wall clock at the moment of the change; lengths are seconds.

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

// NodeView is one machine.
type NodeView struct {
	ID          NodeID     `json:"id"`
	Name        string     `json:"name"`
	Role        string     `json:"role"`  // leader, voter, standby, worker
	State       string     `json:"state"` // ready, silent, unstable, draining, left
	Since       *time.Time `json:"since,omitempty"`
	OS          string     `json:"os"`
	Arch        string     `json:"arch"`
	CPUs        int        `json:"cpus"`
	Slots       int        `json:"slots"`
	Version     string     `json:"version"`
	Limits      string     `json:"limits,omitempty"` // as in NodeInfo
	Labels      []KV       `json:"labels,omitempty"`
	Addresses   []string   `json:"addresses,omitempty"` // where it is reached now; never stored in the cluster
	Running     int        `json:"running"`
	Load        *Load      `json:"load,omitempty"`
	SeenSeconds *float64   `json:"seen_seconds,omitempty"`
	Seat        string     `json:"seat,omitempty"` // promoted or demoted by a person's word; "" = the leader chooses who votes
	Note        string     `json:"note,omitempty"`
	Refusal     string     `json:"refusal,omitempty"` // why the last connection to it was refused, if it was
	Laptop      bool       `json:"laptop,omitempty"`  // it has a battery, or the label laptop=true
	MACs        []string   `json:"macs,omitempty"`    // for waking it by the network
	Rules       RulesView  `json:"rules"`             // of its owner
}

// RulesView is what the owner of a machine lets the cluster do with it (R46).
type RulesView struct {
	RefuseQueues   []string `json:"refuse_queues"`
	RunAs          string   `json:"run_as,omitempty"` // "" = the user that the node runs as
	AllowUsers     []string `json:"allow_users"`      // whom job files may name
	Inhibit        string   `json:"inhibit"`          // always, mains, never
	ReservePercent int      `json:"reserve_percent"`
}

// ClusterView is what status shows.
type ClusterView struct {
	Name         string     `json:"name"` // "" = this machine only
	ID           string     `json:"id,omitempty"`
	Health       string     `json:"health"`   // healthy, degraded, no_leader
	Sentence     string     `json:"sentence"` // "3 voters: survives 1 failure"
	Leader       NodeID     `json:"leader,omitempty"`
	LeaderName   string     `json:"leader_name,omitempty"`
	Term         uint64     `json:"term"`
	Index        uint64     `json:"index"`
	Voters       int        `json:"voters"`
	Survives     int        `json:"survives"`
	Version      string     `json:"version"`
	Self         NodeID     `json:"self"`
	SelfName     string     `json:"self_name"`
	Clock        Instant    `json:"cluster_clock_ms"`
	Nodes        []NodeView `json:"nodes"`
	Jobs         []JobView  `json:"jobs"`                    // unfinished, and the newest finished ones
	StaleSeconds float64    `json:"stale_seconds,omitempty"` // age of what is shown when there is no leader
	Notices      []string   `json:"notices,omitempty"`       // what may stop the cluster soon, and what the answering machine says about itself
	// Level is the lowest that a member knows: what needs a higher one is refused until all do (R47).
	Level         int      `json:"level,omitempty"`
	HeldBackBy    []string `json:"held_back_by,omitempty"` // members that keep it from the highest level of any
	LevelSentence string   `json:"level_sentence,omitempty"`
}

// ScheduleView is one schedule (R32).
type ScheduleView struct {
	Name     string           `json:"name"`
	State    string           `json:"state"` // active, paused, over (no occurrence is left), invalid
	When     string           `json:"when"`  // in plain words
	Schedule Schedule         `json:"schedule"`
	Queue    string           `json:"queue"`
	Priority int              `json:"priority"`
	Labels   []KV             `json:"labels,omitempty"`
	Created  time.Time        `json:"created"`
	By       string           `json:"submitted_by,omitempty"`
	Next     []OccurrenceView `json:"next"` // what would come, also while it is paused
	// Last is the newest occurrence that was settled: fired, skipped or missed. Waiting is the one that starts when the run
	// before it has ended (overlap: queue).
	Last    *OccurrenceView `json:"last,omitempty"`
	Waiting *OccurrenceView `json:"waiting,omitempty"`
	Runs    []RunView       `json:"runs"` // its newest jobs that are still kept, newest first
	Fired   uint64          `json:"fired"`
	Missed  uint64          `json:"missed"`  // were not fired when they were due; those made up count here too
	Skipped uint64          `json:"skipped"` // were not fired because the run before was not over
	Note    string          `json:"note,omitempty"`
}

// OccurrenceView is one time that a schedule names.
type OccurrenceView struct {
	Name  string    `json:"name"`            // unique in its schedule: date, time and zone by its own calendar
	Local string    `json:"local,omitempty"` // date, time and zone for a person, as clocks in the schedule's zone show them
	Due   time.Time `json:"due"`             // with jitter
}

// RunView is one job that a schedule made.
type RunView struct {
	ID           JobID      `json:"id"`
	State        JobState   `json:"state"`
	ScheduledFor *time.Time `json:"scheduled_for,omitempty"`
	Started      *time.Time `json:"started,omitempty"`
	Ended        *time.Time `json:"ended,omitempty"`
}

// QueueView is one queue (R33).
type QueueView struct {
	Name    string  `json:"name"`
	State   string  `json:"state"` // open, full, paused
	Max     int     `json:"max"`   // most shards at once; 0 = no limit
	Balance Balance `json:"balance"`
	Active  int     `json:"active"`  // shards that machines have
	Pending int     `json:"pending"` // shards that could run now
	Backoff int     `json:"backoff"` // shards that wait for their retry time
	Jobs    int     `json:"jobs"`    // unfinished ones
	// OldestSeconds is since the submit of the oldest job with a pending shard.
	OldestSeconds *float64 `json:"oldest_wait_seconds,omitempty"`
	By            string   `json:"changed_by,omitempty"`
	Note          string   `json:"note,omitempty"`
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

// List is the envelope of every list: {"kind":"JobList","index":18231,"items":[…]}.
type List[T any] struct {
	Kind  string `json:"kind"`
	Index uint64 `json:"index"`
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"` // pass as ?after= for the next page
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
