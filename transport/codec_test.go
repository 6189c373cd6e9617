package transport_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"lanjobs/task"
	"lanjobs/transport"
)

// messages are one of each kind that crosses the wire, with something in every field that is odd to carry.
func messages() []any {
	version := uint64(3)
	token := task.Token(5<<task.GenerationBits | 7)
	info := task.NodeInfo{ID: "n", Name: "mini-1", Labels: []task.KV{{Name: "gpu", Value: "true"}}, Shells: []string{"bash"}, Voter: true}
	return []any{
		&transport.RegisterRequest{Info: info, Incarnation: 1<<63 + 1, Held: []task.Token{1, token}, Load: task.Load{CPU: 0.5, MemFreeMB: 1}},
		&transport.RegisterReply{Keep: []task.Token{token}},
		&transport.PollRequest{Incarnation: 1, Want: 64, Hold: 30 * task.Second, Holding: []task.Token{token}},
		&transport.PollReply{Assignments: []task.Assignment{{
			Job: "j7k3q9", Stage: 1, Shard: 9, Attempt: 2, Token: token, FirstTTL: 1, MustRenew: true,
			Checkpoint: &task.Checkpoint{Seq: 3, Data: []byte{0, 0xff, 0xc1}}, ScheduledFor: -1,
		}}, Orders: []transport.StopOrder{{Token: token, Reason: task.StopDrain, Grace: 5}}},
		&transport.RenewReply{Renewed: []transport.Renewal{{Token: token, TTL: task.Day}}, Lost: []task.Token{1}, Unregistered: true},
		&transport.ReportRequest{Incarnation: 1, Reports: []task.Report{{
			Job: "j", Token: token, Outcome: task.Outcome{End: task.EndExited, ExitCode: -1, Tail: "grüße\x00\xff"}, Outputs: []task.KV{{Name: "a"}},
		}}},
		&transport.ReportReply{Codes: []string{"", "stale_token"}},
		&transport.CheckpointRequest{Ref: task.ShardRef{Job: "j", Shard: 1}, Token: token, Seq: 1, Data: bytes.Repeat([]byte{1}, 70_000)},
		&transport.StatePutRequest{Key: "k", Value: []byte("v"), IfVersion: &version},
		&transport.StatePutRequest{Key: "k"},
		&transport.InputsReply{Inputs: []transport.Input{{Shard: 1, Name: "n", Value: "v"}}},
		&transport.APIRequest{HTTPMethod: "GET", Header: map[string]string{"A": "b"}, Body: []byte("{}"), Hops: 1},
		&transport.LogReply{Data: []byte("x"), Next: 1 << 50, Done: true},
	}
}

func TestMessagesSurviveTheWire(t *testing.T) {
	for _, sent := range messages() {
		b, err := transport.Encode(sent)
		if err != nil {
			t.Fatal(err)
		}
		got := reflect.New(reflect.TypeOf(sent).Elem()).Interface()
		if err := transport.Decode(b, got); err != nil || !reflect.DeepEqual(sent, got) {
			t.Errorf("%T: %+v became %+v, %v", sent, sent, got, err)
		}
	}
}

// R47: the neighbouring version knows other fields. Names on the wire are those of Go's fields, whatever JSON calls them.
func TestUnknownFieldsAreSkipped(t *testing.T) {
	type later struct {
		Seq   uint64
		Extra map[string][]any
		Data  []byte
	}
	b, err := transport.Encode(&later{Seq: 9, Extra: map[string][]any{"x": {1, "a", nil, map[string]any{"y": 2.5}}}, Data: []byte("z")})
	if err != nil {
		t.Fatal(err)
	}
	var ack transport.Ack
	if err := transport.Decode(b, &ack); err != nil || ack.Seq != 9 {
		t.Errorf("%+v, %v", ack, err)
	}
	var old transport.StateValue // none of its fields are there
	if err := transport.Decode(b, &old); err != nil || old.Version != 0 || old.Value != nil {
		t.Errorf("%+v, %v", old, err)
	}
	b, err = transport.Encode(&task.KV{Name: "a", Value: "b"})
	if err != nil || !bytes.Contains(b, []byte("Name")) || bytes.Contains(b, []byte("name")) {
		t.Errorf("encoded as %q, %v", b, err)
	}
}

func TestBrokenMessagesAreRefused(t *testing.T) {
	whole, err := transport.Encode(messages()[3])
	if err != nil {
		t.Fatal(err)
	}
	deep := append(append([]byte{0x81, 0xa1, 'x'}, bytes.Repeat([]byte{0x91}, 1<<20)...), 0xc0)
	for name, b := range map[string][]byte{
		"empty": {}, "cut short": whole[:len(whole)-1], "something behind it": append(bytes.Clone(whole), 0),
		"four thousand million elements": {0x81, 0xab, 'A', 's', 's', 'i', 'g', 'n', 'm', 'e', 'n', 't', 's', 0xdd, 0xff, 0xff, 0xff, 0xff},
		"a string of 4 GB":               {0x81, 0xdb, 0xff, 0xff, 0xff, 0xff, 'a'},
		"a million lists in each other":  deep, "never used": {0xc1},
	} {
		var reply transport.PollReply
		if err := transport.Decode(b, &reply); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	var reply transport.PollReply
	if err := transport.Decode(make([]byte, transport.MaxMessageBytes+1), &reply); !errors.Is(err, task.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if _, err := transport.Encode(strings.Repeat("x", transport.MaxMessageBytes)); !errors.Is(err, task.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

func FuzzDecodeMessage(f *testing.F) {
	for i, m := range messages() {
		b, err := transport.Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		if len(b) < 4096 {
			f.Add(uint8(i), b)
		}
	}
	kinds := messages()
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		v := reflect.New(reflect.TypeOf(kinds[int(kind)%len(kinds)]).Elem()).Interface()
		if transport.Decode(b, v) != nil {
			return
		}
		once, err := transport.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		again := reflect.New(reflect.TypeOf(v).Elem()).Interface()
		if err := transport.Decode(once, again); err != nil {
			t.Fatalf("what was encoded is not decoded: %v", err)
		}
		twice, err := transport.Encode(again)
		// Maps are written in any order.
		if _, hasMap := v.(*transport.APIRequest); err != nil || !hasMap && !bytes.Equal(once, twice) {
			t.Errorf("%+v became %+v, %v", v, again, err)
		}
	})
}

func BenchmarkCodec(b *testing.B) {
	m := messages()[3]
	for b.Loop() {
		text, err := transport.Encode(m)
		if err != nil {
			b.Fatal(err)
		}
		var got transport.PollReply
		if err := transport.Decode(text, &got); err != nil {
			b.Fatal(err)
		}
	}
}
