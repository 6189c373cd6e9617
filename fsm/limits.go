package fsm

import (
	"unicode/utf8"

	"lanjobs/task"
)

// Limits of the replicated state itself, over those of task/limits.go. A log that needs more memory than a replica has, or
// hours to apply, stops all of them for good and again at each start, so Apply refuses before that; the edges refuse
// earlier and say it better. Raising one is a change of Apply like any other: behind a cluster version.
const (
	maxIDLength   = 128 // ids of jobs, nodes, requests and join tokens
	maxKeyLength  = 256 // names of outputs and shared keys, idempotency keys
	maxStateKeys  = 10_000
	maxLabels     = 256 // of a node
	maxLabelBytes = 16 << 10
	maxRetries    = 10_000 // fits Shard.Fails and Shard.Losses

	maxTotalShards = 10_000_000 // of all jobs
	maxWeight      = 1 << 30    // bytes of specs, checkpoints, outputs, shared keys and histories of all jobs
	fullHistory    = 64 << 20   // a job whose records weigh more keeps only the newest attempt of a shard, without its tail

	// maxLength bounds every length of time that enters the state, so that no sum overflows.
	maxLength = 3650 * task.Day
	maxLed    = task.Millis(1 << 53)

	// A repeated request is known for what it is as long as it is among so many of its job or attempt, and a repeated
	// submit for so long at least.
	requestMemory = 8
	requestWindow = 10 * task.Minute

	maxToken      = 1<<task.GenerationBits - 1
	maxGeneration = 1<<(64-task.GenerationBits) - 1
)

// length puts a length of time within its bounds.
func length(m task.Millis) task.Millis { return min(max(m, 0), maxLength) }

// clip cuts a text to n bytes, between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// clipTail keeps the last n bytes, between characters.
func clipTail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	from := len(s) - n
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return s[from:]
}

func validID[T ~string](id T) bool { return id != "" && len(id) <= maxIDLength }

// fits tells whether names and values stay within a number and a sum of bytes.
func fits(kvs []task.KV, number, bytes int) bool {
	if len(kvs) > number {
		return false
	}
	for _, kv := range kvs {
		bytes -= len(kv.Name) + len(kv.Value)
	}
	return bytes >= 0
}

// remember appends to a short memory, the oldest falling out; the input is not changed.
func remember[T any](memory []T, v T) []T {
	if len(memory) >= requestMemory {
		memory = memory[len(memory)-requestMemory+1:]
	}
	return append(memory[:len(memory):len(memory)], v)
}

// weight is how many bytes an Extra holds, roughly.
func (x *Extra) weight() int64 {
	if x == nil {
		return 0
	}
	n := len(x.Checkpoint.Data) + len(x.SkippedBy)
	if x.Range != nil {
		n += rangeWeight
	}
	for _, kv := range x.Outputs {
		n += len(kv.Name) + len(kv.Value)
	}
	for i := range x.History {
		n += recordWeight + len(x.History[i].Outcome.Message) + len(x.History[i].Outcome.Tail)
	}
	return int64(n)
}

// recordWeight is what an attempt's record takes without its texts.
const recordWeight = 136

func (sp *Spec) weight() int64 { return int64(len(sp.JSON) + len(sp.Digest)) }

func (k *StateKey) weight() int64 { return int64(len(k.Key) + len(k.Value)) }

// weigh books a change of what a job's records hold.
func (s *State) weigh(j *Job, by int64) {
	j.weight += by
	s.weight += by
}

// change replaces a shard's extra by a changed copy, since snapshots and readers may hold the old one, and books its weight.
func (s *State) change(j *Job, sh *Shard, f func(*Extra)) {
	x := Extra{}
	if sh.Extra != nil {
		x = *sh.Extra
	}
	f(&x)
	s.weigh(j, x.weight()-sh.Extra.weight())
	sh.Extra = &x
}

// full refuses what would make the records too heavy; what makes them lighter is always allowed.
func (s *State) full(more int64) *task.Problem {
	if more <= 0 || s.weight+more <= maxWeight {
		return nil
	}
	return task.NewProblem(task.ErrTooLarge, "the records of this cluster's jobs have reached "+itoa(maxWeight>>20)+" MiB", "Collect finished jobs earlier (retain), or keep large data on a shared folder.")
}
