package node

import (
	"math/rand"
	"testing"

	"lanjobs/fsm"
	"lanjobs/task"
)

func seats(n int, f func(i int, s *seat)) []seat {
	out := make([]seat, n)
	for i := range out {
		out[i] = seat{ID: task.NodeID(rune('a' + i)), Self: i == 0, Member: true, Voter: i == 0, May: true, Reached: true, CaughtUp: true}
		if f != nil {
			f(i, &out[i])
		}
	}
	return out
}

// take does what a step says. The lead goes to the first voter that answers.
func take(t *testing.T, ss []seat, c seatChange) {
	t.Helper()
	for i := range ss {
		s := &ss[i]
		if s.ID != c.ID {
			continue
		}
		switch c.Act {
		case seatAdd:
			s.Member = true
		case seatPromote:
			s.Voter = true
		case seatDemote:
			if s.Self {
				t.Fatalf("the leader lost its seat: %+v", ss)
			}
			s.Voter = false
		case seatRemove:
			s.Member, s.Voter = false, false
		case seatYield:
			if !s.Voter || !s.Reached {
				t.Fatalf("%s cannot take the lead: %+v", s.ID, ss)
			}
			for k := range ss {
				ss[k].Self = k == i
			}
		}
	}
}

// play applies steps until nothing changes and gives the number of voters.
func play(t *testing.T, ss []seat) int {
	t.Helper()
	for step := 0; ; step++ {
		if step > 40 {
			t.Fatalf("no end: %+v", ss)
		}
		c := nextSeat(ss)
		if c.Act == seatNone {
			break
		}
		take(t, ss, c)
	}
	n := 0
	for _, s := range ss {
		if s.Member && s.Voter {
			n++
		}
	}
	return n
}

func TestVotersByNumberOfMachines(t *testing.T) {
	for machines, want := range map[int]int{1: 1, 2: 1, 3: 3, 4: 3, 6: 3, 7: 5, 9: 5} {
		if got := play(t, seats(machines, func(i int, s *seat) { s.Member = i == 0 })); got != want {
			t.Errorf("%d machines: %d voters, want %d", machines, got, want)
		}
	}
}

func TestTheSecondMachineOfTwoIsNoVoter(t *testing.T) {
	if got := play(t, seats(2, nil)); got != 1 {
		t.Fatalf("%d voters", got)
	}
}

func TestPromotionWaitsForBoth(t *testing.T) {
	ss := seats(3, func(i int, s *seat) { s.CaughtUp = i != 2 })
	if c := nextSeat(ss); c.Act != seatNone {
		t.Fatalf("one of two was promoted alone: %+v", c)
	}
}

func TestANightOfSleepCostsNoSeat(t *testing.T) {
	ss := seats(3, func(i int, s *seat) {
		s.Voter = true
		if i == 2 {
			s.Reached, s.AwayMs = false, 9*task.Hour
		}
	})
	if c := nextSeat(ss); c.Act != seatNone {
		t.Fatalf("%+v", c)
	}
}

func TestASpareTakesTheSeatOfOneLongAway(t *testing.T) {
	ss := seats(4, func(i int, s *seat) {
		s.Voter = i < 3
		if i == 2 {
			s.Reached, s.AwayMs = false, longAway
		}
	})
	if got := play(t, ss); got != 3 || ss[2].Voter || !ss[3].Voter {
		t.Fatalf("%d voters: %+v", got, ss)
	}
}

func TestAWorkerOnlyMachineGetsNoLogAndALeaverLosesIt(t *testing.T) {
	ss := seats(3, func(i int, s *seat) {
		s.Voter = true
		if i == 2 {
			s.May = false
		}
	})
	if got := play(t, ss); got != 1 || ss[2].Member {
		t.Fatalf("%d voters: %+v", got, ss)
	}
}

func voting(ss []seat) (out string) {
	for _, s := range ss {
		if s.Member && s.Voter {
			out += string(s.ID)
		}
	}
	return out
}

