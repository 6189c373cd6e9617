package fsm

import (
	"bytes"
	"slices"
	"strings"

	"lanjobs/task"
)

// apply saves a checkpoint under the lease. A repeat of the newest number is accepted, an older number is not: two saves
// of one attempt may overtake each other on the wire, and the value never goes back (C35).
func (c *Checkpoint) apply(s *State) Result {
	if len(c.Data) > task.MaxCheckpointBytes {
		return refuse(task.ErrTooLarge, "Save the file elsewhere and checkpoint its name.", "a checkpoint holds at most %d bytes, this one has %d", task.MaxCheckpointBytes, len(c.Data))
	}
	j, sh, problem := s.holder(c.Ref, c.Token, "checkpoint")
	if problem != nil {
		return Result{Err: problem}
	}
	var old task.Checkpoint
	if sh.Extra != nil {
		old = sh.Extra.Checkpoint
	}
	if c.Seq < old.Seq || c.Seq == old.Seq && !bytes.Equal(c.Data, old.Data) {
		return refuse(task.ErrConflict, "", "checkpoint %d is already followed by %d", c.Seq, old.Seq)
	}
	if c.Seq == old.Seq {
		return Result{Version: c.Seq}
	}
	x := sh.mutExtra()
	x.Checkpoint = task.Checkpoint{Seq: c.Seq, Data: bytes.Clone(c.Data)}
	x.CheckpointAt, x.CheckpointBy = s.Clock, c.Token
	s.emitShard(task.EventCheckpoint, j, c.Ref.Stage, c.Ref.Shard, sh, task.Event{Seq: c.Seq, Bytes: len(c.Data)})
	return Result{Version: c.Seq}
}

// apply registers an output under the lease; the same name again replaces the value.
func (c *PutOutput) apply(s *State) Result {
	if c.Output.Name == "" || len(c.Output.Value) > task.MaxOutputBytes {
		return refuse(task.ErrTooLarge, "", "an output needs a name and holds at most %d bytes", task.MaxOutputBytes)
	}
	j, sh, problem := s.holder(c.Ref, c.Token, "output")
	if problem != nil {
		return Result{Err: problem}
	}
	kvs := setKVKeepEmpty(sh.Outputs(), task.KV{Name: strings.Clone(c.Output.Name), Value: c.Output.Value})
	size := 0
	for _, kv := range kvs {
		size += len(kv.Name) + len(kv.Value)
	}
	if size > task.MaxShardOutputBytes {
		return refuse(task.ErrTooLarge, "", "the outputs of a shard hold at most %d bytes together", task.MaxShardOutputBytes)
	}
	sh.mutExtra().Outputs = kvs
	s.emitShard(task.EventOutput, j, c.Ref.Stage, c.Ref.Shard, sh, task.Event{Reason: c.Output.Name, Bytes: len(c.Output.Value)})
	return Result{}
}

// apply writes a job's shared key under the lease, if its version is the expected one (R12).
func (c *PutState) apply(s *State) Result {
	if c.Key == "" || len(c.Key) > 256 || len(c.Value) > task.MaxStateValueBytes {
		return refuse(task.ErrTooLarge, "", "a key has 1 to 256 bytes, its value at most %d", task.MaxStateValueBytes)
	}
	j, sh, problem := s.holder(c.Ref, c.Token, "write of key "+c.Key)
	if problem != nil {
		return Result{Err: problem}
	}
	i, found := slices.BinarySearchFunc(j.KV, c.Key, func(k StateKey, key string) int { return strings.Compare(k.Key, key) })
	var old StateKey
	if found {
		old = j.KV[i]
	}
	if found && c.RequestID != "" && old.request == c.RequestID {
		return Result{Version: old.Version}
	}
	if c.IfVersion != nil && *c.IfVersion != old.Version {
		r := refuse(task.ErrConflict, "", "key %q has version %d, not %d", c.Key, old.Version, *c.IfVersion)
		r.Version = old.Version
		return r
	}
	size := len(c.Key) + len(c.Value) - len(old.Key) - len(old.Value)
	for _, k := range j.KV {
		size += len(k.Key) + len(k.Value)
	}
	if size > task.MaxJobStateBytes {
		return refuse(task.ErrTooLarge, "", "the keys of a job hold at most %d bytes together", task.MaxJobStateBytes)
	}
	j.kvVersion++
	entry := StateKey{Key: c.Key, Version: j.kvVersion, Value: bytes.Clone(c.Value), request: c.RequestID}
	kv := slices.Clone(j.KV)
	if found {
		kv[i] = entry
	} else {
		kv = slices.Insert(kv, i, entry)
	}
	j.KV = kv
	s.emitShard(task.EventState, j, c.Ref.Stage, c.Ref.Shard, sh, task.Event{Reason: c.Key, Seq: entry.Version, Bytes: len(c.Value)})
	return Result{Version: entry.Version}
}

// StateValue reads a shared key; version 0 = absent.
func (j *Job) StateValue(key string) ([]byte, uint64) {
	i, found := slices.BinarySearchFunc(j.KV, key, func(k StateKey, key string) int { return strings.Compare(k.Key, key) })
	if !found {
		return nil, 0
	}
	return j.KV[i].Value, j.KV[i].Version
}
