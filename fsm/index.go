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
	s.leases, s.held, s.waits, s.due = map[task.Token]*Lease{}, nil, nil, 0
	s.waitsMost, s.expiriesMost = roomFor(0), roomFor(0)
	s.expiries, s.runs, s.keyAt, s.keyEnds = nil, map[string][]int{}, map[string]int{}, nil
	for _, q := range s.queues {
		q.Active, q.ready, q.users = 0, readyQueue{}, 0
	}
	s.addQueue(task.DefaultQueue)
	s.booked = map[int32]Booked{}
	s.live, s.shards, s.weight = 0, 0, 0
	for _, sp := range s.specs {
		s.weight += sp.weight() // a sum: no order
	}
	for i, n := range s.nodes {
		s.nodeAt[n.Info.ID] = int32(i)
		s.held = append(s.held, map[task.Token]*Lease{})
	}
	for _, sc := range s.schedules {
		s.addQueue(sc.Spec.queueName()).users++
	}
	s.indexKeys()
	s.Jobs(func(j *Job) bool { s.indexJob(j); return true })
}

func (s *State) indexJob(j *Job) {
	s.indexIDs(j)
	if j.State.Final() {
		j.queue = s.queueNamed(j.Spec.Queue)
	} else {
		j.queue = s.addQueue(j.Spec.queueName())
		s.begin(j)
		s.watch(j)
	}
	j.weight = 0
	for i := range j.KV {
		s.weigh(j, j.KV[i].weight())
	}
	for si := range j.Stages {
		st := &j.Stages[si]
		s.shards += st.shards.n
		s.weigh(j, st.size())
		st.Waits, st.Counts, st.ready = 0, [task.ShardStates]int32{}, nil
		if st.State == task.StageOpen {
			st.ready = newBitset(st.shards.n, j.Spec.ranks[si])
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
	if k := j.Spec.IdempotencyKey; k != "" && j.Schedule == "" { // a run's key is its occurrence
		s.byKey[k] = j.Seq
	}
}

func (s *State) addLease(j *Job, stage, shard int, sh *Shard) {
	l := &Lease{Ref: task.ShardRef{Job: j.ID, Stage: stage, Shard: shard}, Seq: j.Seq, Token: sh.Token, Node: sh.Node}
	s.leases[sh.Token] = l
	s.held[sh.Node][sh.Token] = l
	j.queue.Active++
	s.book(l, 1)
	if len(s.leases) == 1 || sh.Due < s.due {
		s.due = sh.Due
	}
}

func (s *State) dropLease(j *Job, sh *Shard) {
	j.queue.Active--
	s.book(s.leases[sh.Token], -1)
	delete(s.leases, sh.Token)
	delete(s.held[sh.Node], sh.Token)
}

// begin counts a job as unfinished.
func (s *State) begin(j *Job) {
	s.live++
	j.queue.users++
	if j.Schedule != "" {
		runs := s.runs[j.Schedule]
		i, _ := slices.BinarySearch(runs, j.Seq)
		s.runs[j.Schedule] = slices.Insert(runs, i, j.Seq)
	}
}

// finish undoes begin.
func (s *State) finish(j *Job) {
	s.live--
	j.queue.users--
	if j.Schedule == "" {
		return
	}
	runs := s.runs[j.Schedule]
	if i, found := slices.BinarySearch(runs, j.Seq); found {
		runs = slices.Delete(runs, i, i+1)
	}
	s.runs[j.Schedule] = runs
	if len(runs) == 0 {
		delete(s.runs, j.Schedule)
	}
	s.over = append(s.over, j.Schedule)
}

// Due is the earliest instant at which something falls due by itself: a lease deadline (or a little earlier), a retry time, or
// a job's start_within or deadline. ok is false when nothing is outstanding.
func (s *State) Due() (at task.Instant, ok bool) {
	if len(s.leases) > 0 {
		at, ok = s.due, true
	}
	if len(s.waits) > 0 && (!ok || s.waits[0].due < at) {
		at, ok = s.waits[0].due, true
	}
	return at, ok
}

// DueLed is the next thing that falls due on Led by itself: a start_within or a deadline. Nothing has to be written for Led to move,
// so that a leader only wakes for it.
func (s *State) DueLed() (at task.Millis, ok bool) {
	if len(s.expiries) == 0 {
		return 0, false
	}
	return s.expiries[0].at, true
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
