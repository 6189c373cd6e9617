package plan

import (
	"cmp"
	"slices"

	"lanjobs/fsm"
)

// split is a running range shard that may be divided.
type split struct {
	lease *fsm.Lease
	left  int64 // numbers that its task has not begun
}

// Split asks for running range shards to be divided where machines have nothing else to do (R35): of each stage of which
// nothing is ready, those with the most left, as many as its machines have room for. What is already asked for counts; a shard
// is asked for again only after it was divided. It looks at every lease: call it now and then, when Place had nothing to give.
func Split(v *View) []fsm.Command {
	stages := map[stageKey][]split{}
	wanted := map[stageKey]int{}
	v.State.Leases(func(l *fsm.Lease) {
		j := v.State.JobBySeq(l.Seq)
		if j.Spec.Stages[l.Ref.Stage].Range == nil {
			return
		}
		k := stageKey{j.ID, l.Ref.Stage}
		if left, ok := j.Splittable(l.Ref.Stage, l.Ref.Shard); ok {
			stages[k] = append(stages[k], split{l, left})
		} else if x := j.Shard(l.Ref.Stage, l.Ref.Shard).Extra; x != nil && x.SplitWanted {
			wanted[k]++
		}
	})
	if len(stages) == 0 {
		return nil
	}
	p := newPlacer(v)
	var out []fsm.Command
	for _, k := range sortedStages(stages) {
		room := p.idleFor(v.State.Job(k.job), k.stage) - wanted[k]
		shards := stages[k]
		slices.SortFunc(shards, func(a, b split) int {
			return cmp.Or(cmp.Compare(b.left, a.left), cmp.Compare(a.lease.Ref.Shard, b.lease.Ref.Shard))
		})
		for _, sh := range shards[:max(min(room, len(shards)), 0)] {
			out = append(out, &fsm.SplitShard{Ref: sh.lease.Ref, Token: sh.lease.Token})
		}
	}
	return out
}

// idleFor is how many more shards of a stage could start at once if there were some; 0 if some are ready.
func (p *placer) idleFor(j *fsm.Job, stage int) int {
	st, spec := &j.Stages[stage], &j.Spec.Stages[stage]
	q := p.queueOf(j)
	if j.Paused || j.Cancelling || st.Stopping || q.room <= 0 || j.NextReady(stage, 0) >= 0 {
		return 0
	}
	room := 0
	for f, i := p.fitOf(j.Queue(), spec), 0; i < len(f.seats); i++ {
		if f.room(i) {
			room += f.seats[i].free
		}
	}
	if spec.Parallelism > 0 {
		room = min(room, spec.Parallelism-st.Active())
	}
	return min(room, q.room)
}

// sortedStages gives the keys in a fixed order.
func sortedStages(m map[stageKey][]split) []stageKey {
	out := make([]stageKey, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b stageKey) int { return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.stage, b.stage)) })
	return out
}
