package api

import (
	"fmt"
	"strings"

	"lanjobs/fsm"
	"lanjobs/task"
)

// noLeader is what a person is told when nothing can be changed: who is missing, what goes on meanwhile, what helps.
func (a *API) noLeader() *task.Problem {
	e := voters(a.cfg.Peers.Members(), a.cfg.Self)
	var longest task.Millis
	a.cfg.Ledger.Read(func(s *fsm.State) {
		e.name(s)
		s.Leases(func(l *fsm.Lease) { longest = max(longest, s.LeaseDue(l).Sub(s.Clock)) })
	})
	return task.NewProblem(task.ErrNoLeader, e.sentence()+".", e.advice(longest))
}

// electorate is who may elect a leader, as this member sees it.
type electorate struct {
	voters, answering int
	away              []Member
	names             []string // of those away, with what is known
}

func voters(members []Member, self task.NodeID) *electorate {
	e := &electorate{}
	for _, m := range members {
		if m.Role != RoleLeader && m.Role != RoleVoter {
			continue
		}
		e.voters++
		if m.Away == 0 || m.ID == self {
			e.answering++
		} else {
			e.away = append(e.away, m)
		}
	}
	return e
}

func (e *electorate) name(s *fsm.State) {
	for _, m := range e.away {
		text := string(m.ID)
		n := s.Node(m.ID)
		if n != nil {
			text = n.Info.Name
		}
		switch {
		case n != nil && !n.Online && n.Reason == task.ReasonAsleep:
			text += " asleep " + short(m.Away)
		case n != nil && sleeper(n):
			text += " silent " + short(m.Away) + ", asleep?"
		default:
			text += " silent " + short(m.Away)
		}
		e.names = append(e.names, text)
	}
}

// sleeper tells whether a machine is of the kind that falls asleep by itself.
func sleeper(n *fsm.Node) bool {
	info := n.Labelled()
	v, ok := info.Label("laptop")
	return ok && v == "true"
}

func (e *electorate) needed() int { return e.voters/2 + 1 }

func (e *electorate) lost() bool { return e.voters > 0 && e.answering < e.needed() }

func (e *electorate) sentence() string {
	switch {
	case e.voters == 0:
		return "no member that can lead answers"
	case !e.lost():
		return fmt.Sprintf("nobody leads at the moment, although %d of %s answer: a leader is being chosen", e.answering, plural(e.voters, "voter", "voters"))
	}
	verb := "answer"
	if e.answering == 1 {
		verb = "answers"
	}
	return fmt.Sprintf("the cluster cannot take changes: %d of %s %s, %d are needed (%s)",
		e.answering, plural(e.voters, "voter", "voters"), verb, e.needed(), strings.Join(e.names, "; "))
}

func (e *electorate) advice(longest task.Millis) string {
	if !e.lost() {
		return "Try again in a few seconds."
	}
	text := ""
	if longest > 0 {
		text = "Running tasks go on until their leases end (longest: " + shortMillis(longest) + "). "
	}
	switch missing := e.needed() - e.answering; {
	case len(e.away) == 1:
		text += "Wake it. Lost for good"
	case missing == 1 && len(e.away) == 2:
		text += "Wake one of the two. Both lost for good"
	case missing == 1:
		text += "Wake one of them. All lost for good"
	default:
		text += fmt.Sprintf("Wake %d of them. Lost for good", missing)
	}
	return text + ": lanjobs help lost-quorum"
}
