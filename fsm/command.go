package fsm

import "lanjobs/task"

// Batch is one log entry: the time led since the leader's last one, then commands in the order clock, reports and renewals,
// decisions (DESIGN 2).
type Batch struct {
	Elapsed  task.Millis // measured by the leader's Awake clock, 0 after its barrier, at most MaxElapsed
	Idle     task.Millis // led beyond Elapsed: counts for retention and join tokens, never for leases
	Wall     int64       // leader's wall clock, Unix milliseconds: display and audit only (I8)
	Leader   task.NodeID
	Commands []Command
	// Together writes the spec of jobs that are submitted one after the other only once, if it is the same: level 2.
	Together bool
}

// MaxElapsed caps how far one batch moves the cluster clock: a leader that was frozen and thawed expires nobody for it.
const MaxElapsed = 10 * task.Second

// Command is one change. The concrete types are below; each has a number that is never reused.
type Command interface {
	kind() kind
	encode(*enc)
	apply(*State) Result
}

// Result is what a command did, for the leader to answer with. Err nil means accepted.
type Result struct {
	Err     *task.Problem
	Tokens  []task.Token  // Grant: one per shard, 0 = refused; RegisterNode: kept leases
	TTLs    []task.Millis // Renew: one per token, 0 = lost
	Codes   []string      // Report: one per report, "" = accepted
	Version uint64        // Checkpoint: its number; PutState: the key's version; if refused as a conflict, what is there
	Job     task.JobID    // SubmitJob: the job, new or found; FireSchedule: the job made or to be made, "" = skipped
	Existed bool
	// Repeated says that this very request was answered before: whether it made or changed something then is not known any more.
	Repeated bool
	// IDTaken: refused only since another job has its id by now; under another one it may be accepted.
	IDTaken bool
	// Schedule is set where a SubmitJob made or, with Existed, changed a schedule instead of a job.
	Schedule string
	Range    task.ShardRange // Cursor: what the shard works on from now on
}

type kind uint64

// Numbers of the commands in the log.
const (
	kindInitCluster   kind = 1
	kindElected       kind = 2
	kindRegisterNode  kind = 3
	kindSetOnline     kind = 4
	kindSetNode       kind = 5
	kindSubmitJob     kind = 6
	kindCancelJob     kind = 7
	kindRetryJob      kind = 8
	kindCollectJobs   kind = 9
	kindGrant         kind = 10
	kindRenew         kind = 11
	kindReport        kind = 12
	kindExpire        kind = 13
	kindCheckpoint    kind = 14
	kindPutOutput     kind = 15
	kindPutState      kind = 16
	kindCreateToken   kind = 17
	kindRemoveToken   kind = 18
	kindAdmitNode     kind = 19
	kindNewGeneration kind = 20
	kindFireSchedule  kind = 21
	kindSkipSchedule  kind = 22
	kindSetSchedule   kind = 23
	kindSetQueue      kind = 24
	kindSetJob        kind = 25
	kindExpireJob     kind = 26
	kindCursor        kind = 27
	kindSplitShard    kind = 28
	kindAdmitClient   kind = 30
	kindRemoveClient  kind = 31
	kindSubmitSame    kind = 29 // a SubmitJob of the spec of the one before it in the batch
)

// InitCluster gives a state its cluster: id, name and the keys that members are issued from.
type InitCluster struct {
	ID, Name      string
	CACert, CAKey []byte // PEM
	GossipKey     []byte
	By            string
}

// Elected is the first command of a leader's term.
type Elected struct {
	Node task.NodeID
	Term uint64
}

// RegisterNode records a node's start (R5): its leases that it does not hold are freed at once (I13). A repeat of the
// registration frees nothing.
type RegisterNode struct {
	Info        task.NodeInfo
	Incarnation uint64
	Held        []task.Token
	Load        task.Load
	// Caring: crashes and presence are counted. The leader sets it when all members are of level 3. Crashes is how often the agent
	// has ended without being told to since it last registered.
	Caring  bool
	Crashes int
}

