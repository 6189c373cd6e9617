package fsm

import "lanjobs/task"

// What a shard works on. These count, not the spec: a stage may have got its shards when it opened, and shards may be split.

// Item is a shard's item, "" if the stage has none.
func (j *Job) Item(stage, shard int) string {
	items := j.Spec.Stages[stage].Items
	if dynamic(&j.Spec.Stages[stage]) {
		items = j.Stages[stage].Items
	}
	if shard < 0 || shard >= len(items) {
		return ""
	}
	return items[shard]
}

// RangeOf is the part of its stage's range that a shard works on now; ok is false in a stage without a range.
func (j *Job) RangeOf(stage, shard int) (r task.ShardRange, ok bool) {
	spec, sh := j.Spec.Stages[stage].Range, j.Shard(stage, shard)
	switch {
	case spec == nil || sh == nil:
		return task.ShardRange{}, false
	case sh.Extra != nil && sh.Extra.Range != nil:
		return *sh.Extra.Range, true
	}
	return spec.Shard(shard), true
}

// PinnedTo is the only node that may run a shard, "" = any (R24).
func (j *Job) PinnedTo(stage, shard int) task.NodeID {
	if pins := j.Stages[stage].Pins; shard >= 0 && shard < len(pins) {
		return pins[shard]
	}
	return ""
}

// Skipped is the job in which the shard's key had succeeded, so that it did not run itself; "" = none (R31).
func (sh *Shard) Skipped() task.JobID {
	if sh.Extra == nil {
		return ""
	}
	return sh.Extra.SkippedBy
}

// EachReady calls f for the shards of a stage that may be granted now, in the order of their grants: the heavier first, else
// the lower number, until f gives false (R35).
func (j *Job) EachReady(stage int, f func(shard int) bool) {
	if b := j.Stages[stage].ready; b != nil {
		b.each(f)
	}
}

// Splittable tells whether a running range shard may be split, and how much of it its task has not begun (R35). Shards with
// keys are not: a key speaks for the whole shard.
func (j *Job) Splittable(stage, shard int) (left int64, ok bool) {
	sh := j.Shard(stage, shard)
	r, ranged := j.RangeOf(stage, shard)
	if !ranged || !sh.State.Leased() || sh.Extra == nil || !sh.Extra.HasCursor || sh.Extra.SplitWanted ||
		j.Spec.Stages[stage].ShardKey != "" || j.Cancelling || j.Stages[stage].Stopping {
		return 0, false
	}
	left = r.End - sh.Extra.Cursor
	return left, left >= 2
}

// Stopping tells whether what runs of a stage is to be stopped although its job is not being cancelled, and why (fail_fast).
func (j *Job) Stopping(stage int) (reason string, ok bool) {
	return j.Stages[stage].Reason, j.Stages[stage].Stopping
}

// size is what a stage's items and pins weigh.
func (st *Stage) size() (n int64) {
	for _, item := range st.Items {
		n += int64(len(item)) + 16
	}
	return n + int64(len(st.Pins))*16
}
