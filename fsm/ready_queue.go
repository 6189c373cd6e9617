package fsm

import (
	"cmp"
	"container/heap"
	"slices"
)

// Next is what State.EachReady does after a job.
type Next uint8

// The values of Next.
const (
	NextJob   Next = iota
	NextQueue      // leave the rest of the job's queue out
	NextNone       // stop
)

// EachReady calls f for each job that has something to grant and whose queue has room: highest priority first, then oldest, over
// all queues.
func (s *State) EachReady(f func(*Job) Next) { s.EachReadyFrom(priorities-1, 0, f) }

// EachReadyFrom is EachReady from the job on that has a priority and a sequence number, or would come after it.
func (s *State) EachReadyFrom(priority, seq int, f func(*Job) Next) {
	var open []*queue
	for _, q := range s.queues {
		if q.ready.n > 0 && q.Room() > 0 {
			open = append(open, q)
		}
	}
	var heads headHeap
	for p := min(priority, priorities-1); p >= 0 && len(open) > 0; p-- {
		heads = heads[:0]
		for _, q := range open {
			rest := q.ready.lists[p].seqs
			if len(rest) == 0 {
				continue
			}
			if p == priority && seq > 0 {
				at, _ := q.ready.lists[p].find(seq)
				rest = rest[at:]
			}
			if h, ok := (head{q, rest}).skip(); ok {
				heads = append(heads, h)
			}
		}
		if len(heads) > 1 {
			heap.Init(&heads)
		}
		for len(heads) > 0 {
			h := heads[0]
			next := f(s.JobBySeq(int(h.rest[0])))
			switch next {
			case NextNone:
				return
			case NextQueue:
				open = slices.DeleteFunc(open, func(q *queue) bool { return q == h.q })
			}
			h.rest = h.rest[1:]
			h, ok := h.skip()
			switch {
			case ok && next == NextJob && len(heads) == 1:
				heads[0] = h
			case ok && next == NextJob:
				heads[0] = h
				heap.Fix(&heads, 0)
			default:
				heap.Pop(&heads)
			}
		}
	}
}

// head is what is left to visit of one queue's jobs of one priority; the first of it is a job that has something to grant.
type head struct {
	q    *queue
	rest []int64
}

// skip goes on to the next number that was not removed.
func (h head) skip() (head, bool) {
	for len(h.rest) > 0 && h.rest[0] < 0 {
		h.rest = h.rest[1:]
	}
	return h, len(h.rest) > 0
}

type headHeap []head

func (h headHeap) Len() int           { return len(h) }
func (h headHeap) Less(i, j int) bool { return h[i].rest[0] < h[j].rest[0] }
func (h headHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *headHeap) Push(x any)        { *h = append(*h, x.(head)) }
func (h *headHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// readyQueue holds the sequence numbers of jobs with something to grant, by priority.
type readyQueue struct {
	lists [priorities]seqList
	n     int
}

const priorities = 101

// seqList is an ascending list; a removed number is bit-inverted in place (so that it still sorts by its value) until the
// list is compacted.
type seqList struct {
	seqs []int64
	dead int
}

func (q *readyQueue) list(priority int) *seqList {
	return &q.lists[min(max(priority, 0), priorities-1)]
}

func (q *readyQueue) has(priority, seq int) bool {
	l := q.list(priority)
	i, found := l.find(seq)
	return found && l.seqs[i] >= 0
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
		q.n++
	case want && l.seqs[i] < 0:
		l.seqs[i] = int64(seq)
		l.dead--
		q.n++
	case !want && found && l.seqs[i] >= 0:
		l.seqs[i] = ^int64(seq)
		l.dead++
		q.n--
		for len(l.seqs) > 0 && l.seqs[0] < 0 { // as a rule the oldest goes first: nobody shall have to step over those that are gone
			l.seqs = l.seqs[1:]
			l.dead--
		}
		if l.dead > 32 && l.dead*2 > len(l.seqs) {
			l.seqs = slices.DeleteFunc(l.seqs, func(v int64) bool { return v < 0 })
			l.dead = 0
		}
	}
}
