package fsm

import "lanjobs/task"

// State is everything the cluster agrees on. Apply and Snapshot are its only writers; between them others may read, and must
// not keep what they were given by pointer. The caller keeps writers and readers apart (node/raftfsm.go).
type State struct {
	Clock      task.Instant // milliseconds led; leases and retries live on it
	Led        task.Millis  // Clock and the idle time led between: retention, idempotency windows, join tokens
	Wall       int64        // of the last batch; display only
	Index      uint64       // of the last applied entry
	Generation uint64
	Leader     task.NodeID // of the last Elected
	Term       uint64
	nextToken  uint64 // n of the last token given in this generation

	Cluster Cluster
	nodes   []*Node // in order of first registration; a place is never reused
	tokens  []*JoinToken
	clients []*Client // in order of their admission
	jobs    cow[*Job] // by sequence number; nil = collected

	queues    []*queue    // sorted by name; the default one is always among them
	schedules []*Schedule // sorted by name
	keys      cow[KeyProof]
	acts      []act  // the newest acts on queues and schedules: a repeat is answered, not done again
	epoch     uint64 // rises with each snapshot; records of an older epoch are cloned before a write

	// Derived from the above, rebuilt by index(): never in snapshots or digests.
	nodeAt    map[task.NodeID]int32
	jobAt     map[task.JobID]int
	byKey     map[string]int // idempotency key -> newest job
	byRequest map[task.RequestID]int
	specs     map[string]*Spec // by canonical JSON; jobs of equal specs share one
	leases    map[task.Token]*Lease
	held      []map[task.Token]*Lease // by node place
	booked    map[int32]Booked        // by node place

	scheduleChanges uint64

	waits    waitHeap
	expiries ledHeap          // jobs with a start_within or deadline, by when it passes on Led
	runs     map[string][]int // schedule -> its unfinished jobs, ascending
	keyAt    map[string]int   // shard key -> place in keys
	keyEnds  ledHeap          // places in keys, by when they end on Led
	due      task.Instant     // no lease deadline lies before it
	live     int              // jobs that are not final
	shards   int              // of all jobs
	weight   int64            // bytes of specs, of all jobs' records and of shard keys

	waitsMost, expiriesMost int // beyond these lengths waits and expiries are rid of what no longer holds

	out      []task.Event // of the batch being applied
	likely   int          // about how many there will be
	released releaseGroup // not yet in out
	over     []string     // schedules of which a job ended in the command being applied
}

// Cluster is what members are issued from; empty on a this-machine-only node.
type Cluster struct {
	ID, Name      string
	CACert, CAKey []byte
	GossipKey     []byte
}

// Node is one machine as the cluster knows it. No address is in it (R2).
type Node struct {
	Info        task.NodeInfo
	Incarnation uint64 // 0 = admitted, never registered
	Online      bool
	Draining    bool
	DrainUntil  task.Instant // running attempts are stopped from then on
	Gone        NodeAction   // NodeRemove or NodeLeave; "" = a member
	Extra       []task.KV    // labels set from afar, over the machine's own
	WorkerOnly  bool
	Since       int64 // wall clock of the last change of Online, display
	Reason      string
	Admitted    string // id of the join token it came by; "" = by a person's approval, or it made the cluster
	Key         []byte // hash of the key that it was admitted with; empty = by a version that kept none, or it made the cluster
	Care        Care   // level 3
}

// Care is what the cluster knows of how well a machine serves it.
type Care struct {
	Seat       NodeAction  // NodePromote or NodeDemote by a person's word; "" = the leader chooses
	Crashes    int         // in a row (R45)
	Unstable   bool        // it crashed UnstableAfter times in a row: nothing new for it until a person clears it
	Registered task.Millis // on Led
	// Present and Absent are how long it was online and offline up to Changed, on Led, halved when they grow old: for the choice of
	// voters.
	Present, Absent, Changed task.Millis
}

// Labelled gives the info with the labels set from afar merged in.
func (n *Node) Labelled() task.NodeInfo {
	info := n.Info
	if len(n.Extra) > 0 {
		info.Labels = mergeKVs(info.Labels, n.Extra)
	}
	return info
}

// JoinToken is a join token's hash and what is left of it.
type JoinToken struct {
	ID     string
	Hash   []byte
	Until  task.Millis // on Led
	Uses   int
	Worker bool
	By     string
	Role   Role // not empty: a login token
}

// Spec is a decoded job spec with the bytes it came from.
type Spec struct {
	task.Spec
	JSON   string
	Digest string
	needs  [][]int  // per stage, the places of those it needs
	ranks  []*ranks // per stage, the order of grants; nil = by number
	level  int      // the cluster level that it needs
	users  int
}

// New is the state before the first entry.
func New() *State {
	s := &State{epoch: 1, keys: newCowFrom[KeyProof](0, 0)}
	s.index()
	return s
}

// mutJob gives a job for writing.
func (s *State) mutJob(seq int) *Job {
	slot := s.jobs.mut(seq, s.epoch)
	j := *slot
	if j.epoch != s.epoch {
		clone := *j
		clone.epoch = s.epoch
		clone.Stages = append([]Stage(nil), j.Stages...)
		for i := range clone.Stages {
			clone.Stages[i].shards = j.Stages[i].shards.freeze()
		}
		j = &clone
		*slot = j
	}
	return j
}

// mutShard gives a shard for writing.
func (s *State) mutShard(j *Job, stage, shard int) *Shard {
	return j.Stages[stage].shards.mut(shard, s.epoch)
}

// mutNode gives a node for writing, replaced whole for the same reason.
func (s *State) mutNode(i int32) *Node {
	n := *s.nodes[i]
	s.nodes[i] = &n
	return &n
}

func mergeKVs(base, over []task.KV) []task.KV {
	out := append([]task.KV(nil), base...)
	for _, kv := range over {
		out = setKV(out, kv)
	}
	return out
}

// setKV sets a name in a sorted list; an empty value removes it. The input is not changed.
func setKV(kvs []task.KV, kv task.KV) []task.KV {
	i := 0
	for i < len(kvs) && kvs[i].Name < kv.Name {
		i++
	}
	out := append([]task.KV(nil), kvs[:i]...)
	if kv.Value != "" {
		out = append(out, kv)
	}
	if i < len(kvs) && kvs[i].Name == kv.Name {
		i++
	}
	return append(out, kvs[i:]...)
}
