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
	Name        string        `json:"name"`
	Needs       []string      `json:"needs,omitempty"` // names of stages that must be done; a list of stages needs the one before
	When        When          `json:"when"`
	Run         string        `json:"run,omitempty"`     // script text, exclusive with Command
	Command     []string      `json:"command,omitempty"` // no shell
	Shell       string        `json:"shell,omitempty"`   // auto, sh, bash, zsh, pwsh, cmd, python3
	Env         []KV          `json:"env,omitempty"`
	EnvFiles    []string      `json:"env_files,omitempty"` // on the machine that runs it; never stored in the cluster
	Workdir     string        `json:"workdir,omitempty"`   // "" = a fresh private directory
	Shards      int           `json:"shards"`
	Items       []string      `json:"items,omitempty"`       // one per shard, or empty
	Parallelism int           `json:"parallelism,omitempty"` // 0 = as many as fit
	Require     []Requirement `json:"require,omitempty"`
	Timeout     Millis        `json:"timeout"` // one attempt; 0 = none
	Lease       LeaseTerms    `json:"lease"`
	Retry       RetryPolicy   `json:"retry"`
	Success     Success       `json:"success"`
}

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
	Percent int `json:"percent,omitempty"` // 1 … 100; 0 if Count is used
	Count   int `json:"count,omitempty"`
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

// The job states; the last four are final.
const (
	JobPending   JobState = "pending" // nothing of it has run yet
	JobRunning   JobState = "running"
	JobSucceeded JobState = "succeeded"
	JobPartial   JobState = "partial" // enough shards succeeded, not all
	JobFailed    JobState = "failed"
	JobCancelled JobState = "cancelled"
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
