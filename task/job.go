package task

// Spec is a job file after parsing and checking: what a person asked for, with every default filled in.
// Its canonical JSON is what the cluster stores, once per job. Fields are only added.
type Spec struct {
	Name              string      `json:"name"`
	Description       string      `json:"description,omitempty"`
	Labels            []KV        `json:"labels,omitempty"` // sorted by name
	Queue             string      `json:"queue"`
	Priority          int         `json:"priority"`
	IdempotencyKey    string      `json:"idempotency_key,omitempty"`
	IdempotencyWindow Millis      `json:"idempotency_window,omitempty"`
	Schedule          *Schedule   `json:"schedule,omitempty"`     // nil: the job runs once, now (R32)
	Deadline          Millis      `json:"deadline,omitempty"`     // of the whole job, from its first start; 0 = none
	StartWithin       Millis      `json:"start_within,omitempty"` // nothing started so long after the submit: expired; 0 = never
	Retain            Millis      `json:"retain"`
	Files             []File      `json:"files,omitempty"`
	Stages            []StageSpec `json:"stages"`           // each after those it needs
	Source            string      `json:"source,omitempty"` // the job file as submitted
}

// File is sent with the job and put into the working directory of every attempt.
type File struct {
	Name string `json:"name"` // relative, slash-separated, clean
	Mode uint32 `json:"mode"` // permission bits
	Data []byte `json:"data"`
}

// DefaultStage is the name of the only stage of a job file with run or command at top level.
const DefaultStage = "main"

// StageSpec is one stage of a job.
type StageSpec struct {
	Name     string   `json:"name"`
	Needs    []string `json:"needs,omitempty"` // names of stages that must be done; a list of stages needs the one before
	When     When     `json:"when"`
	Run      string   `json:"run,omitempty"`     // script text, exclusive with Command
	Command  []string `json:"command,omitempty"` // no shell
	Shell    string   `json:"shell,omitempty"`   // auto, sh, bash, zsh, pwsh, cmd, python3
	Env      []KV     `json:"env,omitempty"`
	EnvFiles []string `json:"env_files,omitempty"` // on the machine that runs it; never stored in the cluster
	Workdir  string   `json:"workdir,omitempty"`   // "" = a fresh private directory
	// Shards is their number, 1 … MaxShards; 0 only with ShardsFrom and Broadcast, whose number is fixed when the stage opens.
	Shards      int           `json:"shards"`
	Items       []string      `json:"items,omitempty"`       // one per shard, or empty
	ShardsFrom  string        `json:"shards_from,omitempty"` // "stage.output": one shard per line of that output of an earlier stage (R23)
	Range       *RangeSpec    `json:"range,omitempty"`       // Shards = Range.Shards()
	Weights     []int         `json:"weights,omitempty"`     // one per shard, or empty; the bigger ones are granted first (R35)
	Broadcast   bool          `json:"broadcast,omitempty"`   // one shard per member that fits (R24)
	ShardKey    string        `json:"shard_key,omitempty"`   // business key of each shard, a template (R31); see ExpandShardKey
	Parallelism int           `json:"parallelism,omitempty"` // 0 = as many as fit
	Require     []Requirement `json:"require,omitempty"`
	Prefer      []Requirement `json:"prefer,omitempty"`   // each that holds adds weight (R34)
	Paths       []string      `json:"paths,omitempty"`    // directories that must be there; what is not mounted is waited for
	Programs    []string      `json:"programs,omitempty"` // names that must be found on PATH, or absolute paths
	Resources   Resources     `json:"resources,omitzero"` // booked for each attempt; see Booked
	Timeout     Millis        `json:"timeout"`            // one attempt; 0 = none
	// StallTimeout ends an attempt that has shown no output, progress or checkpoint for so long; 0 = none.
	StallTimeout Millis      `json:"stall_timeout,omitempty"`
	OnSleep      OnSleep     `json:"on_sleep,omitempty"` // "" = OnSleepRelease
	User         string      `json:"user,omitempty"`     // "" = the node's own
	Lease        LeaseTerms  `json:"lease"`
	Retry        RetryPolicy `json:"retry"`
	Success      Success     `json:"success"`
}

