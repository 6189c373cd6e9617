package fsm

import (
	"bytes"
	"slices"

	"lanjobs/task"
)

// apply saves a checkpoint under the lease. A repeat of the newest number is accepted, an older number is not: two saves
// of one attempt may overtake each other on the wire, and the value never goes back (C35).
func (c *Checkpoint) apply(s *State) Result {
	if len(c.Data) > task.MaxCheckpointBytes {
		return refuse(task.ErrTooLarge, "Save the file elsewhere and checkpoint its name.", "a checkpoint holds at most %d bytes, this one has %d", task.MaxCheckpointBytes, len(c.Data))
	}
	if c.Seq == 0 {
		return refuse(task.ErrInvalid, "", "checkpoints are numbered from 1")
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
		r := refuse(task.ErrConflict, "", "checkpoint %d was saved already", old.Seq)
		r.Version = old.Seq
		return r
	}
	if c.Seq == old.Seq {
		return Result{Version: c.Seq}
	}
	if problem := s.full(int64(len(c.Data) - len(old.Data))); problem != nil {
		return Result{Err: problem}
	}
	s.change(j, sh, func(x *Extra) {
		x.Checkpoint = task.Checkpoint{Seq: c.Seq, Data: bytes.Clone(c.Data)}
		x.CheckpointAt, x.CheckpointBy = s.Clock, c.Token
	})
	s.emitShard(task.EventCheckpoint, j, c.Ref.Stage, c.Ref.Shard, sh, task.Event{Seq: c.Seq, Bytes: len(c.Data)})
	return Result{Version: c.Seq}
}

// apply registers an output under the lease; the same name again replaces the value.
func (c *PutOutput) apply(s *State) Result {
	if problem := checkOutput(c.Output); problem != nil {
		return Result{Err: problem}
	}
	if len(c.RequestID) > maxIDLength {
		return refuse(task.ErrInvalid, "", "a request id has at most %d bytes", maxIDLength)
	}
	j, sh, problem := s.holder(c.Ref, c.Token, "output")
	if problem != nil {
		return Result{Err: problem}
	}
	if _, done := sh.wrote(c.RequestID); done || c.RequestID == "" && slices.Contains(sh.Outputs(), c.Output) {
		return Result{Existed: true}
	}
	kvs := putKVs(sh.Outputs(), []task.KV{c.Output})
	if problem := checkOutputs(kvs); problem != nil {
		return Result{Err: problem}
	}
	if problem := s.full(int64(len(c.Output.Name) + len(c.Output.Value))); problem != nil {
		return Result{Err: problem}
	}
	s.change(j, sh, func(x *Extra) {
		x.Outputs = kvs
		if c.RequestID != "" {
			x.puts = remember(x.puts, put{c.RequestID, 0})
		}
	})
	s.emitShard(task.EventOutput, j, c.Ref.Stage, c.Ref.Shard, sh, task.Event{Reason: c.Output.Name, Bytes: len(c.Output.Value)})
	return Result{}
}

func checkOutput(kv task.KV) *task.Problem {
	if kv.Name == "" || len(kv.Name) > maxKeyLength || len(kv.Value) > task.MaxOutputBytes {
		return task.NewProblem(task.ErrTooLarge, "an output has a name of 1 to "+itoa(maxKeyLength)+" bytes and a value of at most "+itoa(task.MaxOutputBytes), "")
	}
	return nil
}

func checkOutputs(kvs []task.KV) *task.Problem {
	if !fits(kvs, task.MaxOutputs, task.MaxShardOutputBytes) {
		return task.NewProblem(task.ErrTooLarge, "a shard has at most "+itoa(task.MaxOutputs)+" outputs with "+itoa(task.MaxShardOutputBytes)+" bytes together", "")
	}
	return nil
}

// putKVs sets names in a list, each in its old place or at the end. The input is not changed.
func putKVs(kvs, more []task.KV) []task.KV {
	at := make(map[string]int, len(kvs)+len(more))
	out := make([]task.KV, len(kvs), len(kvs)+len(more))
	for i, kv := range kvs {
		out[i], at[kv.Name] = kv, i
	}
	for _, kv := range more {
		if i, there := at[kv.Name]; there {
			out[i] = kv
			continue
		}
		at[kv.Name] = len(out)
		out = append(out, kv)
	}
	return out
}
