package task

// Assignment is one shard given to a node with its lease. Together with the job's Spec it is all a worker needs.
type Assignment struct {
	Job     JobID
	Stage   int // index in Spec.Stages
	Shard   int
	Attempt int // 1 …
	Token   Token
	// SpecDigest is the digest of the job's spec, by which a worker knows those that it has, also of other jobs; "" = not known.
	SpecDigest string
	FirstTTL   Millis // length of the lease as granted; later renewals give the job's TTL
	// MustRenew: the grant is older than the request that fetched it, so the holder may not count from that request:
	// it starts only after its first renewal is acknowledged.
	MustRenew  bool
	Checkpoint *Checkpoint // the last accepted one, nil if none
	// ScheduledFor is the planned time of a scheduled job in Unix milliseconds, 0 if none.
	ScheduledFor int64
	// Item is the shard's item, "" if the stage has none. Of is the number of shards of the stage when it was granted. Range
	// is what the shard works on, nil in a stage without a range. These count, not the Spec: a stage may get its shards when
	// it opens, and a shard may have been split.
	Item  string
	Of    int
	Range *ShardRange
}

// Execution is the assignment's execution id.
func (a *Assignment) Execution() ExecutionID { return a.Token.Execution() }

// Ref names the shard.
func (a *Assignment) Ref() ShardRef { return ShardRef{a.Job, a.Stage, a.Shard} }

// Report says how one attempt ended. It is kept on the node's disk until acknowledged; repeating it is harmless (R20).
type Report struct {
	Job     JobID
	Stage   int
	Shard   int
	Token   Token
	Outcome Outcome
	Outputs []KV // taken only when the attempt succeeded, added to those registered while it ran
}
