package fsm

import (
	"container/heap"
	"slices"

	"lanjobs/task"
)

// KeyProof says that a shard key has succeeded, in which job and how long that counts (R31). It outlives the job.
type KeyProof struct {
	Key   string
	Job   task.JobID
	Until task.Millis // on Led
}

const (
	// defaultWindow is how long a key counts in a job that does not say.
	defaultWindow = 7 * task.Day
	// maxKeys bounds the proofs kept: a job that might bring more is refused.
	maxKeys = 4_000_000
	// keyPurge bounds how many proofs one batch forgets, so that a long idle time does not make one batch long.
	keyPurge = 10_000
	// maxKeyPlaces is where proofs are numbered from the beginning again.
	maxKeyPlaces = 1 << 28
)

// weight is what a proof takes, its places in the indexes included.
func (p *KeyProof) weight() int64 { return int64(len(p.Key)+len(p.Job)) + 160 }

// KeyProof finds the proof of a shard key that still counts, nil if there is none.
func (s *State) KeyProof(key string) *KeyProof {
	i, known := s.keyAt[key]
	if !known {
		return nil
	}
	if p := s.keys.at(i); p.Until > s.Led {
		return p
	}
	return nil
}

// ShardKey is a shard's key with its variables put in, "" if the stage has none.
func (j *Job) ShardKey(stage, shard int) string {
	st := &j.Spec.Stages[stage]
	if st.ShardKey == "" {
		return ""
	}
	return task.ExpandShardKey(st.ShardKey, func(name string) string {
		switch name {
		case "LANJOBS_JOB_NAME":
			return j.Spec.Name
		case "LANJOBS_STAGE":
			return st.Name
		case "LANJOBS_SHARD":
			return itoa(shard)
		case "LANJOBS_ITEM":
			return j.Item(stage, shard)
		case "LANJOBS_SCHEDULED_FOR":
			return rfc3339(j.ScheduledFor)
		}
		return ""
	})
}

// prove records that a shard's key has succeeded in its job.
func (s *State) prove(j *Job, stage, shard int) {
	key := j.ShardKey(stage, shard)
	if key == "" {
		return
	}
	window := j.Spec.IdempotencyWindow
	if window <= 0 {
		window = defaultWindow
	}
	s.forget(key)
	if s.keys.n >= maxKeyPlaces || len(s.keyEnds) > 2*len(s.keyAt)+1000 {
		s.renumberKeys()
	}
	p := KeyProof{Key: key, Job: j.ID, Until: s.Led + window}
	s.indexKey(s.keys.n, &p)
	s.keys.push(p, s.epoch)
}

func (s *State) indexKey(place int, p *KeyProof) {
	s.keyAt[p.Key] = place
	s.weight += p.weight()
	heap.Push(&s.keyEnds, ledEnd{p.Until, place})
}

// forget drops the proof of a key.
func (s *State) forget(key string) {
	i, known := s.keyAt[key]
	if !known {
		return
	}
	p := s.keys.mut(i, s.epoch)
	s.weight -= p.weight()
	delete(s.keyAt, key)
	*p = KeyProof{}
	s.keys.drop(i, func(p *KeyProof) bool { return p.Key == "" })
}

// forgetOwn drops the proof that a shard of a job gave itself, so that it may run again.
func (s *State) forgetOwn(j *Job, stage, shard int) {
	if key := j.ShardKey(stage, shard); key != "" {
		if i, known := s.keyAt[key]; known && s.keys.at(i).Job == j.ID {
			s.forget(key)
		}
	}
}

// purgeKeys forgets proofs that no longer count.
func (s *State) purgeKeys() {
	for n := 0; n < keyPurge && len(s.keyEnds) > 0 && s.keyEnds[0].at <= s.Led; {
		e := heap.Pop(&s.keyEnds).(ledEnd)
		if p := s.keyPlace(e.place); p.Key != "" && p.Until == e.at { // else it was forgotten before
			s.forget(p.Key)
			n++
		}
	}
}

// keyPlace is the record of a place, empty if it was given back.
func (s *State) keyPlace(i int) KeyProof {
	if i/pageSize < s.keys.first {
		return KeyProof{}
	}
	return *s.keys.at(i)
}

// renumberKeys gives the proofs places from the beginning again, in the same order.
func (s *State) renumberKeys() {
	old := s.keys
	s.keys = newCowFrom[KeyProof](0, 0)
	old.each(func(_ int, p *KeyProof) bool {
		if p.Key != "" {
			s.keys.push(*p, s.epoch)
		}
		return true
	})
	s.indexKeys()
}

// indexKeys rebuilds what is derived from the proofs.
func (s *State) indexKeys() {
	s.keys.each(func(_ int, p *KeyProof) bool {
		if p.Key != "" {
			if _, known := s.keyAt[p.Key]; known {
				s.weight -= p.weight()
			}
		}
		return true
	})
	s.keyAt, s.keyEnds = map[string]int{}, nil
	s.keys.each(func(i int, p *KeyProof) bool {
		if p.Key != "" {
			s.indexKey(i, p)
		}
		return true
	})
}

// skipKnown ends a pending shard at once if its key has succeeded before, and tells so.
func (s *State) skipKnown(j *Job, stage, shard int) *KeyProof {
	if len(s.keyAt) == 0 || j.Spec.Stages[stage].ShardKey == "" {
		return nil
	}
	p := s.KeyProof(j.ShardKey(stage, shard))
	if p == nil {
		return nil
	}
	st := &j.Stages[stage]
	sh := s.mutShard(j, stage, shard)
	sh.Due = 0
	s.move(st, sh, task.ShardSucceeded)
	st.ready.clear(shard)
	s.change(j, sh, func(x *Extra) { x.SkippedBy, x.Checkpoint.Data, x.puts = p.Job, nil, nil })
	return p
}

// skipAllKnown ends the ready shards of a stage whose keys have succeeded before.
func (s *State) skipAllKnown(j *Job, stage int) {
	if len(s.keyAt) == 0 || j.Spec.Stages[stage].ShardKey == "" {
		return
	}
	var g skipGroup
	for k := j.NextReady(stage, 0); k >= 0; k = j.NextReady(stage, k+1) {
		if p := s.skipKnown(j, stage, k); p != nil {
			g.add(s, j, stage, k, p.Job)
		}
	}
	g.flush(s, j, stage)
}

// skipGroup gathers skipped shards of one stage that name the same job, for one line in the audit log.
type skipGroup struct {
	by     task.JobID
	shards []int
}

func (g *skipGroup) add(s *State, j *Job, stage, shard int, by task.JobID) {
	if by != g.by {
		g.flush(s, j, stage)
	}
	g.by, g.shards = by, append(g.shards, shard)
}

func (g *skipGroup) flush(s *State, j *Job, stage int) {
	if len(g.shards) > 0 {
		slices.Sort(g.shards)
		s.emit(task.Event{Kind: task.EventShardSkip, Job: j.ID, JobName: j.Spec.Name, Stage: j.Spec.Stages[stage].Name,
			Shards: task.FormatRanges(g.shards), Reason: "shard_key had succeeded in " + string(g.by)})
	}
	g.shards = nil
}
