package fsm

import (
	"container/heap"
	"slices"

	"lanjobs/task"
)

// What may be granted now, and what becomes so by itself. All of it is derived: no order in here reaches the state.

// enqueue puts a pending shard of an open stage among the ready ones, or among those that wait for their time.
func (s *State) enqueue(j *Job, stage, shard int, sh *Shard) {
	st := &j.Stages[stage]
	if sh.Due <= s.Clock {
		st.ready.set(shard)
		return
	}
	st.Waits++
	heap.Push(&s.waits, wait{sh.Due, j.Seq, int32(stage), int32(shard)})
}

// advance moves the clock and makes ready what has waited long enough.
func (s *State) advance(elapsed task.Millis) {
	s.Clock = s.Clock.Add(elapsed)
	for len(s.waits) > 0 && s.waits[0].due <= s.Clock {
		w := heap.Pop(&s.waits).(wait)
		if !s.waiting(w) {
			continue
		}
		j := s.mutJob(w.seq)
		st := &j.Stages[w.stage]
		st.Waits--
		st.ready.set(int(w.shard))
		s.refreshReady(j)
	}
}

// waiting tells whether an entry of the heap still holds: its shard may have been cancelled, or wait for another time.
func (s *State) waiting(w wait) bool {
	j := s.JobBySeq(w.seq)
	if j == nil || j.Stages[w.stage].State != task.StageOpen {
		return false
	}
	sh := j.Shard(int(w.stage), int(w.shard))
	return sh.State == task.ShardPending && sh.Due == w.due && !j.Stages[w.stage].ready.has(int(w.shard))
}

// dropStaleWaits keeps what no longer holds from being the next thing to fall due: a leader would keep the clock running
// for it, and disks awake.
func (s *State) dropStaleWaits() {
	dropStale(&s.waits, &s.waitsMost, s.waiting)
}

// dropStale rids a heap of what no longer holds: at its top always, and everywhere once it is longer than most, which then says how long
// it may grow next.
func dropStale[E any, L ~[]E, H interface {
	*L
	heap.Interface
}](h H, most *int, holds func(E) bool) {
	for len(*h) > 0 && !holds((*h)[0]) {
		heap.Pop(h)
	}
	if len(*h) > *most {
		*h = slices.DeleteFunc(*h, func(e E) bool { return !holds(e) })
		heap.Init(h)
		*most = roomFor(len(*h))
	}
}

// roomFor is how long a heap may grow that has n entries which hold, before those that do not are looked for: seldom enough that it costs
// next to nothing, often enough that they are never many more.
func roomFor(n int) int { return 2*n + 1000 }

// refreshReady puts a job among those of its queue that have something to grant, or takes it out.
func (s *State) refreshReady(j *Job) {
	if j.queue == nil {
		return
	}
	want := false
	if !j.State.Final() && !j.Cancelling && !j.Paused {
		for i := range j.Stages {
			if j.grantable(i) > 0 {
				want = true
				break
			}
		}
	}
	j.queue.ready.put(j.Priority, j.Seq, want)
}

// grantable is how many shards of a stage may be granted now.
func (j *Job) grantable(stage int) int {
	st := &j.Stages[stage]
	if st.State != task.StageOpen || st.ready == nil || j.Paused {
		return 0
	}
	n := st.ready.n
	if p := j.Spec.Stages[stage].Parallelism; p > 0 {
		n = min(n, p-st.Active())
	}
	return max(n, 0)
}

// Grantable is how many shards of a stage may be granted now: ready ones, within the stage's parallelism.
func (j *Job) Grantable(stage int) int { return j.grantable(stage) }

// NextReady is the first ready shard of a stage from a number on, -1 if none.
func (j *Job) NextReady(stage, from int) int {
	if b := j.Stages[stage].ready; b != nil {
		return b.next(from)
	}
	return -1
}

// wait is a pending shard that becomes ready at due.
type wait struct {
	due   task.Instant
	seq   int
	stage int32
	shard int32
}

// waitHeap orders waits by time; entries whose shard moved on are skipped when they surface.
type waitHeap []wait

func (h waitHeap) Len() int           { return len(h) }
func (h waitHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h waitHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *waitHeap) Push(x any)        { *h = append(*h, x.(wait)) }
func (h *waitHeap) Pop() any {
	old := *h
	w := old[len(old)-1]
	*h = old[:len(old)-1]
	return w
}
