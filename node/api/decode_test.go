package api

import (
	"encoding/json"
	"reflect"
	"testing"

	"lanjobs/task"
	"lanjobs/transport"
)

// bodies are what the API reads.
var bodies = []any{task.Spec{}, transport.SubmitLine{}, transport.RetryBody{}, transport.PriorityBody{}, transport.QueueBody{}, transport.DrainBody{},
	transport.LabelBody{}, transport.RoleBody{}, transport.TokenBody{}, transport.PairCodeBody{}, transport.PairDecision{}, transport.InitBody{},
	transport.LeaveBody{}, transport.DoctorBody{}, transport.RecoverBody{}}

// The walk counts a struct's fields in 64 bits, and knows structs, lists and plain values.
func TestBodiesAreOfWhatTheWalkKnows(t *testing.T) {
	var check func(reflect.Type)
	check = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		switch typ.Kind() {
		case reflect.Struct:
			names, types := fieldsOf(typ)
			if len(names) > 64 {
				t.Errorf("%s has %d fields", typ, len(names))
			}
			for _, inside := range types {
				check(inside)
			}
		case reflect.Map, reflect.Interface:
			t.Errorf("%s is in a body", typ)
		}
	}
	for _, b := range bodies {
		check(reflect.TypeOf(b))
	}
}

// What is valid JSON for encoding/json is gone through without a fault of the walk itself.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{`{"shards":[{"first":1,"last":2}],"all":true}`, ` { "stage" : "\ud83d\ude00" } `, `{"stages":[{"env":[null]}]}`, `{"spec":{"a":[1,{}]}}`, `[1,2`, `"x"`, `7`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, b := range bodies {
			v := reflect.New(reflect.TypeOf(b)).Interface()
			if err := decodeJSON(body, v); err == nil && json.Unmarshal(body, v) != nil {
				t.Errorf("%T is taken, and is no JSON: %q", b, body)
			}
		}
	})
}
