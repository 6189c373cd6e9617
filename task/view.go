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
}

// ShardView is one shard.
type ShardView struct {
	Stage         string        `json:"stage"`
	Shard         int           `json:"shard"`
	Item          string        `json:"item,omitempty"`
	State         string        `json:"state"` // a ShardState, "backoff" or "waiting"
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
	State       string     `json:"state"` // ready, silent, draining, left
	Since       *time.Time `json:"since,omitempty"`
	OS          string     `json:"os"`
	Arch        string     `json:"arch"`
	CPUs        int        `json:"cpus"`
	Slots       int        `json:"slots"`
	Version     string     `json:"version"`
	Labels      []KV       `json:"labels,omitempty"`
	Addresses   []string   `json:"addresses,omitempty"` // where it is reached now; never stored in the cluster
	Running     int        `json:"running"`
	Load        *Load      `json:"load,omitempty"`
	SeenSeconds *float64   `json:"seen_seconds,omitempty"`
	Note        string     `json:"note,omitempty"`
	Refusal     string     `json:"refusal,omitempty"` // why the last connection to it was refused, if it was
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
	ID      JobID  `json:"id"`
	Name    string `json:"name"`
	Existed bool   `json:"existed"`        // an idempotency key led to an earlier job
	Note    string `json:"note,omitempty"` // "no machine can run it now: …"
}
