// Package doctor checks a machine and its way to the others (`lanjobs doctor`).
//
// Facts are gathered first, by this package (Look: the disk, the folder, sleep) and by the node (its peers, voters, version); Judge is
// a pure function from facts to findings, one per check, always all of them in one order. A fact that a system does not tell gives a
// finding that says so: nothing is guessed. Nothing here changes the machine; Fix, on a person's word, changes little.
package doctor

import (
	"io/fs"
	"time"

	"lanjobs/task"
)

// Facts are all that is judged.
type Facts struct {
	OS      string // runtime.GOOS
	Version string
	Program string

	Disk   Disk
	Folder Folder
	Sleep  Sleep
	Zones  error // of the time zone data
	// Quarantined: macOS holds the program back until a person has allowed it. Empty elsewhere.
	Quarantined bool

	// Node is nil where none runs.
	Node *Node
}

// Disk is where the data folder is.
type Disk struct {
	System  string // of files: ext4, apfs
	Network bool   // it is another machine's
	FreeMB  int
	Syncs   []time.Duration // that a small synced write took, sorted
	Err     error
}

// Folder is the data folder.
type Folder struct {
	Path   string
	Mode   fs.FileMode // 0 = there is none yet
	Socket string
	Most   int // bytes that the system takes for a socket's path
}

// Sleep is what this machine does when nobody uses it.
type Sleep struct {
	Known  bool
	Sleeps bool
	After  time.Duration // 0 = not told
	How    string        // how that is known: "pmset", "logind IdleAction=suspend"
}

// Node is what the node that runs here knows.
type Node struct {
	Name    string
	Member  bool
	Voter   bool // or may become one
	Seat    bool // it is one now
	Leads   bool
	Limits  string // as in task.NodeInfo
	Laptop  bool   // it has a battery
	Awake   string // as in task.Load: how it stands with keeping the machine awake
	Service bool
	First   bool // the first process of its container
	Port    int
	Addrs   []Addr // announced, best first
	Peers   []Peer
	Voters  []Voter
	Members int // machines of the cluster
	Leader  bool
}

// Addr is an address that this node announces, with its interface.
type Addr struct{ Addr, Interface string }

// Peer is another member.
type Peer struct {
	Name    string
	Version string
	Away    time.Duration // since it was heard of; 0 = it answers
	Err     error         // of calling it
	Down    bool          // its machine answers and says that nothing listens there
	// Ahead is how much its wall clock is ahead of ours; HasClock: it told.
	HasClock bool
	Ahead    time.Duration
	// Of its calls back. Probed: it made them.
	Probed    bool
	Failed    []Failed // addresses of ours that it could not reach
	Reached   int
	Sent, Got int // datagrams from here to it
	BackSent  int // and from it to here
	BackGot   int
}

// Failed is an address that did not answer.
type Failed struct{ Addr, Why string }

// Voter is one voter.
type Voter struct {
	Name    string
	Host    string // names its hardware, "" = not told
	Answers bool
}

// Judge makes the findings.
func Judge(f *Facts) []task.Finding {
	checks := []struct {
		name  string
		check func(*Facts) task.Finding
		node  bool // only where a node runs
		of    string
	}{
		{name: "binary", check: binary}, {name: "disk", check: disk}, {name: "folder", check: folder}, {name: "paths", check: paths},
		{name: "sleep", check: sleep}, {name: "zones", check: zones}, {name: "quarantine", check: quarantine, of: "darwin"},
		{name: "service", check: service, node: true}, {name: "limits", check: limits, node: true},
		{name: "awake", check: keptAwake, node: true}, {name: "clock", check: clock, node: true},
		{name: "ports", check: ports, node: true}, {name: "network", check: network, node: true}, {name: "address", check: address, node: true},
		{name: "certificate", check: certificate, node: true}, {name: "quorum", check: quorum, node: true}, {name: "voters", check: voters, node: true},
	}
	var out []task.Finding
	for _, c := range checks {
		if c.node && f.Node == nil || c.of != "" && c.of != f.OS {
			continue
		}
		finding := c.check(f)
		finding.Check = c.name
		out = append(out, finding)
	}
	if f.Node == nil {
		out = append(out, task.Finding{Check: "node", Level: task.LevelWarn, Text: "no node runs here: what needs one was not checked", Fix: "lanjobs init, or lanjobs join MACHINE"})
	}
	return out
}

func ok(text string) task.Finding { return task.Finding{Level: task.LevelOK, Text: text} }
func warn(text, fix string) task.Finding {
	return task.Finding{Level: task.LevelWarn, Text: text, Fix: fix}
}
func bad(text, fix string) task.Finding {
	return task.Finding{Level: task.LevelBad, Text: text, Fix: fix}
}
func unknown(text string) task.Finding { return task.Finding{Level: task.LevelUnknown, Text: text} }
