package leader

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// parked answers with what a poll that was asked before brings.
func (o *office) parked(want int) <-chan *transport.PollReply {
	out := make(chan *transport.PollReply, 1)
	go func() {
		r := &transport.PollReply{}
		if err := o.try("b", transport.MethodPoll, &transport.PollRequest{Incarnation: 1, Want: want, Hold: 5 * task.Second}, r); err != nil {
			r = nil
		}
		out <- r
	}()
	synctest.Wait()
	return out
}

// A job for which a worker waits is stored and granted in one entry.
func TestAJobBeginsInTheEntryThatStoresIt(t *testing.T) {
	lead(t, func(o *office) {
		answer := o.parked(4)
		before := o.log.writes
		o.submit(3)
		r := <-answer
		if r == nil || len(r.Assignments) != 3 {
			t.Fatalf("%+v", r)
		}
		if n := o.log.writes - before; n != 1 {
			t.Fatalf("%d entries, want one", n)
		}
	})
}

// A spec goes with the first assignment that a node gets of it, and again after the node has started anew.
func TestASpecIsSentOnce(t *testing.T) {
	lead(t, func(o *office) {
		o.submit(1)
		first := o.poll(4)
		o.submit(1) // another job of the same file
		second := o.poll(4, first.Assignments[0].Token)
		if len(first.Specs) != 1 || first.Specs[0].Digest != first.Assignments[0].SpecDigest || len(second.Specs) != 0 ||
			second.Assignments[0].SpecDigest != first.Assignments[0].SpecDigest {
			t.Fatalf("first %+v, then %+v", first, second)
		}
		info := task.NodeInfo{ID: "b", Name: "b", Slots: 4, Level: fsm.Level}
		o.call("b", transport.MethodRegister, &transport.RegisterRequest{Info: info, Incarnation: 2}, &transport.RegisterReply{})
		o.submit(1)
		again := &transport.PollReply{}
		o.call("b", transport.MethodPoll, &transport.PollRequest{Incarnation: 2, Want: 4, Hold: task.Second}, again)
		if len(again.Assignments) == 0 || len(again.Specs) != 1 {
			t.Fatalf("after a restart: %+v", again)
		}
	})
}

// A leader that is about to hand over proposes nothing more; if nobody takes over, what came meanwhile goes on.
func TestRestHoldsBackUntilGoOn(t *testing.T) {
	lead(t, func(o *office) {
		o.l.Rest(context.Background())
		before := o.log.writes
		done := make(chan struct{})
		go func() {
			o.submit(1)
			close(done)
		}()
		time.Sleep(time.Second)
		if o.log.writes != before {
			t.Fatal("proposed while resting")
		}
		o.l.GoOn()
		<-done
		if o.log.writes == before {
			t.Fatal("nothing proposed afterwards")
		}
	})
}

// What a member could not apply is not even proposed (C45).
func TestWhatAnOlderMemberCannotApplyIsRefused(t *testing.T) {
	lead(t, func(o *office) {
		o.call("b", transport.MethodRegister, &transport.RegisterRequest{Info: task.NodeInfo{ID: "b", Name: "b", Slots: 4, Level: fsm.Level}, Incarnation: 2}, &transport.RegisterReply{})
		old := task.NodeInfo{ID: "old", Name: "nas", Slots: 1, Level: 1, Version: "0.0.9"}
		o.call("old", transport.MethodRegister, &transport.RegisterRequest{Info: old, Incarnation: 1}, &transport.RegisterReply{})
		max := 3
		_, err := o.l.Propose(context.Background(), &fsm.SetQueue{Name: "small", Max: &max})
		if !errors.Is(err, task.ErrConflict) || !strings.Contains(err.Error(), "nas runs 0.0.9") {
			t.Fatalf("%v", err)
		}
		o.submit(1) // what it knows goes on
		if err := o.l.TooNew(&fsm.CreateToken{Role: fsm.RoleViewer}); !errors.Is(err, task.ErrConflict) || !strings.Contains(err.Error(), "nas runs 0.0.9") {
			t.Errorf("a login while nas is too old for it: %v", err)
		}
		if err := o.l.TooNew(&fsm.CreateToken{}); err != nil {
			t.Errorf("a machine joins as ever: %v", err)
		}
		old.Level = fsm.Level
		o.call("old", transport.MethodRegister, &transport.RegisterRequest{Info: old, Incarnation: 2}, &transport.RegisterReply{})
		if r, err := o.l.Propose(context.Background(), &fsm.SetQueue{Name: "small", Max: &max}); err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
	})
}

