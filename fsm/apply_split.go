package fsm

import (
	"strconv"

	"lanjobs/task"
)

// apply takes what the task of a range shard says: nothing from the cursor on is begun. If a split is wanted, the later half of
// that becomes a shard of its own, and the answer tells the task where its part ends now (R35).
//
// Only a cursor that moves on splits: a repeat, or one that arrives late, may be of a time before the task went on, when what
// would be split off was not begun yet.
func (c *Cursor) apply(s *State) Result {
	if len(c.RequestID) > maxIDLength {
		return refuse(task.ErrInvalid, "", "a request id has at most %d bytes", maxIDLength)
	}
	j, sh, problem := s.holder(c.Ref, c.Token, "cursor")
	if problem != nil {
		return Result{Err: problem}
	}
	stage, shard := c.Ref.Stage, c.Ref.Shard
	r, ranged := j.RangeOf(stage, shard)
	if !ranged {
		return refuse(task.ErrInvalid, "", "stage %s has no range", j.Spec.Stages[stage].Name)
	}
	if c.Cursor < r.Start || c.Cursor > r.End {
		return refuse(task.ErrInvalid, "", "the cursor %d lies outside the shard's range, %d up to %d", c.Cursor, r.Start, r.End)
	}
	if x := sh.Extra; x != nil && x.HasCursor && c.Cursor <= x.Cursor {
		return Result{Range: r, Existed: true}
	}
	wanted := sh.Extra != nil && sh.Extra.SplitWanted
	s.change(j, sh, func(x *Extra) { x.Cursor, x.HasCursor, x.SplitWanted = c.Cursor, true, false })
	s.emitShard(task.EventShardCursor, j, stage, shard, sh, task.Event{Reason: strconv.FormatInt(c.Cursor, 10)})
	if wanted {
		r = s.split(j, stage, shard, r)
	}
	return Result{Range: r}
}

// split makes the later half of what a shard has not begun a shard of its own, if there is room for one, and gives what is left
// to the shard.
func (s *State) split(j *Job, stage, shard int, r task.ShardRange) task.ShardRange {
	if _, ok := j.Splittable(stage, shard); !ok || j.shardsTotal() >= task.MaxShards || s.shards >= maxTotalShards || s.full(2*rangeWeight) != nil {
		return r
	}
	st := &j.Stages[stage]
	cursor := st.shards.at(shard).Extra.Cursor
	middle := cursor + (r.End-cursor+1)/2
	part := st.shards.n
	st.shards.grow(s.epoch)
	st.ready.grow(st.shards.n)
	st.Counts[task.ShardPending]++
	s.shards++
	old, fresh := s.mutShard(j, stage, shard), s.mutShard(j, stage, part)
	s.change(j, old, func(x *Extra) { x.Range = &task.ShardRange{Start: r.Start, End: middle} })
	s.change(j, fresh, func(x *Extra) { x.Range = &task.ShardRange{Start: middle, End: r.End} })
	s.enqueue(j, stage, part, fresh)
	s.refreshReady(j)
	s.emitShard(task.EventShardSplit, j, stage, shard, old, task.Event{To: itoa(part),
		Reason: strconv.FormatInt(middle, 10) + " up to " + strconv.FormatInt(r.End, 10) + " are shard " + itoa(part) + " now"})
	return *old.Extra.Range
}

// apply notes that a shard is to be split. The task must have reported a cursor: only then is it known to ask where its part ends.
func (c *SplitShard) apply(s *State) Result {
	l := s.leases[c.Token]
	if l == nil || l.Ref != c.Ref {
		return refuse(task.ErrConflict, "", "the lease of the shard to split is over")
	}
	j := s.JobBySeq(l.Seq)
	if x := j.Shard(c.Ref.Stage, c.Ref.Shard).Extra; x != nil && x.SplitWanted {
		return Result{Existed: true}
	}
	if _, ok := j.Splittable(c.Ref.Stage, c.Ref.Shard); !ok {
		return refuse(task.ErrConflict, "", "shard %d of job %s cannot be split: its task has not said how far it is, or too little is left", c.Ref.Shard, j.ID)
	}
	j = s.mutJob(l.Seq)
	s.change(j, s.mutShard(j, c.Ref.Stage, c.Ref.Shard), func(x *Extra) { x.SplitWanted = true })
	return Result{}
}

// rangeWeight is what a shard's own range takes.
const rangeWeight = 16

// shardsTotal is the number of shards of all stages.
func (j *Job) shardsTotal() (n int) {
	for i := range j.Stages {
		n += j.Stages[i].shards.n
	}
	return n
}
