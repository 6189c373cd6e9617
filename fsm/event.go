package fsm

import "lanjobs/task"

// releaseGroup gathers releases that one command reports for shards of one stage on one node with the same plain outcome,
// so that the audit log gets one line for a group and still names every shard and token.
type releaseGroup struct {
	e      task.Event
	shards []int
	next   task.Token
}

// add takes a release before the shard's record is changed by it.
func (g *releaseGroup) add(s *State, j *Job, ref task.ShardRef, sh *Shard, reason string) {
	n := s.nodes[sh.Node]
	stage := j.Spec.Stages[ref.Stage].Name
	joins := len(g.shards) > 0 && g.e.Job == j.ID && g.e.Stage == stage && g.e.Reason == reason && g.e.Node == n.Info.ID &&
		sh.Token == g.next && ref.Shard > g.shards[len(g.shards)-1]
	if !joins {
		g.flush(s)
		g.e = task.Event{Kind: task.EventLeaseRelease, Job: j.ID, JobName: j.Spec.Name, Stage: stage, Token: sh.Token, Execution: sh.Token.Execution(),
			Node: n.Info.ID, NodeName: n.Info.Name, Attempt: int(sh.Tries), Reason: reason}
	} else {
		g.e.LastToken, g.e.Attempt = sh.Token, 0
	}
	g.shards = append(g.shards, ref.Shard)
	g.next = sh.Token + 1
}

// flush writes what is gathered; emit calls it first, so that what follows from a release stands after it.
func (g *releaseGroup) flush(s *State) {
	if len(g.shards) == 0 {
		return
	}
	g.e.Shards = task.FormatRanges(g.shards)
	s.append(g.e)
	g.shards = g.shards[:0]
}