// SetOnline records that a node went silent or came back, once each.
type SetOnline struct {
	Node   task.NodeID
	Online bool
	Reason string
	Caring bool // as in RegisterNode
}

// NodeAction is what SetNode does.
type NodeAction string

// The actions.
const (
	NodeDrain  NodeAction = "drain"
	NodeResume NodeAction = "resume"
	NodeLabel  NodeAction = "label"
	NodeRemove NodeAction = "remove"
	NodeLeave  NodeAction = "leave"
	NodeClear  NodeAction = "clear" // it may have work again after its crashes (R45)
	// NodePromote and NodeDemote say whether it votes, whatever the leader would choose; NodeAuto leaves it to the leader.
	NodePromote NodeAction = "promote"
	NodeDemote  NodeAction = "demote"
	NodeAuto    NodeAction = "auto"
)

// SetNode is an admin act on a node.
type SetNode struct {
	Node   task.NodeID
	Action NodeAction
	After  task.Millis // drain: running attempts may go on that long
	Labels []task.KV   // label: empty value removes
	Reason string
	By     string
}

// SubmitJob stores a job and opens its first stages.
type SubmitJob struct {
	RequestID task.RequestID
	Job       task.JobID
	Spec      []byte // canonical JSON
	Digest    []byte // of the spec without its source text: "the same file"
	By        string
}

// CancelJob stops a job.
type CancelJob struct {
	Job       task.JobID
	Grace     task.Millis // 0 = each stage's own
	Reason    string
	By        string
	RequestID task.RequestID
}

// RetryJob gives shards new attempts.
type RetryJob struct {
	RequestID task.RequestID
	Job       task.JobID
	Stage     string // "" = all
	Shards    []task.Range
	All       bool // also those that succeeded; else failed and cancelled ones
	FromStart bool // drop checkpoints
	By        string
}

// CollectJobs removes finished jobs whose retention is over.
type CollectJobs struct{ Jobs []task.JobID }

// Grant gives shards of one stage to a node.
type Grant struct {
	Node        task.NodeID
	Incarnation uint64
	Job         task.JobID
	Stage       int
	Shards      []int // ascending, each once
}

// Renew renews leases of a node (R6).
type Renew struct {
	Node        task.NodeID
	Incarnation uint64
	Tokens      []task.Token
	Load        task.Load
}

// Report brings ends of attempts of a node.
type Report struct {
	Node    task.NodeID
	Reports []task.Report
}

// Expire ends leases whose deadline has passed; others in it are left alone (I6).
type Expire struct{ Tokens []task.Token }

// Checkpoint saves a checkpoint under the lease (R26).
type Checkpoint struct {
	Ref   task.ShardRef
	Token task.Token
	Seq   uint64
	Data  []byte
}

// PutOutput registers an output under the lease.
type PutOutput struct {
	Ref       task.ShardRef
	Token     task.Token
	Output    task.KV
	RequestID task.RequestID // so that a late repeat does not bring an older value back
}

// PutState writes a shared key of a job under the lease, if its version matches (R12).
type PutState struct {
	Ref       task.ShardRef
	Token     task.Token
	RequestID task.RequestID
	Key       string
	Value     []byte
	IfVersion *uint64
}

// CreateToken stores the hash of a join token.
type CreateToken struct {
	ID     string
	Hash   []byte
	TTL    task.Millis
	Uses   int
	Worker bool
	By     string
	Role   Role // not empty: it is for a client to log in with, not for a node; level 3
}

// RemoveToken withdraws one.
type RemoveToken struct{ ID, By string }

// AdmitNode uses a join token for a new member; nothing is issued unless it is accepted.
type AdmitNode struct {
	TokenHash []byte
	Node      task.NodeID
	Name      string
	Worker    bool   // asked for by the joiner
	Key       []byte // hash of the public key that it is issued a certificate for: an id is that of one key
}

// NewGeneration raises the token generation after a lost quorum was recovered or a backup restored (I3).
type NewGeneration struct {
	By, Reason string
	// AtLeast is one more than the highest generation that any machine has seen: what was restored may be older than the
	// last recovery. 0 = nothing is known.
	AtLeast uint64
}