// a leads; b, c, d and so on. What each test says of them stands in its f.
func TestWhoVotes(t *testing.T) {
	for _, c := range []struct {
		name     string
		machines int
		f        func(i int, s *seat)
		want     string
	}{
		{"those that are there most", 5, func(i int, s *seat) { s.Presence = []float64{0.9, 0.2, 0.9, 0.3, 0.9}[i] }, "ace"},
		{"no laptop while others are there", 4, func(i int, s *seat) { s.Presence, s.Laptop = 0.9, i == 1 }, "acd"},
		{"laptops where there is nothing else", 3, func(i int, s *seat) { s.Presence, s.Laptop = 0.5, i > 0 }, "abc"},
		{"a little better is no reason to change", 4, func(i int, s *seat) { s.Voter, s.Presence = i < 3, []float64{0.9, 0.8, 0.8, 0.95}[i] }, "abc"},
		{"much better is one", 4, func(i int, s *seat) { s.Voter, s.Presence = i < 3, []float64{0.9, 0.8, 0.3, 0.95}[i] }, "abd"},
		{"a person's word for", 4, func(i int, s *seat) {
			s.Voter, s.Presence = i < 3, []float64{0.9, 0.8, 0.9, 0.1}[i]
			if i == 3 {
				s.Seat = fsm.NodePromote
			}
		}, "acd"},
		{"a person's word against", 4, func(i int, s *seat) {
			s.Voter = i < 3
			if i == 1 {
				s.Seat = fsm.NodeDemote
			}
		}, "acd"},
		{"against one of three: two that stay would be worse than one", 3, func(i int, s *seat) {
			s.Voter = true
			if i == 1 {
				s.Seat = fsm.NodeDemote
			}
		}, "a"},
		{"against the leader", 4, func(i int, s *seat) {
			s.Voter = i < 3
			if i == 0 {
				s.Seat = fsm.NodeDemote
			}
		}, "bcd"},
		{"against the only voter", 2, func(i int, s *seat) {
			if i == 0 {
				s.Seat = fsm.NodeDemote
			}
		}, "b"},
		{"against all: somebody must", 2, func(_ int, s *seat) { s.Seat = fsm.NodeDemote }, "a"},
		{"for one that does not answer", 4, func(i int, s *seat) {
			s.Voter = i < 3
			if i == 3 {
				s.Seat, s.Reached, s.CaughtUp = fsm.NodePromote, false, false
			}
		}, "abc"},
	} {
		ss := seats(c.machines, c.f)
		play(t, ss)
		if got := voting(ss); got != c.want {
			t.Errorf("%s: %s vote, not %s", c.name, got, c.want)
		}
	}
}

// A leader that is drained gives its lead to a voter that is not drained and up to date, and keeps its vote.
func TestADrainedLeaderYields(t *testing.T) {
	for want, f := range map[string]func(i int, s *seat){
		"c": func(i int, s *seat) { s.Draining, s.CaughtUp = i < 2, true },
		"b": func(i int, s *seat) { s.Draining, s.CaughtUp = i == 0, i == 1 },
		"":  func(_ int, s *seat) { s.Draining = true },
	} {
		ss := seats(3, func(i int, s *seat) {
			s.Voter, s.Self = true, i == 0
			f(i, s)
		})
		c := nextSeat(ss)
		if string(c.ID) != want || want != "" && c.Act != seatYield {
			t.Errorf("%+v, want the lead for %q", c, want)
		}
		if play(t, ss) != 3 {
			t.Error("a vote is lost")
		}
	}
}

func TestAMachineGetsItsSeatBeforeAnotherLosesOne(t *testing.T) {
	ss := seats(4, func(i int, s *seat) {
		s.Voter = i < 3
		if i == 2 {
			s.Reached, s.AwayMs = false, longAway
		}
	})
	if c := nextSeat(ss); c != (seatChange{seatPromote, "d"}) {
		t.Fatalf("%+v", c)
	}
}

// Whatever the situation, a step never leaves a majority of voters that do not answer when there was one that does.
func TestNoStepLosesTheQuorum(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	quorum := func(ss []seat) bool {
		v, a := 0, 0
		for _, s := range ss {
			if s.Member && s.Voter {
				v++
				if s.Reached || s.Self {
					a++
				}
			}
		}
		return a*2 > v
	}
	for range 20000 {
		ss := seats(1+r.Intn(9), func(i int, s *seat) {
			s.Member = i == 0 || r.Intn(3) > 0
			s.Voter = i == 0 || s.Member && r.Intn(2) == 0
			s.Reached = i == 0 || r.Intn(3) > 0
			s.CaughtUp = s.Reached && r.Intn(4) > 0
			s.May = i == 0 || r.Intn(6) > 0
			s.Seat = []fsm.NodeAction{"", "", "", fsm.NodePromote, fsm.NodeDemote}[r.Intn(5)]
			s.Presence, s.Laptop = r.Float64(), r.Intn(3) == 0
			if !s.Reached {
				s.AwayMs = task.Millis(r.Intn(int(2 * longAway)))
			}
		})
		for step := 0; step < 30; step++ {
			had := quorum(ss)
			c := nextSeat(ss)
			if c.Act == seatNone {
				break
			}
			take(t, ss, c)
			if step == 29 {
				t.Fatalf("no end: %+v", ss)
			}
			if had && !quorum(ss) {
				t.Fatalf("step %+v lost the quorum: %+v", c, ss)
			}
		}
	}
}
