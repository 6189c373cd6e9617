package node

import (
	"cmp"
	"slices"

	"lanjobs/fsm"
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

	Seat     fsm.NodeAction // fsm.NodePromote or fsm.NodeDemote by a person's word, "" = no word
	Presence float64        // share of the last weeks in which it was there, see fsm.Node.Presence
	Laptop   bool
	Draining bool // a person empties it: it keeps its vote, but does not lead while another can
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
	seatYield   seatAct = "give the lead to" // so that the leader itself can lose its seat, or is drained
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

// nextSeat gives the next single step towards the right voters, seatNone when all is well or a step would be unsafe now. A machine
// gets its seat before another loses one, and none is given to a machine that does not answer.
func nextSeat(seats []seat) seatChange {
	seats = slices.Clone(seats)
	slices.SortFunc(seats, func(a, b seat) int { return cmp.Compare(a.ID, b.ID) })
	voters, answering := 0, 0
	for _, s := range seats {
		if s.Member && s.Voter {
			voters++
			if s.Reached || s.Self {
				answering++
			}
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
	chosen := chooseVoters(seats)
	for _, s := range chosen {
		if !s.Voter {
			return seatChange{seatPromote, s.ID}
		}
	}
	if c := demoteSeat(seats, chosen, answering, voters); c.Act != seatNone {
		return c
	}
	return yieldSeat(seats)
}

// yieldSeat has a leader that is being drained give its lead to a voter that is not: the machine may be switched off any moment.
func yieldSeat(seats []seat) seatChange {
	if !slices.ContainsFunc(seats, func(s seat) bool { return s.Self && s.Draining }) {
		return seatChange{}
	}
	for _, s := range seats {
		if s.Member && s.Voter && s.Reached && s.CaughtUp && !s.Self && !s.Draining {
			return seatChange{seatYield, s.ID}
		}
	}
	return seatChange{}
}

// chooseVoters gives those who should vote, the best first: as many as there should be, or as the largest odd number that there is.
func chooseVoters(seats []seat) []seat {
	machines := 0
	var fit []seat
	for _, s := range seats {
		if !s.May || s.Seat == fsm.NodeDemote {
			continue
		}
		if s.Member || s.Reached {
			machines++
		}
		if s.Member && (s.Voter || s.promotable()) {
			fit = append(fit, s)
		}
	}
	slices.SortStableFunc(fit, func(a, b seat) int { return cmp.Compare(b.worth(), a.worth()) })
	n := min(len(fit), wantVoters(machines))
	if n > 0 && n%2 == 0 {
		n-- // with two of them, either's absence would stop the cluster
	}
	return fit[:n]
}

// What speaks for a machine as a voter, beside the share of time in which it is there. A voter keeps its seat unless another is
// clearly better.
const (
	worthWanted  = 10.0 // a person said so
	worthGone    = -5.0 // it has been away for long: whoever answers is better
	worthLaptop  = -0.3 // its battery and its lid
	worthVoter   = 0.25
	worthLeading = 1.0 // it gives its lead away only on a person's word
)

func (s seat) worth() float64 {
	w := s.Presence
	for _, p := range []struct {
		holds bool
		worth float64
	}{{s.Seat == fsm.NodePromote, worthWanted}, {s.gone(), worthGone}, {s.Laptop, worthLaptop}, {s.Voter, worthVoter}, {s.Self, worthLeading}} {
		if p.holds {
			w += p.worth
		}
	}
	return w
}

// gone tells whether a voter has been away for so long that a stand-by should take its seat.
func (s seat) gone() bool { return !s.Self && !s.Reached && s.AwayMs >= longAway }

// promotable tells whether a stand-by could become a voter now.
func (s seat) promotable() bool { return s.Member && !s.Voter && s.May && s.Reached && s.CaughtUp }

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

// demoteSeat takes a seat from a voter that was not chosen: one that is away rather than one that answers, and only while a majority
// of those that stay answers. The leader gives its lead away first, to one that was chosen.
func demoteSeat(seats, chosen []seat, answering, voters int) seatChange {
	if len(chosen) == 0 {
		return seatChange{}
	}
	var over []seat
	for _, s := range seats {
		if s.Member && s.Voter && !slices.ContainsFunc(chosen, func(c seat) bool { return c.ID == s.ID }) {
			over = append(over, s)
		}
	}
	slices.SortStableFunc(over, func(a, b seat) int { return cmp.Compare(a.worth(), b.worth()) })
	for _, s := range over {
		if !s.Self && keepsQuorum(s, answering, voters) {
			return seatChange{seatDemote, s.ID}
		}
	}
	if !slices.ContainsFunc(over, func(s seat) bool { return s.Self }) {
		return seatChange{}
	}
	for _, s := range chosen {
		if s.Voter && s.Reached && s.CaughtUp {
			return seatChange{seatYield, s.ID}
		}
	}
	return seatChange{}
}

// keepsQuorum tells whether a majority of the remaining voters answers once s has no seat.
func keepsQuorum(s seat, answering, voters int) bool {
	if s.Reached {
		answering--
	}
	return answering*2 > voters-1
}
