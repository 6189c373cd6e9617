package transport

import "lanjobs/task"

// The messages between worker and leader. MessagePack with field names: a field that the other side does not know is
// skipped, one that is missing is zero, so that neighbouring versions understand each other (R47).

// RegisterRequest announces a node that has started, or come back (R5). Held are the leases whose attempts still run on it
// or whose reports wait; all others of this node are freed (I13).
type RegisterRequest struct {
	Info        task.NodeInfo
	Incarnation uint64 // grows with every start of the agent on this node
	Held        Tokens
	Load        task.Load
	Crashes     int // how often the agent has ended without being told to since it last registered (R45)
	// Slept is for how long the machine has slept since it was last heard, 0 = it did not (R16).
	Slept task.Millis
}

// RegisterReply answers it.
type RegisterReply struct {
	Keep []task.Token // of Held, those still valid; the rest must stop at once, without grace
}

// PollRequest is a worker's parked question for work (long poll). The leader answers when it has an assignment or an order
// for the node, or after Hold with an empty reply. It doubles as the heartbeat of a node without leases.
type PollRequest struct {
	Incarnation uint64
	Want        int         // free slots; 0 = orders only
	Hold        task.Millis // how long to park at most
	Holding     Tokens      // leases the node knows: granted ones not in this list are sent again with MustRenew
	Load        task.Load
}

// PollReply brings work and orders.
type PollReply struct {
	Assignments Assignments
	Orders      []StopOrder
	Specs       []DigestedSpec // of the assignments, those that this term has not sent to the node; the rest it may ask for
	// Unregistered: the leader does not know this incarnation; register first.
	Unregistered bool
}

// DigestedSpec is a job's spec with the digest that assignments name it by.
type DigestedSpec struct{ Digest, JSON string }

// StopOrder tells the holder to stop an attempt.
type StopOrder struct {
	Token  task.Token
	Reason task.StopReason
	Grace  task.Millis
}

// RenewRequest renews leases (R6). The sender has read its boot clock before writing it (R9).
type RenewRequest struct {
	Incarnation uint64
	Tokens      Tokens
	Load        task.Load
}

// RenewReply answers it after the renewal is committed.
type RenewReply struct {
	Renewed      []Renewal
	Lost         []task.Token // no longer valid: stop without grace
	Orders       []StopOrder
	Unregistered bool
}

// Renewal is one renewed lease. TTL counts from the commit for the granter, from before the request for the holder.
type Renewal struct {
	Token task.Token
	TTL   task.Millis
}

// ReportRequest brings ends of attempts, from the worker's outbox.
type ReportRequest struct {
	Incarnation uint64
	Reports     Reports
}

// ReportReply answers each report after commit: "" accepted (also when repeated), else the code of a task.Problem.
type ReportReply struct {
	Codes []string
}

// CheckpointRequest saves a checkpoint under the lease (R26).
type CheckpointRequest struct {
	Ref   task.ShardRef
	Token task.Token
	Seq   uint64 // the holder's number for it, growing: a repeat is harmless
	Data  []byte
}

// OutputRequest registers an output under the lease.
type OutputRequest struct {
	Ref       task.ShardRef
	Token     task.Token
	RequestID task.RequestID // so that a late repeat does not bring an older value back
	Output    task.KV
}

// InputsRequest asks for the outputs of another stage of the same job. The token proves to the answering side that its
// state is not older than the asker's grant: a leader that was replaced meanwhile does not know it.
type InputsRequest struct {
	Job     task.JobID
	Token   task.Token
	Stage   string
	Name    string // "" = all
	Missing bool   // the shards that did not succeed instead
}

// Input is one output of one shard.
type Input struct {
	Shard       int
	Name, Value string
}

// InputsReply answers it, in shard order.
type InputsReply struct{ Inputs []Input }

// StateGetRequest reads a job's shared key (R12). Token as in InputsRequest.
type StateGetRequest struct {
	Job   task.JobID
	Token task.Token
	Key   string
}

// StateValue is a key with its version; version 0 = absent.
type StateValue struct {
	Version uint64
	Value   []byte
}

// StatePutRequest writes a key under the lease, if the version still is IfVersion (R12).
type StatePutRequest struct {
	Ref       task.ShardRef
	Token     task.Token
	RequestID task.RequestID
	Key       string
	Value     []byte
	IfVersion *uint64 // nil = whatever it is
}

// ProgressRequest is kept in the leader's memory only.
type ProgressRequest struct {
	Ref   task.ShardRef
	Token task.Token
	Text  string
}

// RangeRequest asks what range a running shard has, or with HasCursor says how far it is (R35): everything from Cursor on is
// not begun. What is not begun may then be given to others: the answer says what is left.
type RangeRequest struct {
	Ref       task.ShardRef
	Token     task.Token
	Cursor    int64
	HasCursor bool
	RequestID task.RequestID // of a cursor
}

// RangeReply answers it with the shard's range from now on.
type RangeReply struct{ Range task.ShardRange }

// SpecRequest fetches a job's spec; workers cache it by job.
type SpecRequest struct{ Job task.JobID }

// SpecReply is its canonical JSON.
type SpecReply struct {
	Name string
	JSON []byte
}

// APIRequest is a client's request that a member passes on to the leader, already authenticated there.
type APIRequest struct {
	HTTPMethod string
	Path       string // with query
	Header     map[string]string
	Body       []byte
	By         string // who asked, for the audit log
	Hops       int
	// Role is what the asker may do by the member that passes this on, "" = everything. Client is the id of a client, "" = the owner
	// of that member, and ClientKey the hash of its key: the leader looks both up by its own state.
	Role, Client string
	ClientKey    []byte
}

// APIReply is the leader's answer.
type APIReply struct {
	Status int
	Header map[string]string
	Body   []byte
}

// LogRequest reads an attempt's output from the node that ran it.
type LogRequest struct {
	Job       task.JobID
	Stage     int
	Shard     int
	Execution task.ExecutionID
	Stream    string // stdout, stderr, or "" = both as written
	From      int64  // byte offset
	Limit     int
	Tail      int         // last lines instead of From
	Hold      task.Millis // wait that long for more if the attempt still runs
}

// LogReply is a piece of it. Done: the attempt has ended and Next is the end.
type LogReply struct {
	Data []byte
	Next int64
	Done bool
}

// Ack answers calls that return nothing.
type Ack struct {
	Seq uint64 // of a checkpoint
}

// LeaveRequest takes the calling node out of the cluster.
type LeaveRequest struct{ By string }

// WhoRequest asks a member who leads.
type WhoRequest struct{}

// WhoReply answers it by what the member knows; "" = nobody.
type WhoReply struct {
	Leader task.NodeID
}

// PingRequest asks how far a member's log is.
type PingRequest struct{}

// PingReply answers it. LastIndex 0 = it keeps no log.
type PingReply struct {
	LastIndex, Applied, Term uint64
	Level                    int
	Wall                     int64 // what its wall clock shows, Unix milliseconds; 0 = of an older version
}
