package jobfile

import (
	"fmt"

	"lanjobs/task"
)

// shardsOf fills in how many shards a stage has and what each is about (R23, R24, R35).
func (l *loader) shardsOf(s *scope, st *task.StageSpec) {
	st.Broadcast = get(s, "broadcast", false)
	st.ShardsFrom = get(s, "shards.from", "")
	st.Weights = some(get(s, "shards.weights", []int(nil)))
	st.Shards = get(s, "shards", get(s, "shards.count", 1))
	if items := l.items(s); len(items) > 0 {
		st.Items, st.Shards = items, len(items)
		if _, counted := s.values["shards.items"]; !counted {
			st.Parallelism = min(st.Parallelism, st.Shards) // how many files there are nobody knew when writing it
		}
	}
	l.rangeOf(s, st)
	l.sourceOf(s, st)
	if l.broadcastAlone(s, st); st.Broadcast || st.ShardsFrom != "" {
		st.Shards = 0 // fixed when the stage opens
	}
}

// rangeOf makes shards of a range and the size of its pieces.
func (l *loader) rangeOf(s *scope, st *task.StageSpec) {
	r, ok := s.values["shards.range"].(task.RangeSpec)
	size, sized := s.values["shards.size"].(int64)
	path := join(s.path, "shards.size")
	switch {
	case ok && sized:
		r.Size = size
		st.Range, st.Shards = &r, int(min(r.Shards(), task.MaxShards+1)) // one too many is for the rules to refuse
	case ok && l.places[path] == nil && !l.blamed(join(s.path, "shards")):
		p := join(s.path, "shards.range")
		l.faultAt(l.places[p], p, "shards.range without size", fmt.Sprintf("add the size of one piece: {range: %d-%d, size: %d}", r.Start, r.End-1, (r.End-r.Start+99)/100))
	case sized && s.values["shards.range"] == nil && !l.blamed(join(s.path, "shards")):
		l.faultAt(l.places[path], path, "shards.size without range", "as in shards: {range: 0-999999, size: 10000}")
	}
}

// sourceOf refuses an empty from, which a Spec could not tell from none.
func (l *loader) sourceOf(s *scope, st *task.StageSpec) {
	path := join(s.path, "shards.from")
	if l.places[path] != nil && st.ShardsFrom == "" && !l.blamed(path) {
		l.faultAt(l.places[path], path, "shards.from names no output", "as in shards: {from: init.parts}")
	}
}

// broadcastAlone refuses shards beside broadcast: the machines are the shards.
func (l *loader) broadcastAlone(s *scope, st *task.StageSpec) {
	path := join(s.path, "shards")
	if st.Broadcast && l.places[path] != nil && !l.blamed(path) {
		l.faultAt(l.places[path], path, "shards and broadcast exclude each other", "with broadcast: true each machine that fits gets one shard")
	}
}
