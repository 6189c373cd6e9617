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
	j := s.Job(c.Job)
	if j == nil || j.State.Final() || j.Cancelling || c.Stage < 0 || c.Stage >= len(j.Stages) {
		return refuse(task.ErrConflict, "", "job %s has nothing to grant", c.Job)
	}
	j = s.mutJob(j.Seq)
	tokens := make([]task.Token, len(c.Shards))
	first, last := -1, -1
	for i, shard := range c.Shards {
		st := &j.Stages[c.Stage]
		if shard < 0 || shard >= st.shards.n || j.grantable(c.Stage) == 0 || !st.ready.has(shard) || len(s.held[place]) >= n.Info.Slots {
			continue
		}
		tokens[i] = s.grant(j, c.Stage, shard, place)
		if first < 0 {
			first = i
		}
		last = i
	}
	if first < 0 {
		return Result{Tokens: tokens}
	}
	s.refreshReady(j)
	s.emitGrant(j, c, n, tokens, first, last)
	if j.State == task.JobPending {
		j.Started = s.Wall
		s.setJobState(j, task.JobRunning, "")
	}
	return Result{Tokens: tokens}
}

func (s *State) grant(j *Job, stage, shard int, place int32) task.Token {
	st := &j.Stages[stage]
	sh := s.mutShard(j, stage, shard)
	s.nextToken++
	sh.Token = task.Token(s.Generation<<task.GenerationBits | s.nextToken)
	sh.Node, sh.Granted, sh.Ended, sh.Renewed = place, s.Clock, 0, 0
	sh.Due = s.Clock.Add(j.Spec.Stages[stage].Lease.FirstTTL())
	sh.Tries++
	s.move(st, sh, task.ShardAssigned)
	st.ready.clear(shard)
	s.addLease(j, stage, shard, sh)
	return sh.Token
}

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
		l := s.leases[t]
		if l == nil || l.Node != place {
			continue
		}
		ttls[i] = s.renew(l, c.Load)
	}
	return Result{TTLs: ttls}
}

