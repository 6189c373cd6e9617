package fsm

import (
	"cmp"
	"container/heap"
	"math/bits"
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
	for len(s.waits) > 0 && !s.waiting(s.waits[0]) {
		heap.Pop(&s.waits)
	}
}

// refreshReady puts a job into the queue of those that have something to grant, or takes it out.
func (s *State) refreshReady(j *Job) {
	want := false
	if !j.State.Final() && !j.Cancelling {
		for i := range j.Stages {
			if j.grantable(i) > 0 {
				want = true
				break
			}
		}
	}
	s.ready.put(j.Spec.Priority, j.Seq, want)
}

// grantable is how many shards of a stage may be granted now.
func (j *Job) grantable(stage int) int {
	st := &j.Stages[stage]
	if st.State != task.StageOpen || st.ready == nil {
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

// Ready calls f for each job that has something to grant, highest priority first, then oldest, until f gives false.
func (s *State) Ready(f func(*Job) bool) {
	for p := len(s.ready) - 1; p >= 0; p-- {
		for _, seq := range s.ready[p].seqs {
			if seq >= 0 && !f(s.JobBySeq(int(seq))) {
				return
			}
		}
	}
}

// readyQueue holds the sequence numbers of jobs with something to grant, by priority.
type readyQueue [101]seqList

// seqList is an ascending list; a removed number is bit-inverted in place (so that it still sorts by its value) until the
// list is compacted.
type seqList struct {
	seqs []int64
	dead int
}

func (q *readyQueue) list(priority int) *seqList { return &q[min(max(priority, 0), len(q)-1)] }

func (q *readyQueue) has(priority, seq int) bool {
	l := q.list(priority)
	i, found := l.find(seq)
	return found && l.seqs[i] >= 0
}

func (q *readyQueue) len() (n int) {
	for i := range q {
		n += len(q[i].seqs) - q[i].dead
	}
	return n
}

func (l *seqList) find(seq int) (int, bool) {
	return slices.BinarySearchFunc(l.seqs, int64(seq), func(v, w int64) int { return cmp.Compare(max(v, ^v), w) })
}

func (q *readyQueue) put(priority, seq int, want bool) {
	l := q.list(priority)
	i, found := l.find(seq)
	switch {
	case want && !found:
		l.seqs = slices.Insert(l.seqs, i, int64(seq))
	case want && l.seqs[i] < 0:
		l.seqs[i] = int64(seq)
		l.dead--
	case !want && found && l.seqs[i] >= 0:
		l.seqs[i] = ^int64(seq)
		l.dead++
		if l.dead > 32 && l.dead*2 > len(l.seqs) {
			l.seqs = slices.DeleteFunc(l.seqs, func(v int64) bool { return v < 0 })
			l.dead = 0
		}
	}
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

// bitset is the set of ready shards of a stage.
type bitset struct {
	words []uint64
	n     int
	low   int // no bit is set in words below it
}

func newBitset(n int) *bitset { return &bitset{words: make([]uint64, (n+63)/64)} }

// full sets the first n bits.
func (b *bitset) full(n int) {
	for i := range b.words {
		b.words[i] = ^uint64(0)
	}
	if r := n % 64; r != 0 {
		b.words[len(b.words)-1] = 1<<r - 1
	}
	b.n, b.low = n, 0
}

func (b *bitset) has(i int) bool { return b.words[i/64]&(1<<(i%64)) != 0 }

func (b *bitset) set(i int) {
	if !b.has(i) {
		b.words[i/64] |= 1 << (i % 64)
		b.n++
		b.low = min(b.low, i/64)
	}
}

func (b *bitset) clear(i int) {
	if b.has(i) {
		b.words[i/64] &^= 1 << (i % 64)
		b.n--
	}
	if b.n == 0 {
		b.low = len(b.words)
		return
	}
	for b.words[b.low] == 0 {
		b.low++
	}
}

func (b *bitset) next(from int) int {
	if b.n == 0 {
		return -1
	}
	from = max(from, b.low*64)
	for w := from / 64; w < len(b.words); w++ {
		word := b.words[w]
		if w == from/64 {
			word &= ^uint64(0) << (from % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}
