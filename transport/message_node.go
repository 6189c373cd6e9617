package transport

import "lanjobs/task"

// Calls that are about a machine and its place in the cluster.
const (
	MethodTwin   Method = "twin"   // to any member: does it hear another machine under the caller's id? also to that machine
	MethodRejoin Method = "rejoin" // to the leader: a member that lost its log asks to go on as a new one
	MethodProbe  Method = "probe"  // to any member: can it reach the caller?
	MethodDoctor Method = "doctor" // to any member: check yourself
	// MethodHistory is answered by any member to members of every generation: which history does it hold, and how far?
	MethodHistory Method = "history"
	// MethodDigest is from the leader to members that keep a copy: what is the digest of the state after an entry?
	MethodDigest Method = "digest"
)

// DigestRequest asks for the digest of the state after the first command at or behind Index. With Digest, it tells instead what
// the leader's was after exactly that entry.
type DigestRequest struct {
	Index  uint64
	Digest string
}

// DigestReply answers it. Digest "": the entry had passed already, or did not come in time.
type DigestReply struct {
	Index  uint64
	Digest string
}

// HistoryRequest asks a member for its history.
type HistoryRequest struct{}

// HistoryReply answers it.
type HistoryReply struct {
	Cluster ClusterInfo
	Member  bool // the caller is a member in this history
	Leader  task.NodeID
	// The newest entry of the answering node's log or snapshot, committed or not; both 0 = it keeps no log.
	LastTerm, LastIndex uint64
	Gone                []task.NodeID // machines that were removed, or have left, by the answering node's state
}

// TwinRequest asks a member where it hears the calling node. A node that hears it from its own id has a copy: somebody copied
// its data folder.
type TwinRequest struct {
	Addrs []string // of the caller
}

// TwinReply answers it.
type TwinReply struct {
	Addrs []string // of the caller's id, as gossip has them now; empty: it is not heard
	Same  bool     // the answering node has the caller's id
	Out   bool     // with Same: it takes no part in the cluster any more
}

// ProbeRequest asks a member to call back, at the addresses that it has of the caller: none can be given to it.
type ProbeRequest struct{}

// ProbeReply answers it.
type ProbeReply struct {
	TCP       []ProbedAddr
	Sent, Got int // datagrams to the caller, and answers to them; Sent 0: gossip does not hear of it
}

// ProbedAddr is one address of the caller. Err is empty where it answered.
type ProbedAddr struct{ Addr, Err string }

// DoctorRequest asks a member to check its machine and its way to the others.
type DoctorRequest struct{}

// DoctorReply answers it.
type DoctorReply struct{ View task.DoctorView }

// RejoinRequest asks for a new id in the place of the caller's, whose memory of the cluster is lost: under its old id it could
// vote against what it once acknowledged (I5, I15).
type RejoinRequest struct {
	CSR   string        // PEM, of the new identity
	Info  task.NodeInfo // with the new id
	Addrs []string      // where the caller listens
	Why   string        // what is wrong with its store, for the audit log
}
