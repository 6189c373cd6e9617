package fsm

import (
	"container/heap"
	"math/bits"
	"slices"

	"lanjobs/task"
)

// index rebuilds everything derived, after a snapshot was read.
func (s *State) index() {
	s.nodeAt, s.jobAt = map[task.NodeID]int32{}, map[task.JobID]int{}
	s.byKey, s.byRequest = map[string]int{}, map[task.RequestID]int{}
	if s.specs == nil {
		s.specs = map[string]*Spec{}
	}
	s.leases, s.held, s.ready, s.waits, s.due, s.live = map[task.Token]*Lease{}, nil, readyQueue{}, nil, 0, 0
	for i, n := range s.nodes {
		s.nodeAt[n.Info.ID] = int32(i)
		s.held = append(s.held, map[task.Token]*Lease{})
	}
	for seq := range s.jobs.n {
		if j := *s.jobs.at(seq); j != nil {
			s.indexJob(j)
		}
	}
}

func (s *State) indexJob(j *Job) {
	s.indexIDs(j)
	if !j.State.Final() {
		s.live++
	}
	for si := range j.Stages {
		st := &j.Stages[si]
		st.Waits, st.Counts = 0, [task.ShardStates]int32{}
		if st.State == task.StageOpen {
			st.ready = newBitset(st.shards.n)
		}
		for i := range st.shards.n {
			sh := st.shards.at(i)
			st.Counts[sh.State]++
			switch {
			case sh.State.Leased():
				s.addLease(j, si, i, sh)
			case sh.State == task.ShardPending && st.State == task.StageOpen:
				s.enqueue(j, si, i, sh)
			}
		}
	}
	s.refreshReady(j)
}

func (s *State) indexIDs(j *Job) {
	s.jobAt[j.ID] = j.Seq
	if j.Request != "" {
		s.byRequest[j.Request] = j.Seq
	}
	if k := j.Spec.IdempotencyKey; k != "" {
		s.byKey[k] = j.Seq
	}
}

func (s *State) addLease(j *Job, stage, shard int, sh *Shard) {
	l := &Lease{Ref: task.ShardRef{Job: j.ID, Stage: stage, Shard: shard}, Seq: j.Seq, Token: sh.Token, Node: sh.Node}
	s.leases[sh.Token] = l
	s.held[sh.Node][sh.Token] = l
	if len(s.leases) == 1 || sh.Due < s.due {
		s.due = sh.Due
	}
}

func (s *State) dropLease(sh *Shard) {
	delete(s.leases, sh.Token)
	delete(s.held[sh.Node], sh.Token)
}

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
		j := s.JobBySeq(w.seq)
		if j == nil {
			continue
		}
		sh := j.Shard(int(w.stage), int(w.shard))
		if sh == nil || sh.State != task.ShardPending || sh.Due != w.due || j.Stages[w.stage].State != task.StageOpen {
			continue // it ended, was cancelled or is waiting for another time
		}
		j = s.mutJob(w.seq)
		st := &j.Stages[w.stage]
		if st.ready.has(int(w.shard)) {
			continue
		}
		st.Waits--
		st.ready.set(int(w.shard))
		s.refreshReady(j)
	}
}

// Due is the earliest instant at which something falls due by itself: a lease deadline (or a little earlier) or a retry
// time. ok is false when nothing is outstanding.
func (s *State) Due() (at task.Instant, ok bool) {
	if len(s.leases) > 0 {
		at, ok = s.due, true
	}
	if len(s.waits) > 0 && (!ok || s.waits[0].due < at) {
		at, ok = s.waits[0].due, true
	}
	return at, ok
}

// Lapsed gives the tokens whose deadline has passed at the clock, oldest token first.
func (s *State) Lapsed(now task.Instant) []task.Token {
	if len(s.leases) == 0 || s.due > now {
		return nil
	}
	var out []task.Token
	for t, l := range s.leases {
		if s.LeaseDue(l) <= now {
			out = append(out, t)
		}
	}
	slices.Sort(out)
	return out
}

// LeaseDue is a lease's deadline.
func (s *State) LeaseDue(l *Lease) task.Instant {
	return (*s.jobs.at(l.Seq)).Stages[l.Ref.Stage].shards.at(l.Ref.Shard).Due
}

// tightenDue makes the lower bound exact again, once leases were renewed past it.
func (s *State) tightenDue() {
	if len(s.leases) == 0 || s.due > s.Clock {
		return
	}
	first := true
	for _, l := range s.leases {
		if d := s.LeaseDue(l); first || d < s.due {
			s.due, first = d, false
		}
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

func (q *readyQueue) put(priority, seq int, want bool) {
	l := &q[min(max(priority, 0), 100)]
	key := func(v int64) int64 {
		if v < 0 {
			return ^v
		}
		return v
	}
	i, found := slices.BinarySearchFunc(l.seqs, int64(seq), func(v, w int64) int { return int(key(v) - w) })
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
