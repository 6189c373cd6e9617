package node

import (
	"cmp"
	"slices"

	"lanjobs/task"
)

// seat is one machine as the choice of voters sees it.
type seat struct {
	ID       task.NodeID
	Self     bool // the leader, who decides
	Member   bool // in Raft's configuration
	Voter    bool
	May      bool        // may have a Raft log at all: not joined with --worker, a member of the cluster, not leaving
	Reached  bool        // answered in the last seconds, on its own address
	CaughtUp bool        // its log ends where the leader's does, but for a few entries
	AwayMs   task.Millis // since it answered last
}

// seatChange is one step on Raft's configuration.
type seatChange struct {
	Act seatAct
	ID  task.NodeID
}

type seatAct string

// The steps.
const (
	seatNone    seatAct = ""
	seatAdd     seatAct = "add as stand-by" // AddNonvoter
	seatPromote seatAct = "promote"
	seatDemote  seatAct = "demote"
	seatRemove  seatAct = "remove"
)

// Numbers of the choice (DESIGN 4).
const (
	maxLogs = 9 // voters and stand-bys; further machines are plain workers
	// longAway is how long a voter must be gone before a stand-by takes its seat: a night's sleep with nobody to take it
	// changes nothing.
	longAway = 10 * task.Minute
)

// wantVoters is 1 for one or two machines (two voters stop when either is away, which is worse), 3 from three, 5 from seven.
func wantVoters(machines int) int {
	switch {
	case machines >= 7:
		return 5
	case machines >= 3:
		return 3
	}
	return 1
}

// nextSeat gives the next single step towards the right voters, seatNone when all is well or a step would be unsafe now.
// Steps are ordered so that the number of voters is even for as short as possible, and never by a machine that does not answer.
func nextSeat(seats []seat) seatChange {
	seats = slices.Clone(seats)
	slices.SortFunc(seats, func(a, b seat) int { return cmp.Compare(a.ID, b.ID) })
	var voters, machines, answering int
	for _, s := range seats {
		if s.Member && s.Voter {
			voters++
			if s.Reached || s.Self {
				answering++
			}
		}
		if s.May && (s.Member || s.Reached) {
			machines++
		}
	}
	for _, s := range seats {
		if s.Member && !s.May && !s.Self && (!s.Voter || keepsQuorum(s, answering, voters)) {
			return seatChange{seatRemove, s.ID}
		}
	}
	if c := addSeat(seats); c.Act != seatNone {
		return c
	}
	spares := spareSeats(seats)
	want := wantVoters(machines)
	switch {
	case voters < want && len(spares) >= want-voters:
		return seatChange{seatPromote, spares[0].ID}
	case voters < want && voters%2 == 0 && len(spares) > 0:
		return seatChange{seatPromote, spares[0].ID}
	case voters > want || voters%2 == 0:
		return demoteSeat(seats, answering, voters)
	}
	if len(spares) > 0 {
		for _, s := range seats {
			if s.Member && s.Voter && !s.Self && !s.Reached && s.AwayMs >= longAway {
				return seatChange{seatDemote, s.ID} // the next step promotes a spare: even for one step
			}
		}
	}
	return seatChange{}
}

// addSeat gives a stand-by's place to a machine that answers and has none.
func addSeat(seats []seat) seatChange {
	n := 0
	for _, s := range seats {
		if s.Member {
			n++
		}
	}
	for _, s := range seats {
		if s.May && !s.Member && s.Reached && n < maxLogs {
			return seatChange{seatAdd, s.ID}
		}
	}
	return seatChange{}
}

// spareSeats lists who could become a voter now.
func spareSeats(seats []seat) []seat {
	var out []seat
	for _, s := range seats {
		if s.Member && !s.Voter && s.May && s.Reached && s.CaughtUp {
			out = append(out, s)
		}
	}
	return out
}

// demoteSeat takes a seat from a voter too many: one that is away rather than one that answers, never the leader, and only
// while a majority of those that stay answers.
func demoteSeat(seats []seat, answering, voters int) seatChange {
	var best *seat
	for i := range seats {
		s := &seats[i]
		if !s.Member || !s.Voter || s.Self {
			continue
		}
		if best == nil || best.Reached && !s.Reached {
			best = s
		}
	}
	if best == nil {
		return seatChange{}
	}
	if !keepsQuorum(*best, answering, voters) {
		return seatChange{}
	}
	return seatChange{seatDemote, best.ID}
}

// keepsQuorum tells whether a majority of the remaining voters answers once s has no seat.
func keepsQuorum(s seat, answering, voters int) bool {
	if s.Reached {
		answering--
	}
	return answering*2 > voters-1
}
