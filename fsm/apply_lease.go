package fsm

import (
	"lanjobs/task"
)

// apply grants each shard that still may be granted; the others come back as token 0.
func (c *Grant) apply(s *State) Result {
	place, problem := s.member(c.Node)
	if problem != nil {
		return Result{Err: problem}
	}
	n := s.nodes[place]
	if n.Incarnation != c.Incarnation || n.Draining || !n.Online {
		return refuse(task.ErrConflict, "", "node %s takes nothing now", n.Info.Name)
	}
	for i := 1; i < len(c.Shards); i++ {
		if c.Shards[i] <= c.Shards[i-1] { // the audit log names a grant's shards and tokens by their first and last
			return refuse(task.ErrInvalid, "", "the shards of a grant are not in ascending order")
		}
	}
	j := s.Job(c.Job)
	if j == nil || j.State.Final() || j.Cancelling || c.Stage < 0 || c.Stage >= len(j.Stages) {
		return refuse(task.ErrConflict, "", "job %s has nothing to grant", c.Job)
	}
	j = s.mutJob(j.Seq)
	tokens := make([]task.Token, len(c.Shards))
	first, last := -1, -1
	st := &j.Stages[c.Stage]
	var skipped skipGroup
	for i, shard := range c.Shards {
		if shard < 0 || shard >= st.shards.n || j.grantable(c.Stage) == 0 || !st.ready.has(shard) || len(s.held[place]) >= n.Info.Slots || !s.queueTakes(j, shard, c) {
			continue
		}
		if p := s.skipKnown(j, c.Stage, shard); p != nil { // it has succeeded elsewhere since the stage opened
			skipped.add(s, j, c.Stage, shard, p.Job)
			continue
		}
		token, ok := s.newToken()
		if !ok {
			continue
		}
		tokens[i] = token
		s.grant(j, c.Stage, shard, place, token)
		if first < 0 {
			first = i
		}
		last = i
	}
	skipped.flush(s, j, c.Stage)
	if first >= 0 {
		s.emitGrant(j, c, n, tokens, first, last)
		s.start(j)
	}
	s.stageProgress(j, c.Stage)
	s.refreshReady(j)
	return Result{Tokens: tokens}
}

// queueTakes tells whether the job's queue has room for one lease more, and the shard may run on the node.
func (s *State) queueTakes(j *Job, shard int, c *Grant) bool {
	pin := j.PinnedTo(c.Stage, shard)
	return j.queue.Room() > 0 && (pin == "" || pin == c.Node)
}

// start records that something of a job has begun to run.
func (s *State) start(j *Job) {
	if j.State == task.JobPending {
		j.Started = s.Wall
		s.setJobState(j, task.JobRunning, "")
		s.startDeadline(j)
	}
}

func (s *State) grant(j *Job, stage, shard int, place int32, token task.Token) {
	st := &j.Stages[stage]
	sh := s.mutShard(j, stage, shard)
	sh.Token, sh.Node, sh.Granted, sh.Ended, sh.Renewed = token, place, s.Clock, 0, 0
	sh.Due = s.Clock.Add(j.Spec.Stages[stage].Lease.FirstTTL())
	sh.Tries = up(sh.Tries)
	s.move(st, sh, task.ShardAssigned)
	st.ready.clear(shard)
	s.addLease(j, stage, shard, sh)
}

// newToken gives the next token (I3). A generation that has given all of its tokens is followed by the next; when the last
// one has, nothing is granted any more.
func (s *State) newToken() (task.Token, bool) {
	if s.nextToken >= maxToken {
		if s.Generation >= maxGeneration {
			return 0, false
		}
		s.Generation, s.nextToken = s.Generation+1, 0
	}
	s.nextToken++
	return s.newestToken(), true
}

// newestToken is the last token given: none is higher.
func (s *State) newestToken() task.Token {
	return task.Token(s.Generation<<task.GenerationBits | s.nextToken)
}

// up counts and stops at the highest number.
func up[T uint8 | uint16 | int32](n T) T { return max(n, n+1) }

func (s *State) emitGrant(j *Job, c *Grant, n *Node, tokens []task.Token, first, last int) {
	var granted []int
	for i, t := range tokens {
		if t != 0 {
			granted = append(granted, c.Shards[i])
		}
	}
	sh := j.Shard(c.Stage, c.Shards[first])
	e := task.Event{Kind: task.EventLeaseGrant, Job: j.ID, JobName: j.Spec.Name, Stage: j.Spec.Stages[c.Stage].Name,
		Shards: task.FormatRanges(granted), Token: tokens[first], Execution: tokens[first].Execution(), Node: n.Info.ID, NodeName: n.Info.Name,
		TTL: sh.Due.Sub(s.Clock), Expiry: sh.Due}
	if last != first {
		e.LastToken = tokens[last]
	} else {
		e.Attempt = int(sh.Tries)
	}
	s.emit(e)
}

// move changes a shard's state and the stage's counts.
func (s *State) move(st *Stage, sh *Shard, to task.ShardState) {
	st.Counts[sh.State]--
	st.Counts[to]++
	sh.State = to
}

// apply extends each lease that still is the node's; the first renewal confirms an assignment.
func (c *Renew) apply(s *State) Result {
	place, problem := s.member(c.Node)
	if problem != nil {
		return Result{Err: problem}
	}
	if s.nodes[place].Incarnation != c.Incarnation {
		return refuse(task.ErrStaleToken, "", "node %s has started again since", s.nodes[place].Info.Name)
	}
	ttls := make([]task.Millis, len(c.Tokens))
	for i, t := range c.Tokens {
		switch l := s.leases[t]; {
		case l == nil: // over, often by a report that overtook the renewal: no fault, and audited when it ended
		case l.Node != place:
			s.stale(l.Ref, t, c.Node, "renewal of another node's lease")
		default:
			ttls[i] = s.renew(l, &c.Load)
		}
	}
	return Result{TTLs: ttls}
}

func (s *State) renew(l *Lease, load *task.Load) task.Millis {
	j := s.mutJob(l.Seq)
	sh := s.mutShard(j, l.Ref.Stage, l.Ref.Shard)
	ttl := j.Spec.Stages[l.Ref.Stage].Lease.TTL
	sh.Due, sh.Renewed = s.Clock.Add(ttl), s.Clock
	kind := task.EventLeaseRenew
	if sh.State == task.ShardAssigned {
		s.move(&j.Stages[l.Ref.Stage], sh, task.ShardRunning)
		kind = task.EventLeaseConfirm
	}
	s.emitShard(kind, j, l.Ref.Stage, l.Ref.Shard, sh, task.Event{TTL: ttl, Expiry: sh.Due, Load: load})
	return ttl
}

// apply ends the leases whose deadline has passed; a renewal committed before it wins (I6).
func (c *Expire) apply(s *State) Result {
	for _, t := range c.Tokens {
		l := s.leases[t]
		if l == nil || s.LeaseDue(l) > s.Clock {
			continue
		}
		j := s.mutJob(l.Seq)
		sh := s.mutShard(j, l.Ref.Stage, l.Ref.Shard)
		end := task.EndLeaseExpired
		if sh.State == task.ShardAssigned {
			end = task.EndNotConfirmed
		}
		o := task.Outcome{End: end}
		s.emitShard(task.EventLeaseExpire, j, l.Ref.Stage, l.Ref.Shard, sh, task.Event{Expiry: sh.Due, LastRenewal: sh.Renewed, Reason: o.String()})
		s.endAttempt(j, l.Ref.Stage, l.Ref.Shard, sh, o, nil)
	}
	return Result{}
}
