package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"lanjobs/fsm"
	"lanjobs/node/leader"
	"lanjobs/node/observe"
	"lanjobs/node/plan"
	"lanjobs/task"
	"lanjobs/transport"
)

// Ledger is this member's copy of what the cluster agrees on, and who leads.
type Ledger interface {
	// Read gives the applied state to f for reading; f must be quick and keep nothing.
	Read(f func(*fsm.State))
	Standing() Standing
}

// Standing is what this member knows of the leadership. All of it is a hint; only a commit proves anything.
type Standing struct {
	Leads   bool          // a term runs here, everything committed before it is applied: Leader's methods work
	Leader  task.NodeID   // "" = none is known
	Silence time.Duration // since this member knew of a leader; 0 while it does
	Fresh   bool          // it has known none since its start: its copy is as old as the last entry in it
	Out     bool          // this machine takes no part in its cluster any more; Notices tells why
	Copy    bool          // this member applies the log; false on a plain worker, which has no state to show
}

// Leader commits and knows the sessions while this member leads; *leader.Leader is one. Seen, Progress and View are called within
// Ledger.Read, so they must not call it.
type Leader interface {
	Propose(ctx context.Context, c fsm.Command) (fsm.Result, error)
	// SubmitAll commits jobs under fresh ids, in their order; an error is that of the job at its place.
	SubmitAll(ctx context.Context, jobs []fsm.SubmitJob) ([]fsm.Result, []error)
	Seen(id task.NodeID) (leader.Seen, bool)
	Progress(t task.Token) string
	// View is what the term plans by, for explanations; nil while this member does not lead.
	View(s *fsm.State) *plan.View
}

// Peers are the other members.
type Peers interface {
	// Forward has the leader answer a request. task.ErrNoLeader: there is none, or it did not answer in time, or it leads no
	// more; it may have done what was asked.
	Forward(ctx context.Context, r *transport.APIRequest) (*transport.APIReply, error)
	// Call is transport.Caller.
	Call(ctx context.Context, to task.NodeID, method transport.Method, request, reply any) error
	// Members lists the machines by Raft's configuration and the address book, this one included. It is not called within
	// Ledger.Read.
	Members() []Member
}

// Member is one machine as this member sees it now.
type Member struct {
	ID        task.NodeID
	Role      Role
	Addresses []string      // ip:port, best first
	Away      time.Duration // since it was heard of; 0 = it answers
	Refusal   string        // why the last connection to it was refused
}

// Role is a machine's part in Raft.
type Role string

// The roles.
const (
	RoleLeader  Role = "leader"
	RoleVoter   Role = "voter"
	RoleStandby Role = "standby" // keeps the log, has no vote
	RoleWorker  Role = "worker"  // keeps no log
)

// Audit is this member's audit log; *observe.Audit is one.
type Audit interface {
	Query(ctx context.Context, f observe.Filter) (events []task.Event, more bool, err error)
	Follow(ctx context.Context, f observe.Filter, use func([]task.Event) error) error
	Last() observe.Position
}

// Machine does what concerns this machine itself.
type Machine interface {
	// Init makes a this-machine-only node the first member of a cluster (R46).
	Init(ctx context.Context, b transport.InitBody, by string) (*transport.InitView, error)
	// Leave takes this machine out of its cluster. It returns once that is decided, before the machine has stopped.
	Leave(ctx context.Context, b transport.LeaveBody, by string) error
	// Backup gives the state as of one entry, as GET /v1/backup answers.
	Backup(ctx context.Context) ([]byte, error)
	// Survey tells who is left of the cluster.
	Survey(ctx context.Context) (*transport.RecoverView, error)
	// Recover has this machine go on alone after a majority was lost. It returns once that is decided.
	Recover(ctx context.Context, b transport.RecoverBody, by string) (*transport.RecoverView, error)
}

// Pairing is the leader's list of machines and people that wait to be let in by their code.
type Pairing interface {
	Waiting() []transport.PairingView
	// Check compares a code with those of the waiting machines; one that has proven to have it comes back with an id.
	Check(ctx context.Context, code transport.PairCode, id task.RequestID) (*transport.PairingView, error)
	Approve(ctx context.Context, pairing string, b transport.PairDecision, by string) (*transport.PairingView, error)
	Refuse(pairing, by string) error
}

// Config is what an API is built from.
type Config struct {
	Self    task.NodeID
	Name    string // of this machine, for people
	Cluster string // that this machine belongs to, "" = none: after a start without a leader the ledger does not know it yet
	Version string
	Clock   task.Clock
	Log     *slog.Logger
	Ledger  Ledger
	Leader  Leader
	Peers   Peers
	Machine Machine
	Doctor  Doctor          // nil = no checks
	Process Process         // nil = the node lives in another program
	Pairing Pairing         // nil: this machine is no cluster
	Notices func() []string // what status says about this machine itself; may be nil
	Audit   Audit           // nil where Standing.Copy is false
	// NewID makes a request id for a write that has none: random, different at every call.
	NewID func() task.RequestID
}

// Validate returns all faults at once.
func (c *Config) Validate() error {
	var faults []error
	for _, f := range []struct {
		bad  bool
		what string
	}{
		{c.Self == "", "Self"}, {c.Clock == nil, "Clock"}, {c.Log == nil, "Log"}, {c.Ledger == nil, "Ledger"},
		{c.Leader == nil, "Leader"}, {c.Peers == nil, "Peers"}, {c.Machine == nil, "Machine"}, {c.NewID == nil, "NewID"},
	} {
		if f.bad {
			faults = append(faults, fmt.Errorf("api: %s is missing", f.what))
		}
	}
	return errors.Join(faults...)
}

var (
	_ Leader = (*leader.Leader)(nil)
	_ Audit  = (*observe.Audit)(nil)
)
