package api

import (
	"time"

	"lanjobs/fsm"
	"lanjobs/node/leader"
	"lanjobs/node/plan"
	"lanjobs/task"
)

// view is what answers are made from: the applied state, held still by Ledger.Read, and what only this moment and member
// know. It is used within one look and not kept.
type view struct {
	*fsm.State
	leads    bool
	leader   task.NodeID
	orphan   bool // nobody leads: the state is as old as silence
	silence  time.Duration
	out      bool // this machine takes no part in its cluster any more
	now      time.Time
	sessions Leader
	members  map[task.NodeID]Member
	voters   *electorate
	planned  *plan.View                   // see plan
	notes    int                          // jobs that plan was asked about
	judged   map[string][]machine         // by what is asked of machines: many jobs ask for the same
	failing  map[task.NodeID]plan.Failing // see lookAtNodes
}

// look gives f a view. f must be quick and keep nothing of the state.
func (a *API) look(q *request, f func(*view)) {
	st := a.cfg.Ledger.Standing()
	v := &view{leads: st.Leads, leader: st.leader(a.cfg.Self), orphan: q.orphan, silence: q.silence, out: st.Out, now: a.clock.Wall().UTC(), sessions: a.cfg.Leader,
		members: map[task.NodeID]Member{}, judged: map[string][]machine{}}
	if v.orphan {
		v.leads, v.leader = false, ""
	}
	members := a.cfg.Peers.Members()
	for _, m := range members {
		v.members[m.ID] = m
	}
	v.voters = voters(members, a.cfg.Self)
	a.cfg.Ledger.Read(func(s *fsm.State) {
		v.State = s
		v.voters.name(s)
		f(v)
	})
}

// seen is what the running term knows of a node.
func (v *view) seen(id task.NodeID) (leader.Seen, bool) {
	if !v.leads {
		return leader.Seen{}, false
	}
	return v.sessions.Seen(id)
}

// ago is the time since a leader's wall clock showed millis. It is for people: two clocks are compared.
func (v *view) ago(millis int64) time.Duration {
	if millis == 0 {
		return 0
	}
	return max(v.now.Sub(time.UnixMilli(millis)), 0)
}

// present calls f for each machine that is a member.
func (v *view) present(f func(*fsm.Node)) {
	for _, n := range v.Nodes() {
		if n.Gone == "" {
			f(n)
		}
	}
}

// silent tells whether a machine has gone silent: by the ledger, and while nobody leads by what this member hears.
func (v *view) silent(n *fsm.Node) bool {
	if v.orphan {
		if m, known := v.members[n.Info.ID]; known {
			return m.Away > 0
		}
	}
	return !n.Online
}

// nodeName is a machine's name, its id if it never gave one.
func nodeName(n *fsm.Node) string {
	if n.Info.Name == "" {
		return string(n.Info.ID)
	}
	return n.Info.Name
}

func (v *view) nameOf(id task.NodeID) string {
	if n := v.Node(id); n != nil {
		return nodeName(n)
	}
	return string(id)
}
