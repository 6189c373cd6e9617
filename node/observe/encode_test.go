package observe

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"lanjobs/task"
)

// TestLinesAreWhatEncodingJSONMakes sets each field of an event by reflection, alone and with all others, so that a field
// which is added to task.Event and forgotten here is found.
func TestLinesAreWhatEncodingJSONMakes(t *testing.T) {
	texts := []string{"plain", `"quoted" \back`, "<b>&amp;</b>", "ün\u2028ï\x00\x1b[31m", "bad \xff utf-8"}
	var all task.Event
	var times stamp
	check := func(e task.Event) {
		t.Helper()
		e.Wall = 0
		want, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if got := times.appendLine(nil, &e); !bytes.Equal(got, append(want, '\n')) {
			t.Errorf("line is\n%s, want\n%s", got, want)
		}
		e.Wall = 1_700_000_000_123
		var back map[string]any
		line := times.appendLine(nil, &e)
		if err := json.Unmarshal(line, &back); err != nil || back["wall"] != 1_700_000_000_123.0 || back["time"] != "2023-11-14T22:13:20.123Z" {
			t.Errorf("line is %s: %v", line, err)
		}
		e.Wall++
		if line := times.appendLine(nil, &e); !bytes.HasSuffix(line, []byte(`"time":"2023-11-14T22:13:20.124Z"}`+"\n")) {
			t.Errorf("a millisecond later the line is %s", line)
		}
		if at, ok := parsePosition(bytes.TrimSuffix(line, []byte("\n"))); !ok || at != At(&e) {
			t.Errorf("position of %s is %s, %v", line, at, ok)
		}
	}
	check(all)
	v := reflect.ValueOf(&all).Elem()
	for i := range v.NumField() {
		one := reflect.New(v.Type()).Elem()
		for n, text := range texts {
			for _, event := range []reflect.Value{one, v} {
				setAny(t, event.Field(i), text, n)
				check(event.Interface().(task.Event))
			}
		}
	}
}

func setAny(t *testing.T, f reflect.Value, text string, n int) {
	switch f.Kind() {
	case reflect.String:
		f.SetString(text)
	case reflect.Int, reflect.Int64:
		f.SetInt([]int64{1, 0, 77, math.MaxInt32, 5}[n])
	case reflect.Uint64:
		f.SetUint([]uint64{1, 0, 77, 1 << 60, 5}[n])
	case reflect.Pointer:
		f.Set(reflect.ValueOf(&task.Load{CPU: []float64{0, 2.25, 1e-9, 1e22, -3}[n], MemFreeMB: 3, DiskFreeMB: n}))
	default:
		t.Fatalf("an event has a %s: teach appendLine and this test", f.Type())
	}
}
