package transport_test

import (
	"errors"
	"testing"

	"lanjobs/task"
	"lanjobs/transport"
)

// keeper is a handler of one generation, as a node is.
type keeper struct {
	transport.HandlerFunc
	generation uint64
	heard      []uint64
}

func (k *keeper) Generation() uint64                      { return k.generation }
func (k *keeper) OtherGeneration(_ task.NodeID, g uint64) { k.heard = append(k.heard, g) }

// TestCallsDoNotCrossGenerations: whoever is of another history of the cluster is refused, both ways, and by both sides where
// one is of a version that says nothing of it; only the question for the history itself is answered.
func TestCallsDoNotCrossGenerations(t *testing.T) {
	second := transport.NextGeneration(1)
	for _, c := range []struct {
		name         string
		client, here uint64 // 0: a client of the version before
		old          bool   // a server of the version before
		crosses      bool
	}{
		{"both of the first", 1, 1, false, true},
		{"a client of the version before, both of the first", 0, 1, false, true},
		{"both of the second", second, second, false, true},
		{"an earlier client", 1, second, false, false},
		{"a client of the version before", 0, second, false, false},
		{"a later client", second, 1, false, false},
		{"a later client, a server of the version before", second, 0, true, false},
		{"another recovery of the same number", transport.NextGeneration(1), second, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLAN(t, "home")
			a, b := l.station(t, "a"), l.station(t, "b")
			k := &keeper{HandlerFunc: echo, generation: c.here}
			var h transport.Handler = k
			if c.old {
				h = transport.HandlerFunc(echo)
			}
			serveCalls(t, b, h)
			var heard []uint64
			caller := transport.NewClient(transport.ClientConfig{Self: a.id, Dial: a.dialer.To(transport.ALPNRPC), Generation: c.client,
				OtherGeneration: func(_ task.NodeID, g uint64) { heard = append(heard, g) }})
			t.Cleanup(caller.Close)
			err := caller.Call(t.Context(), b.id, transport.MethodReadLog, &transport.LogRequest{}, &transport.LogReply{})
			if c.crosses != (err == nil) {
				t.Fatalf("a call: %v", err)
			}
			if err := caller.Call(t.Context(), b.id, transport.MethodHistory, &transport.LogRequest{}, &transport.LogReply{}); err != nil {
				t.Errorf("the question for the history: %v", err)
			}
			if c.crosses {
				if len(heard)+len(k.heard) > 0 {
					t.Errorf("heard %v and %v", heard, k.heard)
				}
				return
			}
			if c.client != 0 && (!errors.Is(err, transport.ErrWrongGeneration) || !errors.Is(err, task.ErrNoLeader) || len(heard) == 0) {
				t.Errorf("the caller: %v, heard %v", err, heard)
			}
			if !c.old && len(k.heard) == 0 {
				t.Error("the answering side did not hear of it")
			}
		})
	}
}
