package task

import "time"

// The view types are what status pages, the API and the CLI show: JSON whose fields are only added. Times are RFC 3339 in
// UTC from the leader's wall clock at the moment of the change; lengths are seconds.

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

// List is the envelope of every list: {"kind":"JobList","index":18231,"items":[…]}.
type List[T any] struct {
	Kind  string `json:"kind"`
	Index uint64 `json:"index"`
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"` // pass as ?after= for the next page
}
