package node

import (
	"math/rand"
	"testing"

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
		for i := range ss {
			if ss[i].ID != c.ID {
				continue
			}
			switch c.Act {
			case seatAdd:
				ss[i].Member = true
			case seatPromote:
				ss[i].Voter = true
			case seatDemote:
				ss[i].Voter = false
			case seatRemove:
				ss[i].Member, ss[i].Voter = false, false
			}
		}
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
			for i := range ss {
				if ss[i].ID == c.ID {
					ss[i].Member = c.Act != seatRemove
					ss[i].Voter = c.Act == seatPromote || ss[i].Voter && c.Act != seatDemote && c.Act != seatRemove
				}
			}
			if had && !quorum(ss) {
				t.Fatalf("step %+v lost the quorum: %+v", c, ss)
			}
		}
	}
}
