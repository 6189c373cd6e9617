package plan

import (
	"fmt"

	"lanjobs/fsm"
	"lanjobs/task"
)

// When attempts on a machine that fail and then succeed elsewhere are worth a person's look (R45).
const (
	failingOf    = 20 // the newest ended attempts of a machine that count
	failingMin   = 5
	failingSpan  = task.Day // of led time
	failingLooks = 200_000  // jobs and shards looked at, newest jobs first: the judgement is about what is new
	failingSlice = 4_000    // of these at once: a fraction of a millisecond
)

// Failing is how one machine's newest attempts ended: how many failed there and succeeded elsewhere, of how many.
type Failing struct{ Failed, Of int }

// Flagged tells whether that points at the machine and not at the work.
func (f Failing) Flagged() bool { return f.Failed >= failingMin && 2*f.Failed >= f.Of }

func (f Failing) String() string {
	return fmt.Sprintf("%d of its last %d attempts failed and then succeeded elsewhere", f.Failed, f.Of)
}

// Failures judges all machines by the shards of the ledger: attempts that succeeded, and those that used up one of
// retry.attempts. There may be very many shards, so Look takes them a slice at a time, and others get at the ledger in between.
// It is for one judgement; what changes meanwhile counts in the next.
type Failures struct {
	newest            map[task.NodeID]*endings
	seq, stage, shard int // where to go on; later jobs are done
	looks             int
}

// Look looks at the next slice and tells whether there is more.
func (f *Failures) Look(s *fsm.State) (more bool) {
	if f.newest == nil {
		f.newest, f.seq = map[task.NodeID]*endings{}, s.JobSeqs()
	}
	end := min(f.looks+failingSlice, failingLooks)
	s.JobsBefore(f.seq+1, func(j *fsm.Job) bool {
		if j.Seq != f.seq {
			f.seq, f.stage, f.shard = j.Seq, 0, 0
			f.looks++ // there may be many without shards
		}
		more = !f.finish(s, j, end)
		return !more
	})
	return more && f.looks < failingLooks
}

// finish looks at the rest of a job's shards; false if there were enough looks before its end.
func (f *Failures) finish(s *fsm.State, j *fsm.Job, end int) bool {
	for ; f.stage < len(j.Stages); f.stage, f.shard = f.stage+1, 0 {
		for st := &j.Stages[f.stage]; f.shard < st.Len(); f.shard++ {
			if f.looks >= end {
				return false
			}
			f.looks++
			noteShard(s, f.newest, st.At(f.shard))
		}
	}
	return f.looks < end
}

// Judge is what was seen so far.
func (f *Failures) Judge() map[task.NodeID]Failing {
	out := make(map[task.NodeID]Failing, len(f.newest))
	for id, e := range f.newest {
		out[id] = e.judge()
	}
	return out
}

// noteShard notes the attempts of a shard with their machines.
func noteShard(s *fsm.State, newest map[task.NodeID]*endings, sh *fsm.Shard) {
	if sh.Tries == 0 || sh.Skipped() != "" {
		return
	}
	note := func(node task.NodeID, at task.Instant, failed bool) {
		if at.Add(failingSpan) <= s.Clock {
			return
		}
		if newest[node] == nil {
			newest[node] = &endings{}
		}
		newest[node].note(at, failed)
	}
	var winner task.NodeID
	if sh.State == task.ShardSucceeded {
		winner = s.NodeByPlace(sh.Node).Info.ID
		note(winner, sh.Ended, false)
	}
	for _, a := range sh.History() {
		if a.Counted {
			note(a.Node, a.Ended, winner != "" && winner != a.Node)
		}
	}
}

// endings are the newest ends of attempts on one machine, in the order of time.
type endings struct {
	n    int
	last [failingOf]struct {
		at     task.Instant
		failed bool
	}
}

func (e *endings) note(at task.Instant, failed bool) {
	i := e.n
	if i == len(e.last) {
		if at < e.last[0].at {
			return
		}
		copy(e.last[:], e.last[1:])
		i--
	} else {
		e.n++
	}
	for ; i > 0 && e.last[i-1].at > at; i-- {
		e.last[i] = e.last[i-1]
	}
	e.last[i].at, e.last[i].failed = at, failed
}

func (e *endings) judge() Failing {
	f := Failing{Of: e.n}
	for _, end := range e.last[:e.n] {
		if end.failed {
			f.Failed++
		}
	}
	return f
}
