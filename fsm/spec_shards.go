package fsm

import (
	"slices"
	"strings"

	"lanjobs/task"
)

// The parts of a spec about how a stage gets its shards, and about schedules.

// dynamic tells whether a stage gets its shards when it opens.
func dynamic(st *task.StageSpec) bool { return st.ShardsFrom != "" || st.Broadcast }

// derive works out what a checked spec says about its stages.
func (sp *Spec) derive() {
	sp.needs, sp.ranks = make([][]int, len(sp.Stages)), make([]*ranks, len(sp.Stages))
	sp.level = 1
	if sp.Schedule != nil || sp.Deadline > 0 || sp.StartWithin > 0 {
		sp.level = 2
	}
	for i := range sp.Stages {
		st := &sp.Stages[i]
		for _, need := range st.Needs {
			sp.needs[i] = append(sp.needs[i], sp.Stage(need))
		}
		if len(st.Weights) > 0 {
			sp.ranks[i] = rankBy(st.Weights)
		}
		if dynamic(st) || st.Range != nil || len(st.Weights) > 0 || st.ShardKey != "" || st.Success.FailFast || len(st.Paths)+len(st.Programs) > 0 {
			sp.level = max(sp.level, 2)
		}
		if st.OnSleep != "" || st.User != "" {
			sp.level = 3
		}
	}
	if sp.Schedule != nil && sp.Schedule.Wake != "" {
		sp.level = 3
	}
}

// rankBy orders shards by weight, the heavier first, then by number.
func rankBy(weights []int) *ranks {
	r := &ranks{make([]int32, len(weights)), make([]int32, len(weights))}
	for k := range r.shard {
		r.shard[k] = int32(k)
	}
	slices.SortStableFunc(r.shard, func(a, b int32) int { return weights[b] - weights[a] }) // within MaxWeight: no overflow
	for rank, shard := range r.shard {
		r.rank[shard] = int32(rank)
	}
	return r
}

// source is the stage and the name of the output that a stage gets its shards from.
func source(sp *task.Spec, st *task.StageSpec) (stage int, output string) {
	name, output, _ := strings.Cut(st.ShardsFrom, ".")
	return sp.Stage(name), output
}

// checkShards is the part of checkStage about shards.
func checkShards(sp *task.Spec, i int) string {
	st := &sp.Stages[i]
	ways := 0
	for _, on := range []bool{len(st.Items) > 0, st.ShardsFrom != "", st.Range != nil, st.Broadcast} {
		if on {
			ways++
		}
	}
	switch {
	case ways > 1:
		return "items, shards_from, range and broadcast exclude each other"
	case dynamic(st) && st.Shards != 0:
		return "the number of its shards is fixed when it opens"
	case st.Range != nil && (st.Range.Start < -task.MaxRange || st.Range.Start > task.MaxRange || st.Range.End > 2*task.MaxRange ||
		st.Range.End <= st.Range.Start || st.Range.Shards() != int64(st.Shards)):
		return "range and shards differ in number"
	case len(st.Weights) > 0 && len(st.Weights) != st.Shards:
		return "weights and shards differ in number"
	case slices.ContainsFunc(st.Weights, func(w int) bool { return w < 0 || w > task.MaxWeight }):
		return "a weight is not from 0 to " + itoa(task.MaxWeight)
	case len(st.ShardKey) > maxKeyLength:
		return "its shard_key is too long"
	}
	if st.ShardsFrom == "" {
		return ""
	}
	from, output := source(sp, st)
	if from < 0 || from >= i || output == "" || len(output) > maxKeyLength || !after(sp, i, from) {
		return "shards_from must name an output of a stage that it needs"
	}
	return ""
}

// after tells whether a stage needs another one, itself or through others. All names of needs are known to stand before.
func after(sp *task.Spec, i, other int) bool {
	reached := make([]bool, i+1)
	reached[i] = true
	for k := i; k > other; k-- {
		for _, need := range sp.Stages[k].Needs {
			if n := sp.Stage(need); reached[k] && n >= 0 && n < k {
				reached[n] = true
			}
		}
	}
	return reached[other]
}

const (
	maxScheduleText = 512
	maxRunAll       = 10_000
)

var overlaps = []task.Overlap{task.OverlapSkip, task.OverlapQueue, task.OverlapReplace, task.OverlapAllow}

// checkSchedule holds what Apply relies on. Whether the calendar makes sense is for the edges (package task/schedule): one that
// does not never fires.
func checkSchedule(sp *task.Spec) string {
	c := sp.Schedule
	switch {
	case sp.Name == "":
		return "it needs a name"
	case max(len(c.Cron), len(c.At), len(c.Timezone), len(c.Misfire), len(c.Wake)) > maxScheduleText:
		return "a text is too long"
	case !slices.Contains(overlaps, c.Overlap):
		return "unknown overlap"
	case outside(c.Every) || outside(c.MisfireGrace) || outside(c.Jitter):
		return "a length of time is out of bounds"
	case c.RunAllMax < 0 || c.RunAllMax > maxRunAll:
		return "run_all_max out of bounds"
	}
	return ""
}
