package node

import (
	"context"
	"errors"
	"testing"

	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

// reopen is the next life of a node on its folder. told: the life before was told to end.
func reopen(t *testing.T, dir string, before *localStore, told bool) *localStore {
	t.Helper()
	if before != nil {
		if told {
			if err := before.EndLife(); err != nil {
				t.Fatal(err)
			}
		}
		if err := before.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := openLocalStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.BeginLife(); err != nil {
		t.Fatal(err)
	}
	return s
}

// registrar is a leader that counts the crashes that it is told of.
type registrar struct {
	transport.Caller
	told []int
	err  error
}

func (r *registrar) Call(_ context.Context, _ task.NodeID, _ transport.Method, request, _ any) error {
	r.told = append(r.told, request.(*transport.RegisterRequest).Crashes)
	return r.err
}

func TestAnEndThatNobodyAskedForIsACrash(t *testing.T) {
	dir := t.TempDir()
	lead := &registrar{}
	register := func(s *localStore) error {
		c := &control{self: "a", caller: lead, clock: runner.SystemClock(), known: func() task.NodeID { return "l" }, crashes: s}
		_, err := c.Register(t.Context(), &transport.RegisterRequest{})
		return err
	}
	check := func(s *localStore, want int) {
		t.Helper()
		lead.told = nil
		if err := register(s); !errors.Is(err, lead.err) || len(lead.told) != 1 || lead.told[0] != want {
			t.Fatalf("told %v (%v), want %d", lead.told, err, want)
		}
	}
	s := reopen(t, dir, nil, false)
	check(s, 0)
	s = reopen(t, dir, s, true)
	check(s, 0)
	s = reopen(t, dir, s, false)
	s = reopen(t, dir, s, false) // before it could tell anybody
	lead.err = task.NewProblem(task.ErrNoLeader, "no", "")
	check(s, 2)
	check(s, 2)
	lead.err = nil
	check(s, 2)
	check(s, 0) // the leader has changed, or a reply came late
	s = reopen(t, dir, s, true)
	check(s, 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
