package fsm

import (
	"bytes"
	"slices"
	"strings"

	"lanjobs/task"
)

// apply writes a job's shared key under the lease, if its version is the expected one (R12).
func (c *PutState) apply(s *State) Result {
	if c.Key == "" || len(c.Key) > maxKeyLength || len(c.Value) > task.MaxStateValueBytes {
		return refuse(task.ErrTooLarge, "", "a key has 1 to %d bytes, its value at most %d", maxKeyLength, task.MaxStateValueBytes)
	}
	if len(c.RequestID) > maxIDLength {
		return refuse(task.ErrInvalid, "", "a request id has at most %d bytes", maxIDLength)
	}
	j, sh, problem := s.holder(c.Ref, c.Token, "write of key "+c.Key)
	if problem != nil {
		return Result{Err: problem}
	}
	if version, done := sh.wrote(c.RequestID); done {
		return Result{Version: version, Existed: true}
	}
	i, found := j.stateAt(c.Key)
	var old StateKey
	if found {
		old = j.KV[i]
	}
	if c.IfVersion != nil && *c.IfVersion != old.Version {
		r := refuse(task.ErrConflict, "", "key %q has version %d, not %d", c.Key, old.Version, *c.IfVersion)
		r.Version = old.Version
		return r
	}
	entry := StateKey{Key: c.Key, Version: j.kvVersion + 1, Value: bytes.Clone(c.Value)}
	kv := append([]StateKey(nil), j.KV...)
	if found {
		kv[i] = entry
	} else {
		kv = slices.Insert(kv, i, entry)
	}
	size := int64(0)
	for k := range kv {
		size += kv[k].weight()
	}
	if size > task.MaxJobStateBytes || len(kv) > maxStateKeys {
		return refuse(task.ErrTooLarge, "", "a job has at most %d keys with %d bytes together", maxStateKeys, task.MaxJobStateBytes)
	}
	if problem := s.full(entry.weight() - old.weight()); problem != nil {
		return Result{Err: problem}
	}
	j.KV = kv
	j.kvVersion = entry.Version
	s.weigh(j, entry.weight()-old.weight())
	if c.RequestID != "" {
		s.change(j, sh, func(x *Extra) { x.puts = remember(x.puts, put{c.RequestID, entry.Version}) })
	}
	s.emitShard(task.EventState, j, c.Ref.Stage, c.Ref.Shard, sh, task.Event{Reason: c.Key, Seq: entry.Version, Bytes: len(c.Value)})
	return Result{Version: entry.Version}
}

// wrote tells whether the current attempt's request was accepted before, and with which version.
func (sh *Shard) wrote(r task.RequestID) (version uint64, ok bool) {
	if r == "" || sh.Extra == nil {
		return 0, false
	}
	for _, p := range sh.Extra.puts {
		if p.request == r {
			return p.version, true
		}
	}
	return 0, false
}

func (j *Job) stateAt(key string) (int, bool) {
	return slices.BinarySearchFunc(j.KV, key, func(k StateKey, key string) int { return strings.Compare(k.Key, key) })
}

// StateValue reads a shared key; version 0 = absent.
func (j *Job) StateValue(key string) ([]byte, uint64) {
	i, found := j.stateAt(key)
	if !found {
		return nil, 0
	}
	return j.KV[i].Value, j.KV[i].Version
}