// A machine that goes back to an older version is refused once all members are of the newer one, and not while an upgrade is
// under way (R47).
func TestGoingBackIsRefusedOnceAnUpgradeIsComplete(t *testing.T) {
	lead(t, func(o *office) {
		back := task.NodeInfo{ID: "b", Name: "b", Slots: 4, Level: fsm.Level - 1, Version: "0.1.0"}
		err := o.try("b", transport.MethodRegister, &transport.RegisterRequest{Info: back, Incarnation: 2}, &transport.RegisterReply{})
		if !errors.Is(err, task.ErrConflict) || !strings.Contains(err.Error(), "this is lanjobs 0.1.0") {
			t.Fatalf("%v", err)
		}
		old := task.NodeInfo{ID: "old", Name: "nas", Slots: 1, Level: fsm.Level - 1, Version: "0.1.0"}
		o.call("old", transport.MethodRegister, &transport.RegisterRequest{Info: old, Incarnation: 1}, &transport.RegisterReply{})
		o.call("b", transport.MethodRegister, &transport.RegisterRequest{Info: back, Incarnation: 2}, &transport.RegisterReply{})
	})
}

// TestARecoveredHistoryBeginsWithItsGeneration: before anything else is granted or answered, and once (I3).
func TestARecoveredHistoryBeginsWithItsGeneration(t *testing.T) {
	lead(t, func(o *office) {
		cfg := o.l.cfg
		cfg.Begin = &fsm.NewGeneration{By: "anna", Reason: "recovered", AtLeast: 5}
		first := newTerm(cfg, 9).first()
		if len(first) != 2 || first[1] != fsm.Command(cfg.Begin) {
			t.Fatalf("%+v", first)
		}
		if r, err := o.l.Propose(context.Background(), first[1]); err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		if again := newTerm(cfg, 10).first(); len(again) != 1 {
			t.Errorf("in the next term again: %+v", again)
		}
	})
}

// TestWhatAnOlderMemberDoesNotKeepIsLeftOutUntilAllDo: else its replica has another state than the others (I10), and places a broadcast
// otherwise, also after its upgrade, since its snapshots lack what it did not know.
func TestWhatAnOlderMemberDoesNotKeepIsLeftOutUntilAllDo(t *testing.T) {
	lead(t, func(o *office) {
		old := task.NodeInfo{ID: "old", Name: "nas", Slots: 1, Level: fsm.LevelCare - 1}
		o.call("old", transport.MethodRegister, &transport.RegisterRequest{Info: old, Incarnation: 1}, &transport.RegisterReply{})
		full := task.NodeInfo{ID: "b", Name: "b", Slots: 4, Level: fsm.Level, Limits: "cgroup", Host: "h", Laptop: true, MACs: []string{"m"}, Refuses: []string{"gpu"}, Reserve: 5, RunAs: "tasks", Inhibit: "always"}
		register := func(info task.NodeInfo, incarnation uint64) {
			t.Helper()
			o.call(info.ID, transport.MethodRegister, &transport.RegisterRequest{Info: info, Incarnation: incarnation}, &transport.RegisterReply{})
		}
		known := func() (info task.NodeInfo) {
			o.log.Read(func(s *fsm.State) { info = s.Node("b").Info })
			return info
		}
		register(full, 2)
		if got, want := known(), (task.NodeInfo{ID: "b", Name: "b", Slots: 4, Level: fsm.Level, Limits: "cgroup"}); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
		if o.pollAs(2, 1).Unregistered {
			t.Fatal("to be told again while a member is as old")
		}
		old.Level = fsm.Level
		register(old, 2)
		if !o.pollAs(2, 1).Unregistered {
			t.Fatal("nobody asks for what was left out")
		}
		register(full, 2)
		if got := known(); !reflect.DeepEqual(got, full) {
			t.Fatalf("%+v, want %+v", got, full)
		}
		if o.pollAs(2, 1).Unregistered {
			t.Fatal("asked again and again")
		}
		plain := task.NodeInfo{ID: "old", Name: "nas", Slots: 1, Level: fsm.Level} // it has nothing more to say
		register(plain, 2)
		if r := (&transport.PollReply{}); o.try("old", transport.MethodPoll, &transport.PollRequest{Incarnation: 2, Hold: task.Second}, r) != nil || r.Unregistered {
			t.Fatal("asked for what there is not")
		}
	})
}
