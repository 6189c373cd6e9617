package task

// Limits, each enforced at the edge (job file, API, task endpoint) and checked again inside Apply.
const (
	MaxNameLength       = 63
	MaxJobFileBytes     = 256 << 10
	MaxSpecBytes        = 4 << 20   // canonical JSON of a job, items and files included
	MaxFilesBytes       = 256 << 10 // files sent with a job
	MaxStages           = 100
	MaxShards           = 1_000_000
	MaxRange            = 1 << 53 // numbers in a range: what a JSON reader of any language keeps exactly
	MaxWeight           = 1_000_000
	MaxShardKey         = 255 // bytes of a shard's key, expanded
	MaxMilliCPU         = 1_024_000
	MaxResourceMB       = 1 << 30 // MiB, of memory and of disk
	MaxQueues           = 1000
	MaxSchedules        = 10_000
	MaxFinishedJobs     = 10_000 // kept; the oldest go first
	MaxCheckpointBytes  = 256 << 10
	MaxOutputBytes      = 4 << 10
	MaxShardOutputBytes = 64 << 10
	MaxOutputs          = 1000 // of a shard
	MaxStateValueBytes  = 64 << 10
	MaxJobStateBytes    = 1 << 20
	MaxTailBytes        = 4 << 10  // of a failed attempt, kept in its record
	MaxLogBytes         = 10 << 20 // of an attempt's output, kept on its machine: head and tail
	MaxHistory          = 50       // ended attempts kept per shard; older ones are in the audit log
	MaxDefers           = 100
	MaxMessageLength    = 512
	MaxSlots            = 1024
)

// DefaultMilliCPU is booked for an attempt of a stage that says nothing about resources: one processor.
const DefaultMilliCPU = 1000
