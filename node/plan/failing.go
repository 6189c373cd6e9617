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
	failingLooks = 200_000  // shards looked at, newest jobs first: the judgement is about what is new
)

// Failing is how one machine's newest attempts ended: how many failed there and succeeded elsewhere, of how many.
type Failing struct{ Failed, Of int }

// Flagged tells whether that points at the machine and not at the work.
func (f Failing) Flagged() bool { return f.Failed >= failingMin && 2*f.Failed >= f.Of }

func (f Failing) String() string {
	return fmt.Sprintf("%d of its last %d attempts failed and then succeeded elsewhere", f.Failed, f.Of)
}

// Failures judges all machines by the shards of the ledger: attempts that succeeded, and those that used up one of
// retry.attempts. It may look at very many shards: call it now and then.
func Failures(s *fsm.State) map[task.NodeID]Failing {
	newest := map[task.NodeID]*endings{}
	looks := 0
	s.JobsNewestFirst(func(j *fsm.Job) bool {
		for i := range j.Stages {
			st := &j.Stages[i]
			for k := 0; k < st.Len() && looks < failingLooks; k++ {
				looks++
				noteShard(s, newest, st.At(k))
			}
		}
		return looks < failingLooks
	})
	out := make(map[task.NodeID]Failing, len(newest))
	for id, e := range newest {
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
