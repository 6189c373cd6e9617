package api

import (
	"context"
	"fmt"

	"lanjobs/fsm"
	"lanjobs/task"
)

// Names of the cluster's health.
const (
	healthy  = "healthy"
	degraded = "degraded"
	noLeader = "no_leader"
)

// status answers GET /v1/status.
func (a *API) status(_ context.Context, q *request) (*reply, error) {
	var out task.ClusterView
	a.lookAtNodes(q, func(v *view) {
		out = v.cluster()
		out.Self, out.SelfName, out.Version = q.via, v.nameOf(q.via), a.cfg.Version
		if out.Name == "" {
			out.Name = a.cfg.Cluster
		}
		if q.via == a.cfg.Self {
			out.SelfName = a.cfg.Name
		} else if n := v.Node(q.via); n != nil && n.Info.Version != "" {
			out.Version = n.Info.Version
		}
	})
	return ok(out)
}

func (v *view) cluster() task.ClusterView {
	out := task.ClusterView{Name: v.Cluster.Name, ID: v.Cluster.ID, Term: v.Term, Index: v.Index, Clock: v.Clock,
		Nodes: []task.NodeView{}, Jobs: []task.JobView{}, Voters: v.voters.voters}
	v.present(func(n *fsm.Node) { out.Nodes = append(out.Nodes, v.node(n)) })
	out.Survives = max(v.voters.answering-v.voters.needed(), 0)
	out.Health, out.Sentence = v.health(len(out.Nodes))
	if v.leader != "" {
		out.Leader, out.LeaderName = v.leader, v.nameOf(v.leader)
	}
	if v.orphan {
		out.StaleSeconds = v.silence.Seconds()
	}
	v.levels(&out)
	out.Jobs = v.statusJobs()
	out.Notices = v.warnings()
	return out
}

// health is how the cluster does, and what that means.
func (v *view) health(machines int) (health, sentence string) {
	e := v.voters
	if v.leader == "" && v.out { // no election is going on that it could hear of
		return noLeader, "this machine takes no part in it any more"
	}
	if v.leader == "" {
		return noLeader, e.sentence()
	}
	switch {
	case v.Cluster.ID == "" || machines <= 1 && e.voters <= 1:
		return healthy, "1 voter: this machine only"
	case e.voters == 1 && machines == 2:
		return healthy, "2 machines: 1 voter, not yet fault tolerant: a third machine makes it 3"
	case e.voters == 1 && v.mayVote() < 3:
		return healthy, fmt.Sprintf("%d machines: 1 voter, not yet fault tolerant: %d of them may vote, which takes 3 (lanjobs node promote NODE)", machines, v.mayVote())
	case e.voters == 1:
		return healthy, fmt.Sprintf("%d machines: 1 voter, not yet fault tolerant: more become voters once they are up to date", machines)
	case len(e.away) > 0:
		return degraded, fmt.Sprintf("%d voters, %s silent: %s", e.voters, v.awayNames(), survives(e.answering-e.needed(), " further"))
	case e.voters == 2:
		return degraded, "2 voters: survives no failure"
	}
	return healthy, fmt.Sprintf("%d voters: %s", e.voters, survives(e.answering-e.needed(), ""))
}

// mayVote counts the machines that may become voters: not joined as workers only, and not kept from it by a person.
func (v *view) mayVote() (n int) {
	v.present(func(m *fsm.Node) {
		if m.Info.Voter && m.Care.Seat != fsm.NodeDemote {
			n++
		}
	})
	return n
}

func (v *view) awayNames() string {
	var names []string
	for _, m := range v.voters.away {
		names = append(names, v.nameOf(m.ID))
	}
	return some(names, maxNamed, ", ")
}

func survives(n int, more string) string {
	switch {
	case n <= 0:
		return "survives no" + more + " failure"
	case n == 1:
		return "survives 1" + more + " failure"
	}
	return fmt.Sprintf("survives %d%s failures", n, more)
}

// statusJobs are the unfinished jobs and the newest finished ones, newest first.
func (v *view) statusJobs() []task.JobView {
	out := []task.JobView{}
	left, live, ended := v.Live(), statusJobs, statusEnded
	v.JobsNewestFirst(func(j *fsm.Job) bool {
		if j.State.Final() {
			if ended--; ended >= 0 {
				out = append(out, v.job(j))
			}
		} else {
			left--
			if live--; live >= 0 {
				out = append(out, v.job(j))
			}
		}
		return (left > 0 && live > 0) || ended > 0
	})
	return out
}

// health answers GET /healthz: the process lives and answers.
func (a *API) health(context.Context, *request) (*reply, error) {
	return textReply([]byte("ok\n")), nil
}

// ready answers GET /readyz: this member knows a leader.
func (a *API) ready(context.Context, *request) (*reply, error) {
	st := a.cfg.Ledger.Standing()
	if st.Leads || st.Leader != "" {
		return textReply([]byte("ready\n")), nil
	}
	rep := textReply([]byte("no leader\n"))
	rep.status = 503
	return rep, nil
}
