package leader

import (
	"errors"
	"slices"
	"strconv"
	"testing"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
	"lanjobs/transport"
)

// heavy registers "b" with room for n shards of a new job and saves the largest checkpoint for each of them.
func (o *office) heavy(n int) (tokens []task.Token) {
	o.t.Helper()
	o.register(2, n)
	o.submit(n)
	data := make([]byte, task.MaxCheckpointBytes)
	for _, a := range o.pollAs(2, n).Assignments {
		o.call("b", transport.MethodCheckpoint, &transport.CheckpointRequest{Ref: a.Ref(), Token: a.Token, Seq: 1, Data: data}, &transport.Ack{})
		tokens = append(tokens, a.Token)
	}
	return tokens
}

func (o *office) register(incarnation uint64, slots int) {
	o.t.Helper()
	o.call("b", transport.MethodRegister, &transport.RegisterRequest{Info: task.NodeInfo{ID: "b", Name: "b", Slots: slots, Level: fsm.Level}, Incarnation: incarnation}, &transport.RegisterReply{})
}

func (o *office) pollAs(incarnation uint64, want int, holding ...task.Token) *transport.PollReply {
	o.t.Helper()
	r := &transport.PollReply{}
	o.call("b", transport.MethodPoll, &transport.PollRequest{Incarnation: incarnation, Want: want, Hold: task.Second, Holding: holding}, r)
	return r
}

// bounded polls until nothing comes any more and gives the tokens; no answer may be larger than the bound and one more.
func (o *office) bounded(incarnation uint64, want int, mustRenew bool) (tokens []task.Token) {
	o.t.Helper()
	for {
		r := o.pollAs(incarnation, want-len(tokens), tokens...)
		if len(r.Assignments) == 0 {
			return tokens
		}
		bytes := 0
		for _, a := range r.Assignments {
			bytes += len(a.Checkpoint.Data)
			tokens = append(tokens, a.Token)
			if a.MustRenew != mustRenew {
				o.t.Errorf("MustRenew is %v", a.MustRenew)
			}
		}
		if bytes > plan.MaxPollBytes+task.MaxCheckpointBytes {
			o.t.Fatalf("an answer of %d checkpoints with %d bytes", len(r.Assignments), bytes)
		}
	}
}

func TestAnAnswerIsBoundedByBytes(t *testing.T) {
	const shards = 3 * plan.MaxPollBytes / task.MaxCheckpointBytes
	lead(t, func(o *office) {
		held := o.heavy(shards)
		if len(held) != shards {
			t.Fatalf("%d assignments", len(held))
		}
		again := o.bounded(2, shards, true) // what was lost is sent again in parts, oldest first
		if !slices.Equal(again, held) {
			t.Errorf("of %d leases %d were sent again", len(held), len(again))
		}
		o.register(3, shards)
		if fresh := o.bounded(3, shards, false); len(fresh) != shards {
			t.Errorf("%d of %d shards were granted anew", len(fresh), shards)
		}
	})
}

func TestInputsAreBoundedByBytes(t *testing.T) {
	lead(t, func(o *office) {
		const each = task.MaxOutputBytes
		n := maxInputsBytes/task.MaxShardOutputBytes + 2
		o.register(2, n)
		o.submit(n)
		as := o.pollAs(2, n).Assignments
		value := string(make([]byte, each-8))
		for _, a := range as {
			for k := range task.MaxShardOutputBytes / each {
				o.call("b", transport.MethodOutput, &transport.OutputRequest{Ref: a.Ref(), Token: a.Token, Output: task.KV{Name: strconv.Itoa(k), Value: value}}, &transport.Ack{})
			}
		}
		ask := &transport.InputsRequest{Job: as[0].Job, Token: as[0].Token, Stage: "main"}
		if err := o.try("b", transport.MethodInputs, ask, &transport.InputsReply{}); !errors.Is(err, task.ErrTooLarge) {
			t.Errorf("all outputs: %v", err)
		}
		ask.Name = "0"
		r := &transport.InputsReply{}
		o.call("b", transport.MethodInputs, ask, r)
		if len(r.Inputs) != n {
			t.Errorf("%d inputs, want %d", len(r.Inputs), n)
		}
	})
}

// A repeat of an output under its request id does not bring the older value back, nor does it of a conditional write.
func TestRepeatsUnderARequestID(t *testing.T) {
	lead(t, func(o *office) {
		o.submit(1)
		a := o.poll(4).Assignments[0]
		out := func(id task.RequestID, value string) {
			o.call("b", transport.MethodOutput, &transport.OutputRequest{Ref: a.Ref(), Token: a.Token, RequestID: id, Output: task.KV{Name: "n", Value: value}}, &transport.Ack{})
		}
		out("1", "old")
		out("2", "new")
		out("1", "old")
		r := &transport.InputsReply{}
		o.call("b", transport.MethodInputs, &transport.InputsRequest{Job: a.Job, Token: a.Token, Stage: "main"}, r)
		if len(r.Inputs) != 1 || r.Inputs[0].Value != "new" {
			t.Errorf("outputs %+v", r.Inputs)
		}
		zero := uint64(0)
		put := &transport.StatePutRequest{Ref: a.Ref(), Token: a.Token, RequestID: "3", Key: "k", Value: []byte("v"), IfVersion: &zero}
		for range 2 {
			var v transport.StateValue
			if o.call("b", transport.MethodStatePut, put, &v); v.Version != 1 {
				t.Errorf("version %d", v.Version)
			}
		}
		put.RequestID = "4"
		if err := o.try("b", transport.MethodStatePut, put, &transport.StateValue{}); !errors.Is(err, task.ErrConflict) {
			t.Errorf("another write under the same condition: %v", err)
		}
	})
}
