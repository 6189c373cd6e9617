package fsm

import (
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
	s.leases, s.held, s.ready, s.waits, s.due = map[task.Token]*Lease{}, nil, readyQueue{}, nil, 0
	s.live, s.shards, s.weight = 0, 0, 0
	for _, sp := range s.specs {
		s.weight += sp.weight() // a sum: no order
	}
	for i, n := range s.nodes {
		s.nodeAt[n.Info.ID] = int32(i)
		s.held = append(s.held, map[task.Token]*Lease{})
	}
	s.Jobs(func(j *Job) bool { s.indexJob(j); return true })
}

func (s *State) indexJob(j *Job) {
	s.indexIDs(j)
	if !j.State.Final() {
		s.live++
	}
	j.weight = 0
	for i := range j.KV {
		s.weigh(j, j.KV[i].weight())
	}
	for si := range j.Stages {
		st := &j.Stages[si]
		s.shards += st.shards.n
		st.Waits, st.Counts, st.ready = 0, [task.ShardStates]int32{}, nil
		if st.State == task.StageOpen {
			st.ready = newBitset(st.shards.n)
		}
		for i := range st.shards.n {
			sh := st.shards.at(i)
			st.Counts[sh.State]++
			s.weigh(j, sh.Extra.weight())
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
