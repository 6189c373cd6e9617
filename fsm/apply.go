package fsm

import (
	"fmt"
	"strconv"

	"lanjobs/task"
)

// Apply decodes and applies one log entry. Nothing is changed when err is not nil: the entry is from a newer version
// (ErrUnknownCommand) or damaged, and the caller must stop applying. Results are one per command, in order; a refused
// command has its Err and changed nothing. Events are what the entry did, for the audit log.
func (s *State) Apply(index uint64, data []byte) ([]Result, []task.Event, error) {
	b, err := DecodeBatch(data)
	if err != nil {
		return nil, nil, fmt.Errorf("entry %d: %w", index, err)
	}
	results, events := s.ApplyBatch(index, b)
	return results, events, nil
}

// ApplyBatch applies a decoded batch.
func (s *State) ApplyBatch(index uint64, b *Batch) ([]Result, []task.Event) {
	s.Index, s.Wall, s.out, s.likely = index, b.Wall, nil, b.likelyEvents()
	elapsed := min(max(b.Elapsed, 0), MaxElapsed)
	s.Led = min(s.Led+elapsed+length(b.Idle), maxLed)
	if elapsed > 0 {
		s.advance(elapsed)
	}
	s.purgeKeys()
	results := make([]Result, len(b.Commands))
	for i, c := range b.Commands {
		results[i] = c.apply(s)
		s.fireWaiting()
	}
	s.released.flush(s)
	s.dropStaleWaits()
	s.dropStaleExpiries()
	s.tightenDue()
	events := s.out
	s.out = nil
	return results, events
}

// likelyEvents is about how many events a batch makes: a little too many is cheaper than to copy them all once more.
func (b *Batch) likelyEvents() int {
	n := 8
	for _, c := range b.Commands {
		switch c := c.(type) {
		case *SubmitJob:
			n += 2 // submitted, its first stage open
		case *Grant:
			n += 2 + len(c.Shards)/8 // granted, and perhaps its job is running now
		case *Report:
			n += c.likelyEvents()
		}
	}
	return min(n, 1<<13)
}

// likelyEvents: each job whose last shard it may be has an event of the attempt, of the stage and of the job; ends of one job's
// shards that follow each other have one event for all.
func (c *Report) likelyEvents() int {
	n := len(c.Reports) / 8
	for i := range c.Reports {
		if i == 0 || c.Reports[i].Job != c.Reports[i-1].Job {
			n += 3
		}
	}
	return n
}

// emit adds an event of the batch.
func (s *State) emit(e task.Event) {
	s.released.flush(s)
	s.append(e)
}

func (s *State) append(e task.Event) {
	if s.out == nil {
		s.out = make([]task.Event, 0, s.likely) // an event is large to copy
	}
	e.Index, e.N, e.Clock, e.Wall = s.Index, len(s.out), s.Clock, s.Wall
	s.out = append(s.out, e)
}

// emitShard adds an event about one shard.
func (s *State) emitShard(kind task.EventKind, j *Job, stage, shard int, sh *Shard, e task.Event) {
	e.Kind, e.Job, e.JobName, e.Stage, e.Shards = kind, j.ID, j.Spec.Name, j.Spec.Stages[stage].Name, itoa(shard)
	if sh.Token != 0 {
		n := s.nodes[sh.Node]
		e.Attempt, e.Execution, e.Token = int(sh.Tries), sh.Token.Execution(), sh.Token
		e.Node, e.NodeName = n.Info.ID, n.Info.Name
	}
	s.emit(e)
}

func refuse(sentinel error, hint, format string, args ...any) Result {
	return Result{Err: task.NewProblem(sentinel, fmt.Sprintf(format, args...), hint)}
}

// member gives the place of a node that may act, or the refusal.
func (s *State) member(id task.NodeID) (int32, *task.Problem) {
	i, ok := s.nodeAt[id]
	if !ok {
		return 0, task.NewProblem(task.ErrNotFound, "no node "+string(id)+" is known here", "")
	}
	if g := s.nodes[i].Gone; g != "" {
		return 0, task.NewProblem(task.ErrNotAllowed, "node "+s.nodes[i].Info.Name+" is no longer a member", "")
	}
	return i, nil
}

// holder gives a shard for writing if the token is its current lease; otherwise it records the refusal (R11, I4).
func (s *State) holder(ref task.ShardRef, token task.Token, what string) (*Job, *Shard, *task.Problem) {
	l := s.leases[token]
	if l == nil || l.Ref != ref {
		return nil, nil, s.stale(ref, token, "", what)
	}
	j := s.mutJob(l.Seq)
	return j, s.mutShard(j, ref.Stage, ref.Shard), nil
}

// stale audits a refused token and gives its refusal. from is the node that used it, "" where the command does not say.
func (s *State) stale(ref task.ShardRef, token task.Token, from task.NodeID, what string) *task.Problem {
	e := task.Event{Kind: task.EventLeaseRefuse, Job: task.JobID(clip(string(ref.Job), maxIDLength)), Shards: itoa(ref.Shard), Token: token, Execution: token.Execution(),
		Node: task.NodeID(clip(string(from), maxIDLength)), Reason: "stale token: " + what + " refused"}
	if n := s.Node(from); n != nil {
		e.NodeName = n.Info.Name
	}
	if j := s.Job(ref.Job); j != nil && ref.Stage >= 0 && ref.Stage < len(j.Stages) {
		e.JobName, e.Stage = j.Spec.Name, j.Spec.Stages[ref.Stage].Name
	}
	s.emit(e)
	return task.NewProblem(task.ErrStaleToken, task.ErrStaleToken.Error(), "")
}

func itoa(n int) string { return strconv.Itoa(n) }
