package transport

import (
	"time"

	"lanjobs/task"
)

// DrainBody asks a node to take nothing new and give back what it has.
type DrainBody struct {
	DeadlineSeconds float64 `json:"deadline_seconds"` // running attempts may finish until then
	Reason          string  `json:"reason,omitempty"`
}

// WakeView says who sent packets to wake a machine. Whether it wakes shows in its state.
type WakeView struct {
	Node task.NodeView `json:"node"` // as it was then
	Sent int           `json:"sent"` // machines that sent them
	From []WakeSender  `json:"from"`
}

// WakeSender is one machine that was asked to send them.
type WakeSender struct {
	ID       task.NodeID `json:"id"`
	Name     string      `json:"name"`
	Networks []string    `json:"networks,omitempty"` // broadcast addresses that it sent to
	Problem  string      `json:"problem,omitempty"`  // why it did not
}

// LabelBody sets labels of a node from afar; an empty value removes one.
type LabelBody struct {
	Set []task.KV `json:"set"`
}

// RoleBody says whether a machine should vote (R17).
type RoleBody struct {
	Role string `json:"role"` // voter: before all others; worker: never; auto: as the leader chooses
}

// ClientView is somebody's access from elsewhere.
type ClientView struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Role    string     `json:"role"`
	By      string     `json:"created_by,omitempty"` // who made the token it came by
	Created *time.Time `json:"created,omitempty"`
}

// WhoView is who asks.
type WhoView struct {
	By      string `json:"by"` // as the audit log names it
	Role    string `json:"role"`
	Client  string `json:"client,omitempty"` // id of the client; "" = the owner of the member that was asked
	Cluster string `json:"cluster,omitempty"`
}

// TokenBody makes a join token, or with Role a login token.
type TokenBody struct {
	Role       string  `json:"role,omitempty"` // viewer, operator or admin: it lets a client in, and no machine
	TTLSeconds float64 `json:"ttl_seconds"`
	Uses       int     `json:"uses"`
	Worker     bool    `json:"worker"` // whoever joins with it never becomes a voter
}

// TokenView is a join or login token; Token is given only when it is made, since only its hash is stored.
type TokenView struct {
	ID          string   `json:"id"`
	Token       string   `json:"token,omitempty"`
	Join        []string `json:"join,omitempty"` // complete join lines, one per address of this member
	LeftSeconds float64  `json:"left_seconds"`
	UsesLeft    int      `json:"uses_left"`
	Worker      bool     `json:"worker"`
	Role        string   `json:"role,omitempty"` // of a login token
	By          string   `json:"created_by,omitempty"`
}

// InitBody turns a this-machine-only node into the first member of a cluster.
type InitBody struct {
	Cluster string `json:"cluster"`
	Listen  string `json:"listen"` // ADDR:PORT
}

// InitView answers it.
type InitView struct {
	Cluster     string   `json:"cluster"`
	ClusterID   string   `json:"cluster_id"`
	Node        string   `json:"node"`
	Fingerprint string   `json:"ca_fingerprint"` // as a person compares it: 3F9A-7C21-…
	Addresses   []string `json:"addresses"`
}

// LeaveBody asks this node to leave the cluster.
type LeaveBody struct {
	Force bool `json:"force"`
}

// DoctorBody asks for checks: of the machines named, or of the one that is asked.
type DoctorBody struct {
	Nodes []task.NodeID `json:"nodes,omitempty"` // 64 at most
}

// PairCodeBody brings a code that a person has typed.
type PairCodeBody struct {
	Code string `json:"code"` // see ParsePairCode
}

// PairDecision lets a machine or a person in. Which of the two waits is not for the decision to say: one that does not fit is refused.
type PairDecision struct {
	Worker bool `json:"worker"` // a machine never becomes a voter, whatever it asked for
	// Role is what a person gets, also if it is what was asked for: a program that does not know of logins says none, and lets no
	// person in by mistake. "" = a machine.
	Role string `json:"role,omitempty"`
}

// PairingView is a machine that waits to be let in, or a person at one. The code is known there alone.
type PairingView struct {
	ID           string      `json:"id,omitempty"` // once its code was typed: for approve
	Node         task.NodeID `json:"node_id"`      // "" for a person
	Name         string      `json:"name"`
	OS           string      `json:"os"`
	Arch         string      `json:"arch"`
	Version      string      `json:"version"`
	Address      string      `json:"address"`
	AskedSeconds float64     `json:"asked_seconds"` // since it asked
	Worker       bool        `json:"worker"`        // it wants to run jobs only
	// Role is the role that a person asks for or, once let in, was given; "" = it is a machine.
	Role string `json:"role,omitempty"`
}

// Survivor is one machine as POST /v1/recover sees it.
type Survivor struct {
	ID          task.NodeID `json:"id"`
	Name        string      `json:"name"`
	Role        string      `json:"role"` // leader, voter, standby, worker
	Self        bool        `json:"self,omitempty"`
	Answers     bool        `json:"answers"` // and is of this machine's generation
	AwaySeconds float64     `json:"away_seconds,omitempty"`
	Refusal     string      `json:"refusal,omitempty"`
	Generation  uint64      `json:"generation,omitempty"` // number; 0 = it did not say
	LastTerm    uint64      `json:"last_term"`
	LastIndex   uint64      `json:"last_index"` // of its log; 0 = it keeps none, or did not answer
	Behind      int64       `json:"behind"`     // entries, of the log that is furthest
	Leader      task.NodeID `json:"leader,omitempty"`
}

// RecoverView says who is left of a cluster and whether this machine may go on alone.
type RecoverView struct {
	Cluster    string     `json:"cluster"`
	Generation uint64     `json:"generation"`
	Voters     int        `json:"voters"`
	Answering  int        `json:"answering"`
	Needed     int        `json:"needed"`
	Best       string     `json:"best"` // the machine whose log is furthest
	Machines   []Survivor `json:"machines"`
	// Refusal is why nothing is to be recovered, or not here; "" = this machine may. Older: only since another knows more.
	Refusal string   `json:"refusal,omitempty"`
	Hint    string   `json:"hint,omitempty"`
	Older   bool     `json:"older,omitempty"`
	Above   []uint64 `json:"-"` // generation numbers seen
}

// RecoverBody has this machine go on alone.
type RecoverBody struct {
	Cluster string `json:"cluster"` // its name, as a person has typed it
	Older   bool   `json:"older,omitempty"`
}
