package task

import (
	"slices"
	"strings"
)

// NodeInfo is what a node says of itself when it registers (R5). Nothing in it is an address.
type NodeInfo struct {
	ID       NodeID   `json:"id"`
	Name     string   `json:"name"`
	OS       string   `json:"os"`
	Arch     string   `json:"arch"`
	CPUs     int      `json:"cpus"`
	MemoryMB int      `json:"memory_mb"`
	Version  string   `json:"version"`
	Level    int      `json:"level"`            // highest cluster level this binary can apply (R47)
	Slots    int      `json:"slots"`            // attempts at once; the number of processors by default
	Voter    bool     `json:"voter"`            // may become a Raft voter (not joined with --worker)
	Labels   []KV     `json:"labels,omitempty"` // sorted; set on the machine
	Shells   []string `json:"shells,omitempty"`
	// Limits says whether it enforces the resources of a job file: "cgroup", or "not enforced: " with the reason (R34).
	Limits string `json:"limits,omitempty"`
	// Laptop: it has a battery. Host names the hardware, so that two nodes of one machine are known as such. MACs are for waking it
	// (Wake-on-LAN). Refuses are queues of which it takes nothing (R46).
	Laptop  bool     `json:"laptop,omitempty"`
	Host    string   `json:"host,omitempty"`
	MACs    []string `json:"macs,omitempty"`
	Refuses []string `json:"refuses,omitempty"` // sorted
	// Reserve is the percentage of the machine that is left free of bookings (R34); 0 = DefaultReserve, -1 = nothing is.
	Reserve int `json:"reserve,omitempty"`
	// RunAs is the user that tasks run as which ask for none, "" = the node's own. Inhibit is when the machine may be kept awake for
	// its tasks (R15), "" = DefaultInhibit. For people: the node itself obeys both, the cluster decides nothing by them.
	RunAs   string `json:"run_as,omitempty"`
	Inhibit string `json:"inhibit,omitempty"`
}

// UserLabel begins the labels that a node gives itself for the users whose programs it may run: user.anna=true. A stage with user: anna
// requires it (R46).
const UserLabel = "user."

// DefaultReserve is the percentage of a machine that is left free of bookings (R34).
const DefaultReserve = 20

// DefaultInhibit is when a machine is kept awake for its tasks unless its owner says otherwise: while it is on mains power.
const DefaultInhibit = "mains"

// UnstableAfter is how many crashes in a row make a node unstable (R45).
const UnstableAfter = 3

// ReasonAsleep is the reason of a node that said that it goes to sleep (R16).
const ReasonAsleep = "asleep"

// Load is what a heartbeat carries (R6).
type Load struct {
	CPU        float64 `json:"cpu"` // processors busy, 0 … CPUs
	MemFreeMB  int     `json:"mem_free_mb"`
	DiskFreeMB int     `json:"disk_free_mb"`
	// Battery: it runs on its battery now. Heartbeats carry it, the ledger does not keep it.
	Battery bool `json:"battery,omitempty"`
	// Awake is how it stands with keeping the machine awake while something runs (R15), for a person: "held: sleep and idle", "cannot
	// be held: …"; "" = nothing runs, so nothing is held. Kept like Battery.
	Awake string `json:"awake,omitempty"`
}

// Label gives a label's value: automatic ones first (node, os, arch), then the machine's own.
func (n *NodeInfo) Label(name string) (string, bool) {
	switch name {
	case "node":
		return n.Name, true
	case "os":
		return n.OS, true
	case "arch":
		return n.Arch, true
	case "laptop":
		if n.Laptop {
			return "true", true
		}
	}
	i, ok := slices.BinarySearchFunc(n.Labels, name, func(kv KV, s string) int { return strings.Compare(kv.Name, s) })
	if ok {
		return n.Labels[i].Value, true
	}
	if slices.Contains(n.Shells, name) {
		return "true", true
	}
	return "", false
}

// Op is a comparison of a Requirement.
type Op string

// The comparisons.
const (
	OpEqual    Op = "="
	OpNotEqual Op = "!="
	OpIn       Op = "in"
	OpExists   Op = "exists"
)

// Requirement is one line of placement.require: gpu=true, os in (linux,darwin), arch!=arm, ssd.
type Requirement struct {
	Label  string   `json:"label"`
	Op     Op       `json:"op"`
	Values []string `json:"values,omitempty"`
}

// Match tells whether a node fits.
func (r Requirement) Match(n *NodeInfo) bool {
	v, ok := n.Label(r.Label)
	switch r.Op {
	case OpEqual, OpIn:
		return ok && slices.Contains(r.Values, v)
	case OpNotEqual:
		return !ok || !slices.Contains(r.Values, v)
	}
	return ok
}

func (r Requirement) String() string {
	switch r.Op {
	case OpExists:
		return r.Label
	case OpIn:
		return r.Label + " in (" + strings.Join(r.Values, ",") + ")"
	}
	return r.Label + string(r.Op) + strings.Join(r.Values, ",")
}

// Unmatched gives the requirements that a node does not meet.
func Unmatched(rs []Requirement, n *NodeInfo) []Requirement {
	var out []Requirement
	for _, r := range rs {
		if !r.Match(n) {
			out = append(out, r)
		}
	}
	return out
}
