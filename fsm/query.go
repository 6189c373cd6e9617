package fsm

import "lanjobs/task"

// What readers may ask. Nothing here changes the state, and what is handed out is for reading until the next Apply.

// Node finds a node, nil if there is none.
func (s *State) Node(id task.NodeID) *Node {
	if i, ok := s.nodeAt[id]; ok {
		return s.nodes[i]
	}
	return nil
}

// Nodes gives all nodes in order of first registration, those that are gone too.
func (s *State) Nodes() []*Node { return s.nodes }

// NodeByPlace is the node of Shard.Node.
func (s *State) NodeByPlace(i int32) *Node { return s.nodes[i] }

// Held is how many leases a node holds.
func (s *State) Held(id task.NodeID) int {
	if i, ok := s.nodeAt[id]; ok {
		return len(s.held[i])
	}
	return 0
}

// LeasesOf calls f for each lease of a node, in no order.
func (s *State) LeasesOf(id task.NodeID, f func(*Lease)) {
	if i, ok := s.nodeAt[id]; ok {
		for _, l := range s.held[i] {
			f(l)
		}
	}
}

// Lease finds the lease of a token, nil if it is over.
func (s *State) Lease(t task.Token) *Lease { return s.leases[t] }

// Leases calls f for each lease, in no order.
func (s *State) Leases(f func(*Lease)) {
	for _, l := range s.leases {
		f(l)
	}
}

// LeaseCount is the number of leases held.
func (s *State) LeaseCount() int { return len(s.leases) }

// Job finds a job by its full id.
func (s *State) Job(id task.JobID) *Job {
	if i, ok := s.jobAt[id]; ok {
		return *s.jobs.at(i)
	}
	return nil
}

// JobBySeq gives the job of a sequence number, nil if it was collected. A number means the same job for as long as readers
// may keep it, but not for ever (see rebase): what outlives a read is named by its id.
func (s *State) JobBySeq(seq int) *Job {
	if seq < 0 || seq >= s.jobs.n {
		return nil
	}
	return *s.jobs.at(seq)
}

// JobSeqs is one more than the highest sequence number: newest jobs have the highest.
func (s *State) JobSeqs() int { return s.jobs.n }

// Jobs calls f for each job from the oldest on, until f gives false.
func (s *State) Jobs(f func(*Job) bool) {
	s.jobs.each(func(_ int, j **Job) bool { return *j == nil || f(*j) })
}

// JobsNewestFirst calls f for each job from the newest on, until f gives false.
func (s *State) JobsNewestFirst(f func(*Job) bool) { s.JobsBefore(s.jobs.n, f) }

// JobsBefore is JobsNewestFirst for those with lower numbers than seq.
func (s *State) JobsBefore(seq int, f func(*Job) bool) {
	s.jobs.eachBack(seq, func(_ int, j **Job) bool { return *j == nil || f(*j) })
}

// Live is the number of jobs that are not final.
func (s *State) Live() int { return s.live }

// JoinTokens gives the join tokens.
func (s *State) JoinTokens() []*JoinToken { return s.tokens }

// Shard gives a shard's record for reading, nil if there is none.
func (j *Job) Shard(stage, shard int) *Shard {
	if stage < 0 || stage >= len(j.Stages) || shard < 0 || shard >= j.Stages[stage].shards.n {
		return nil
	}
	return j.Stages[stage].shards.at(shard)
}

// Len is the number of shards.
func (st *Stage) Len() int { return st.shards.n }

// At gives a shard's record for reading.
func (st *Stage) At(i int) *Shard { return st.shards.at(i) }

// Active is the number of leased shards.
func (st *Stage) Active() int {
	return int(st.Counts[task.ShardAssigned] + st.Counts[task.ShardRunning])
}

// History gives the shard's ended attempts that are in its record.
func (sh *Shard) History() []task.AttemptRecord {
	if sh.Extra == nil {
		return nil
	}
	return sh.Extra.History
}

// Checkpoint gives the last accepted checkpoint, nil if none.
func (sh *Shard) Checkpoint() *task.Checkpoint {
	if sh.Extra == nil || sh.Extra.Checkpoint.Seq == 0 {
		return nil
	}
	return &sh.Extra.Checkpoint
}

// Outputs gives the registered outputs.
func (sh *Shard) Outputs() []task.KV {
	if sh.Extra == nil {
		return nil
	}
	return sh.Extra.Outputs
}
