package transport_test

import (
	"reflect"
	"testing"

	"lanjobs/task"
	"lanjobs/transport"
)

// fill sets every field of a struct to something that is not zero, so that a field which is added and not packed is noticed.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.String:
		v.SetString("text " + string(rune('a'+*n%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(-*n))
	case reflect.Float64:
		v.SetFloat(float64(*n))
	case reflect.Uint64, reflect.Uint8:
		v.SetUint(uint64(*n))
	default:
		panic(v.Kind().String())
	}
}

func TestPackedListsKeepEveryField(t *testing.T) {
	n := 0
	var poll transport.PollReply
	fill(reflect.ValueOf(&poll).Elem(), &n)
	var report transport.ReportRequest
	fill(reflect.ValueOf(&report).Elem(), &n)
	var held transport.PollRequest
	fill(reflect.ValueOf(&held).Elem(), &n)
	for _, sent := range []any{&poll, &report, &held, &transport.PollReply{}, &transport.ReportRequest{}, &transport.PollRequest{},
		&transport.PollRequest{Holding: transport.Tokens{1 << 40, 1<<40 + 7, 3}}} {
		b, err := transport.Encode(sent)
		if err != nil {
			t.Fatal(err)
		}
		got := reflect.New(reflect.TypeOf(sent).Elem()).Interface()
		if err := transport.Decode(b, got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, sent) {
			t.Errorf("sent\n%+v\ngot\n%+v", sent, got)
		}
	}
}

// A reader of an older version knows fewer fields, one of a newer version more: both read the rest.
func TestPackedListsOfOtherVersions(t *testing.T) {
	older := []byte{1, 3, 0, 0, 0, 2, 'j', '1'} // one record that ends after its first field
	var got transport.Assignments
	if err := got.UnmarshalBinary(older); err != nil || len(got) != 1 || got[0].Job != "j1" {
		t.Errorf("%+v, %v", got, err)
	}
	full, err := transport.Reports{{Job: "j1", Token: 7}}.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	newer := append(full, 5, 'e', 'x', 't', 'r', 'a')
	newer[1] += 6
	var reports transport.Reports
	if err := reports.UnmarshalBinary(newer); err != nil || len(reports) != 1 || reports[0].Token != 7 {
		t.Errorf("%+v, %v", reports, err)
	}
}

// FuzzPacked: whatever comes is refused or read, and what was read is written and read again the same.
func FuzzPacked(f *testing.F) {
	for _, v := range []any{
		transport.Assignments{{Job: "j1", Shard: 3, Token: 9, Checkpoint: &task.Checkpoint{Seq: 1, Data: []byte("x")}, Range: &task.ShardRange{Start: 1, End: 5}}},
		transport.Reports{{Job: "j1", Outcome: task.Outcome{End: task.EndExited}, Outputs: []task.KV{{Name: "a", Value: "b"}}}},
		transport.Tokens{1, 2, 1 << 41},
	} {
		b, err := v.(interface{ MarshalBinary() ([]byte, error) }).MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		again(t, b, new(transport.Assignments), new(transport.Assignments))
		again(t, b, new(transport.Reports), new(transport.Reports))
		again(t, b, new(transport.Tokens), new(transport.Tokens))
	})
}

type packed interface {
	MarshalBinary() ([]byte, error)
	UnmarshalBinary([]byte) error
}

func again(t *testing.T, b []byte, first, second packed) {
	if first.UnmarshalBinary(b) != nil {
		return
	}
	out, err := first.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if err := second.UnmarshalBinary(out); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(first, second) {
		t.Errorf("%+v became %+v", first, second)
	}
}
