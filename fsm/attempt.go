package fsm

import "lanjobs/task"

// endAttempt closes the current attempt of a leased shard: records it, frees the lease, and decides what follows (R27).
func (s *State) endAttempt(j *Job, stage, shard int, sh *Shard, o task.Outcome, outputs []task.KV) {
	st, spec := &j.Stages[stage], &j.Spec.Stages[stage]
	s.dropLease(j, sh)
	sh.Ended = s.Clock
	verdict := spec.Retry.Judge(o)
	if verdict == task.VerdictSucceeded {
		s.succeed(j, st, sh, outputs)
		s.prove(j, stage, shard)
	} else {
		s.afterFailure(j, stage, shard, sh, o, verdict)
	}
	switch sh.State {
	case task.ShardPending:
		s.enqueue(j, stage, shard, sh)
	case task.ShardFailed:
		s.emitShard(task.EventShardState, j, stage, shard, sh, task.Event{From: "running", To: "failed", Reason: s.deadReason(j, stage, shard, sh, o, verdict)})
		s.failFast(j, stage)
	}
	if sh.State.Done() {
		s.stageProgress(j, stage)
	}
	if verdict == task.VerdictUnmet {
		s.unstart(j)
	}
	s.refreshReady(j)
}

// unstart makes a job pending again of which nothing has run yet, since all that was granted of it was given back: its start_within goes
// on (R30). Members below level 3 do not know this rule.
func (s *State) unstart(j *Job) {
	if j.Spec.StartWithin == 0 || j.State != task.JobRunning || j.Started == 0 || j.Cancelling || s.Members() < LevelCare || !j.untouched() {
		return
	}
	j.Started, j.StartedLed = 0, 0
	s.setJobState(j, task.JobPending, "nothing of it could start")
	s.watch(j)
}

// untouched tells whether no attempt of a job has ever run, nor may run now.
func (j *Job) untouched() bool {
	for i := range j.Stages {
		st := &j.Stages[i]
		if st.Counts[task.ShardPending] != int32(st.shards.n) {
			return false
		}
		for k := range st.shards.n {
			if st.shards.at(k).touched() {
				return false
			}
		}
	}
	return true
}

// touched tells whether an attempt of the shard has ended otherwise than by being given back before its start.
func (sh *Shard) touched() bool {
	if sh.Fails > 0 || sh.Losses > 0 || sh.Defers > 0 {
		return true
	}
	for _, r := range sh.History() {
		if r.Outcome.End != task.EndUnmet {
			return true
		}
	}
	return false
}

// succeed ends a shard. outputs, if any, are all that it has from now on.
func (s *State) succeed(j *Job, st *Stage, sh *Shard, outputs []task.KV) {
	s.move(st, sh, task.ShardSucceeded)
	sh.Due = 0
	if sh.Extra == nil && outputs == nil {
		return
	}
	s.change(j, sh, func(x *Extra) {
		x.Checkpoint.Data, x.puts, x.HasCursor, x.Cursor, x.SplitWanted = nil, nil, false, 0, false // nobody resumes a done shard; the number stays for display
		if outputs != nil {
			x.Outputs = outputs
		}
	})
}

// afterFailure records a failed attempt and moves the shard to pending, failed or cancelled.
func (s *State) afterFailure(j *Job, stage, shard int, sh *Shard, o task.Outcome, verdict task.Verdict) {
	policy := j.Spec.Stages[stage].Retry
	counted := false
	to, wait := task.ShardPending, task.Millis(0)
	switch verdict {
	case task.VerdictUnmet:
	case task.VerdictReassign, task.VerdictCancelled:
		// A cancel that the cluster did not order is the machine's doing: run again. Only what a person or the system asked
		// the machine for is free of charge, or a machine that misbehaves would have the shard for ever.
		if o.End != task.EndDrained && o.End != task.EndShutdown {
			sh.Losses = up(sh.Losses)
			if int(sh.Losses) >= policy.LeaseLosses {
				to = task.ShardFailed
			}
		}
	case task.VerdictDefer:
		if sh.Defers < task.MaxDefers {
			sh.Defers = up(sh.Defers)
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
		sh.Fails = up(sh.Fails)
		if verdict == task.VerdictPermanent || int(sh.Fails) >= policy.Attempts {
			to = task.ShardFailed
		} else {
			wait = policy.Wait(int(sh.Fails), uint64(sh.Token))
		}
	}
	switch {
	case j.Cancelling || j.Stages[stage].Stopping:
		to = task.ShardCancelled
	case to == task.ShardPending && s.pinGone(j, stage, shard):
		to = task.ShardFailed
	}
	s.record(j, sh, o, counted)
	s.move(&j.Stages[stage], sh, to)
	sh.Due = 0
	if to == task.ShardPending && wait > 0 {
		sh.Due = s.Clock.Add(wait)
	}
}

// record appends the ended attempt to the shard's history. What does not fit any more is in the audit log.
func (s *State) record(j *Job, sh *Shard, o task.Outcome, counted bool) {
	r := task.AttemptRecord{Number: int(sh.Tries), Node: s.nodes[sh.Node].Info.ID, Token: sh.Token,
		Granted: sh.Granted, Ended: sh.Ended, Counted: counted, Outcome: o}
	keep := task.MaxHistory
	if j.weight >= fullHistory || s.weight >= maxWeight {
		keep, r.Outcome.Tail = 1, ""
	}
	s.change(j, sh, func(x *Extra) {
		h := x.History
		if n := len(h); n > 0 && o.End == task.EndUnmet && h[n-1].Outcome.End == task.EndUnmet {
			h = h[:n-1] // what was given back again and again must not push out what was tried
		}
		if len(h) >= keep {
			h = h[len(h)-keep+1:]
		}
		x.History = append(h[:len(h):len(h)], r)
		x.puts, x.HasCursor, x.Cursor, x.SplitWanted = nil, false, 0, false
	})
}

func (s *State) deadReason(j *Job, stage, shard int, sh *Shard, o task.Outcome, v task.Verdict) string {
	spec := &j.Spec.Stages[stage]
	switch {
	case s.pinGone(j, stage, shard):
		return s.goneReason(j.PinnedTo(stage, shard))
	case v == task.VerdictPermanent:
		return o.String() + " is permanent (retry.permanent_on)"
	case v == task.VerdictReassign || v == task.VerdictCancelled:
		return itoa(int(sh.Losses)) + " leases lost (retry.lease_losses)"
	}
	return o.String() + ", attempt " + itoa(int(sh.Fails)) + " of " + itoa(spec.Retry.Attempts)
}
