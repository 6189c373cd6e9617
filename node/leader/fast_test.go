package leader

import (
	"context"
	"testing"
	"testing/synctest"

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
		info := task.NodeInfo{ID: "b", Name: "b", Slots: 4}
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
		synctest.Wait()
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