// AsksShell is the shell that a script names, which its machine must have; "" = none, or whatever the machine has.
func (s *StageSpec) AsksShell() string {
	if s.Run == "" || s.Shell == "auto" {
		return ""
	}
	return s.Shell
}

// OnSleep says what an attempt does when its machine is told to sleep (R16).
type OnSleep string

// The values of OnSleep.
const (
	OnSleepRelease OnSleep = "release" // it is stopped with its grace and goes on elsewhere from its checkpoint
	OnSleepKeep    OnSleep = "keep"    // it keeps its lease and goes on after waking, if that still holds
	OnSleepFinish  OnSleep = "finish"  // the machine is held awake until it has ended, as far as the system allows
)

// When says for which end of the stages it needs a stage opens.
type When string

// The values of When.
const (
	WhenSuccess When = "success"
	WhenFailure When = "failure"
	WhenAlways  When = "always"
)

// Success says how many shards must succeed (R28): a percentage, rounded up, or a count.
type Success struct {
	Percent  int  `json:"percent,omitempty"` // 1 … 100; 0 if Count is used
	Count    int  `json:"count,omitempty"`
	FailFast bool `json:"fail_fast,omitempty"` // once so many cannot succeed any more, the rest of the stage is cancelled
}

// Needed is the number of shards of n that must succeed.
func (s Success) Needed(n int) int {
	if s.Count > 0 {
		return min(s.Count, n)
	}
	p := s.Percent
	if p == 0 {
		p = 100
	}
	return (n*p + 99) / 100
}

// Stage gives the index of a stage by name, -1 if there is none.
func (s *Spec) Stage(name string) int {
	for i := range s.Stages {
		if s.Stages[i].Name == name {
			return i
		}
	}
	return -1
}

// JobState is the state of a job (R21).
type JobState string

// The job states; all but pending and running are final.
const (
	JobPending   JobState = "pending" // nothing of it has run yet
	JobRunning   JobState = "running"
	JobSucceeded JobState = "succeeded"
	JobPartial   JobState = "partial" // enough shards succeeded, not all
	JobFailed    JobState = "failed"
	JobCancelled JobState = "cancelled"
	JobExpired   JobState = "expired" // start_within or deadline passed
)

// Final tells whether the state never changes again (except by a person's retry).
func (s JobState) Final() bool { return s != JobPending && s != JobRunning }

// StageState is the state of a stage.
type StageState uint8

// The stage states.
const (
	StageWaiting StageState = iota // for stages it needs
	StageOpen
	StageSucceeded
	StagePartial
	StageFailed
	StageSkipped // its `when` did not hold
	StageCancelled
)

func (s StageState) String() string {
	return [...]string{"waiting", "open", "succeeded", "partial", "failed", "skipped", "cancelled"}[s]
}

// Done tells whether nothing of the stage will run any more.
func (s StageState) Done() bool { return s >= StageSucceeded }

// ShardState is the state of a shard (R21).
type ShardState uint8

// The shard states. A pending shard that waits for its retry time is shown as "backoff".
const (
	ShardPending ShardState = iota
	ShardAssigned
	ShardRunning
	ShardSucceeded
	ShardFailed // dead letter
	ShardCancelled
	ShardStates = int(ShardCancelled) + 1
)

func (s ShardState) String() string {
	return [...]string{"pending", "assigned", "running", "succeeded", "failed", "cancelled"}[s]
}

// Leased tells whether a node holds a lease on the shard.
func (s ShardState) Leased() bool { return s == ShardAssigned || s == ShardRunning }

// Done tells whether the shard will not run any more.
func (s ShardState) Done() bool { return s >= ShardSucceeded }