func (s *State) renew(l *Lease, load task.Load) task.Millis {
	j := s.mutJob(l.Seq)
	sh := s.mutShard(j, l.Ref.Stage, l.Ref.Shard)
	ttl := j.Spec.Stages[l.Ref.Stage].Lease.TTL
	sh.Due, sh.Renewed = s.Clock.Add(ttl), s.Clock
	kind := task.EventLeaseRenew
	if sh.State == task.ShardAssigned {
		s.move(&j.Stages[l.Ref.Stage], sh, task.ShardRunning)
		kind = task.EventLeaseConfirm
	}
	s.emitShard(kind, j, l.Ref.Stage, l.Ref.Shard, sh, task.Event{TTL: ttl, Expiry: sh.Due, Load: &load})
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

// apply takes the ends of attempts. Repeating an accepted report is accepted again and changes nothing (R20).
func (c *Report) apply(s *State) Result {
	codes := make([]string, len(c.Reports))
	for i := range c.Reports {
		r := &c.Reports[i]
		ref := task.ShardRef{Job: r.Job, Stage: r.Stage, Shard: r.Shard}
		l := s.leases[r.Token]
		if l == nil || l.Ref != ref {
			if !s.alreadyReported(ref, r.Token) {
				codes[i] = s.stale(ref, r.Token, "report of "+r.Outcome.String()).Code
			}
			continue
		}
		j := s.mutJob(l.Seq)
		sh := s.mutShard(j, ref.Stage, ref.Shard)
		s.released.add(s, j, ref, sh, r.Outcome.String())
		s.endAttempt(j, ref.Stage, ref.Shard, sh, r.Outcome, r.Outputs)
	}
	return Result{Codes: codes}
}

// alreadyReported tells whether this token's attempt was ended by a report before.
func (s *State) alreadyReported(ref task.ShardRef, t task.Token) bool {
	j := s.Job(ref.Job)
	if j == nil {
		return false
	}
	sh := j.Shard(ref.Stage, ref.Shard)
	if sh == nil {
		return false
	}
	if sh.Token == t && sh.State == task.ShardSucceeded {
		return true
	}
	for _, a := range sh.History() {
		if a.Token == t {
			return a.Outcome.End != task.EndLeaseExpired && a.Outcome.End != task.EndNotConfirmed && a.Outcome.End != task.EndNodeRestarted
		}
	}
	return false
}

// endAttempt closes the current attempt of a leased shard: records it, frees the lease, and decides what follows (R27).
func (s *State) endAttempt(j *Job, stage, shard int, sh *Shard, o task.Outcome, outputs []task.KV) {
	st, spec := &j.Stages[stage], &j.Spec.Stages[stage]
	s.dropLease(sh)
	sh.Ended = s.Clock
	verdict := spec.Retry.Judge(o)
	if verdict == task.VerdictSucceeded {
		s.succeed(st, sh, outputs)
	} else {
		s.afterFailure(j, stage, sh, o, verdict)
	}
	switch sh.State {
	case task.ShardPending:
		s.enqueue(j, stage, shard, sh)
	case task.ShardFailed:
		s.emitShard(task.EventShardState, j, stage, shard, sh, task.Event{From: "running", To: "failed", Reason: deadReason(sh, spec, o, verdict)})
	}
	if sh.State.Done() {
		s.stageProgress(j, stage)
	}
	s.refreshReady(j)
}

func (s *State) succeed(st *Stage, sh *Shard, outputs []task.KV) {
	s.move(st, sh, task.ShardSucceeded)
	sh.Due = 0
	if len(outputs) == 0 && (sh.Extra == nil || sh.Extra.Checkpoint.Data == nil) {
		return
	}
	x := sh.mutExtra()
	x.Checkpoint.Data = nil // nobody resumes a done shard; its number stays for display
	for _, kv := range outputs {
		x.Outputs = setKVKeepEmpty(x.Outputs, kv)
	}
}

// afterFailure records a failed attempt and moves the shard to pending, failed or cancelled.
func (s *State) afterFailure(j *Job, stage int, sh *Shard, o task.Outcome, verdict task.Verdict) {
	policy := j.Spec.Stages[stage].Retry
	counted := false
	to, wait := task.ShardPending, task.Millis(0)
	switch verdict {
	case task.VerdictCancelled:
		// A cancel that the cluster did not order is the machine's doing: run again.
	case task.VerdictReassign:
		if o.End != task.EndDrained && o.End != task.EndShutdown {
			sh.Losses++
			if int(sh.Losses) >= policy.LeaseLosses {
				to = task.ShardFailed
			}
		}
	case task.VerdictDefer:
		if sh.Defers < task.MaxDefers {
			sh.Defers++
			wait = o.Wait
			if wait <= 0 {
				wait = policy.Wait(1, uint64(sh.Token))
			}
			break
		}
		verdict = task.VerdictRetry
		fallthrough
	default:
		counted = true
		sh.Fails++
		if verdict == task.VerdictPermanent || int(sh.Fails) >= policy.Attempts {
			to = task.ShardFailed
		} else {
			wait = policy.Wait(int(sh.Fails), uint64(sh.Token))
		}
	}
	if j.Cancelling {
		to = task.ShardCancelled
	}
	s.record(sh, o, counted)
	s.move(&j.Stages[stage], sh, to)
	sh.Due = 0
	if to == task.ShardPending && wait > 0 {
		sh.Due = s.Clock.Add(wait)
	}
}

// record appends the ended attempt to the shard's history.
func (s *State) record(sh *Shard, o task.Outcome, counted bool) {
	x := sh.mutExtra()
	h := x.History
	if len(h) >= task.MaxHistory {
		h = h[len(h)-task.MaxHistory+1:]
	}
	x.History = append(h[:len(h):len(h)], task.AttemptRecord{Number: int(sh.Tries), Node: s.nodes[sh.Node].Info.ID, Token: sh.Token,
		Granted: sh.Granted, Ended: s.Clock, Counted: counted, Outcome: o})
}

func deadReason(sh *Shard, spec *task.StageSpec, o task.Outcome, v task.Verdict) string {
	switch {
	case v == task.VerdictPermanent:
		return o.String() + " is permanent (retry.permanent_on)"
	case v == task.VerdictReassign:
		return itoa(int(sh.Losses)) + " leases lost (retry.lease_losses)"
	}
	return o.String() + ", attempt " + itoa(int(sh.Fails)) + " of " + itoa(spec.Retry.Attempts)
}

func setKVKeepEmpty(kvs []task.KV, kv task.KV) []task.KV {
	for i := range kvs {
		if kvs[i].Name == kv.Name {
			out := append([]task.KV(nil), kvs...)
			out[i] = kv
			return out
		}
	}
	return append(kvs[:len(kvs):len(kvs)], kv)
}
