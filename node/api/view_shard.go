package api

import (
	"slices"
	"strings"

	"lanjobs/fsm"
	"lanjobs/task"
)

// shard is one shard of a job. With attempts its history is in it.
func (v *view) shard(j *fsm.Job, i, k int, attempts bool) task.ShardView {
	sh, spec := j.Shard(i, k), &j.Spec.Stages[i]
	out := task.ShardView{Stage: spec.Name, Shard: k, State: v.shardState(j, i, sh), Attempt: int(sh.Tries), Failures: int(sh.Fails),
		Attempts: spec.Retry.Attempts, Token: sh.Token, Outputs: slices.Clone(sh.Outputs()), Last: v.last(sh)}
	out.Item, out.Pinned, out.Skipped = j.Item(i, k), j.PinnedTo(i, k), sh.Skipped()
	if r, ok := j.RangeOf(i, k); ok {
		out.Range = &r
	}
	if sh.Tries > 0 && sh.State != task.ShardPending {
		n := v.NodeByPlace(sh.Node)
		out.Node, out.NodeName = n.Info.ID, nodeName(n)
	}
	if sh.Token != 0 {
		out.Execution = sh.Token.Execution()
	}
	if sh.State.Leased() {
		left := max(seconds(sh.Due.Sub(v.Clock)), 0)
		out.LeaseSeconds = &left
		out.Progress = v.progress(sh.Token)
	}
	if out.State == stateBackoff {
		wait := seconds(sh.Due.Sub(v.Clock))
		out.RetrySeconds = &wait
	}
	if x := sh.Extra; x != nil && x.Checkpoint.Seq > 0 {
		age := max(seconds(v.Clock.Sub(x.CheckpointAt)), 0)
		out.CheckpointSeq, out.CheckpointAge = x.Checkpoint.Seq, &age
	}
	if attempts {
		out.History = v.attempts(j, i, k)
	}
	return out
}

// Names of states that no ShardState has.
const (
	stateBackoff = "backoff"
	stateWaiting = "waiting"
	stateSkipped = "skipped"
)

func (v *view) shardState(j *fsm.Job, i int, sh *fsm.Shard) string {
	if sh.State != task.ShardPending {
		return sh.State.String()
	}
	switch st := j.Stages[i].State; {
	case st == task.StageWaiting:
		return stateWaiting
	case st == task.StageSkipped:
		return stateSkipped
	case sh.Due > v.Clock:
		return stateBackoff
	}
	return sh.State.String()
}

func (v *view) progress(t task.Token) string {
	if !v.leads {
		return ""
	}
	return v.sessions.Progress(t)
}

// last is how the attempt that ended last ended: "exit 1 on pc-win". A success is not in the history.
func (v *view) last(sh *fsm.Shard) string {
	if sh.State == task.ShardSucceeded && sh.Tries > 0 {
		return "exit 0 on " + nodeName(v.NodeByPlace(sh.Node))
	}
	h := sh.History()
	if len(h) == 0 {
		return ""
	}
	a := &h[len(h)-1]
	text, on := a.Outcome.String(), " on "+v.nameOf(a.Node)
	return strings.TrimSuffix(text, on) + on // some say it themselves
}

// attempts gives a shard's attempts, the current one or the success last.
func (v *view) attempts(j *fsm.Job, i, k int) []task.AttemptView {
	sh := j.Shard(i, k)
	var out []task.AttemptView
	for n := range sh.History() {
		out = append(out, v.ended(j, i, k, &sh.History()[n]))
	}
	if sh.State.Leased() || sh.State == task.ShardSucceeded && sh.Tries > 0 {
		out = append(out, v.current(j, i, k, sh))
	}
	return out
}

// ended is an attempt of the history.
func (v *view) ended(j *fsm.Job, i, k int, a *task.AttemptRecord) task.AttemptView {
	o := &a.Outcome
	out := task.AttemptView{Stage: j.Spec.Stages[i].Name, Shard: k, Attempt: a.Number, Node: a.Node, NodeName: v.nameOf(a.Node), Token: a.Token,
		Execution: a.Token.Execution(), State: string(o.End), Counted: a.Counted, Seconds: seconds(a.Ended.Sub(a.Granted)), Reason: o.String(), Tail: o.Tail}
	if o.End == task.EndExited {
		code := o.ExitCode
		out.ExitCode = &code
		out.State = task.ShardFailed.String()
		if code == 0 {
			out.State = task.ShardSucceeded.String()
		}
	}
	if o.Message != "" && !strings.Contains(out.Reason, o.Message) {
		out.Reason += ": " + o.Message
	}
	return out
}

// current is the attempt that the shard's own record is about.
func (v *view) current(j *fsm.Job, i, k int, sh *fsm.Shard) task.AttemptView {
	n := v.NodeByPlace(sh.Node)
	out := task.AttemptView{Stage: j.Spec.Stages[i].Name, Shard: k, Attempt: int(sh.Tries), Node: n.Info.ID, NodeName: nodeName(n), Token: sh.Token,
		Execution: sh.Token.Execution(), State: sh.State.String(), Seconds: seconds(v.Clock.Sub(sh.Granted))}
	if sh.State == task.ShardSucceeded {
		zero := 0
		out.ExitCode, out.Seconds, out.Reason = &zero, seconds(sh.Ended.Sub(sh.Granted)), "exit 0"
	}
	return out
}

// weigh is how many bytes a shard takes in an answer, roughly, so that a page of large ones ends early.
func weigh(s *task.ShardView) int {
	n := 400 + len(s.Item) + len(s.Why)
	for _, kv := range s.Outputs {
		n += len(kv.Name) + len(kv.Value) + 24
	}
	for i := range s.History {
		n += 400 + len(s.History[i].Tail) + len(s.History[i].Reason)
	}
	return n
}
