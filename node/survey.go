package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"lanjobs/node/api"
	"lanjobs/task"
	"lanjobs/transport"
)

// surveyTimeout is how long a machine may take to answer before it counts as lost.
const surveyTimeout = 3 * time.Second

// survey asks every member how it is and judges whether a quorum is lost, and whether this machine is the one to go on with.
func (m *machine) survey(ctx context.Context) (*transport.RecoverView, error) {
	if m.wire == nil {
		return nil, task.NewProblem(task.ErrConflict, "this machine belongs to no cluster: there is no quorum to lose.", "See it: lanjobs status")
	}
	v := &transport.RecoverView{Cluster: m.identity.Cluster.Name, Generation: transport.GenerationNumber(m.identity.Cluster.Generation)}
	members := peers{m}.Members()
	var own *transport.Survivor
	for _, p := range members {
		v.Machines = append(v.Machines, transport.Survivor{ID: p.ID, Name: m.nameOf(p.ID), Role: string(p.Role), AwaySeconds: p.Away.Seconds(), Refusal: p.Refusal})
	}
	m.questionAll(ctx, v.Machines)
	for i := range v.Machines {
		s := &v.Machines[i]
		if s.ID == m.identity.NodeID {
			own, s.Self, s.Answers = s, true, true
			s.LastTerm, s.LastIndex = m.core.Newest()
			s.Leader = m.core.LeaderID()
		}
		if s.Role == string(api.RoleVoter) || s.Role == string(api.RoleLeader) {
			v.Voters++
			if s.Answers {
				v.Answering++
			}
		}
	}
	v.Needed = v.Voters/2 + 1
	if own == nil {
		return nil, task.NewProblem(task.ErrNoLeader, "this machine does not know its cluster yet.", "Try again in a few seconds.")
	}
	m.judge(v, own)
	return v, nil
}

// questionAll fills in what the members answer.
func (m *machine) questionAll(ctx context.Context, all []transport.Survivor) {
	ctx, cancel := transport.WithTimeout(ctx, m.clock, surveyTimeout)
	defer cancel()
	var asked sync.WaitGroup
	for i := range all {
		s := &all[i]
		if s.ID == m.identity.NodeID {
			continue
		}
		asked.Go(func() {
			var h transport.HistoryReply
			if m.caller.Call(ctx, s.ID, transport.MethodHistory, &transport.HistoryRequest{}, &h) == nil {
				s.Answers = max(h.Cluster.Generation, 1) == max(m.identity.Cluster.Generation, 1)
				s.Generation, s.LastTerm, s.LastIndex, s.Leader = transport.GenerationNumber(h.Cluster.Generation), h.LastTerm, h.LastIndex, h.Leader
				return
			}
			// One that keeps no copy, or is of the version before.
			var p transport.PingReply
			if m.caller.Call(ctx, s.ID, transport.MethodPing, &transport.PingRequest{}, &p) == nil {
				s.Answers, s.LastTerm, s.LastIndex = true, p.Term, p.LastIndex
			}
		})
	}
	asked.Wait()
}

// judge says in v why nothing is to be recovered, or not here; nothing of that if a person may decide to.
func (m *machine) judge(v *transport.RecoverView, own *transport.Survivor) {
	best := own
	var answering []string
	for i := range v.Machines {
		s := &v.Machines[i]
		v.Above = append(v.Above, s.Generation)
		if s.Generation > v.Generation {
			v.Refusal = fmt.Sprintf("%q was recovered already: %s is of generation %d, this machine of %d. It goes over by itself.", v.Cluster, s.Name, s.Generation, v.Generation)
			v.Hint = "See it: lanjobs status"
			return
		}
		if s.Answers && leads(v.Machines, s.Leader) {
			v.Refusal, v.Hint = fmt.Sprintf("%q has a leader, %s: nothing is lost.", v.Cluster, m.nameOf(s.Leader)), "See who is away: lanjobs status"
			return
		}
		if s.Answers && !s.Self && s.Role != string(api.RoleWorker) {
			answering = append(answering, s.Name)
		}
		if s.Answers && newer(s, best) {
			best = s
		}
	}
	for i := range v.Machines {
		s := &v.Machines[i]
		s.Behind = max(int64(best.LastIndex)-int64(s.LastIndex), 0)
	}
	v.Best = best.Name
	switch {
	case v.Answering >= v.Needed:
		v.Refusal = fmt.Sprintf("nothing is lost: %d of %d voters are up (%s), and %d can elect a leader.", v.Answering, v.Voters, listed(append(answering, own.Name+", this machine")), v.Needed)
		v.Hint = "Wait a little, then look: lanjobs status"
	case own.LastIndex == 0:
		v.Refusal, v.Hint = "this machine keeps no copy of the cluster's state.", "Recover on "+best.Name+". If no machine with a copy is left: lanjobs backup restore FILE"
	case best != own:
		v.Older = true
		v.Refusal = fmt.Sprintf("%s knows more: its log is at entry %d (term %d), this machine's at %d (term %d).", best.Name, best.LastIndex, best.LastTerm, own.LastIndex, own.LastTerm)
		v.Hint = "Run it there. To give up what only " + best.Name + " has: lanjobs recover --older"
	}
}

// leads tells whether a machine that is named as the leader answers itself: who has just died is still named for a moment.
func leads(all []transport.Survivor, id task.NodeID) bool {
	return id != "" && slices.ContainsFunc(all, func(s transport.Survivor) bool { return s.ID == id && s.Answers })
}

// newer tells whether a log is further than another one, as Raft compares them.
func newer(a, b *transport.Survivor) bool {
	return cmp.Or(cmp.Compare(a.LastTerm, b.LastTerm), cmp.Compare(a.LastIndex, b.LastIndex)) > 0
}

func listed(names []string) string {
	slices.Sort(names)
	return strings.Join(names, "; ")
}

// Survey is api.Machine.
func (p peers) Survey(ctx context.Context) (*transport.RecoverView, error) { return p.m.survey(ctx) }

// Recover is api.Machine: it looks again, and then has this machine built anew on a history of its own.
func (p peers) Recover(ctx context.Context, b transport.RecoverBody, by string) (*transport.RecoverView, error) {
	m := p.m
	v, err := m.survey(ctx)
	if err != nil {
		return nil, err
	}
	if b.Cluster != v.Cluster {
		return nil, task.NewProblem(task.ErrInvalid, fmt.Sprintf("the cluster here is called %q, not %q: nothing was changed.", v.Cluster, b.Cluster), "")
	}
	if v.Refusal != "" && !(v.Older && b.Older) {
		return nil, task.NewProblem(task.ErrConflict, v.Refusal, v.Hint)
	}
	m.recovery.Store(&recovery{By: by, Above: v.Above, Reason: fmt.Sprintf("lost quorum, recovered on %s: %d of %d voters answered", m.identity.Name, v.Answering, v.Voters)})
	m.after(answerFirst, m.restart)
	return v, nil
}
