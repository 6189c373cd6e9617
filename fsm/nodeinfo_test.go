package fsm

import (
	"bytes"
	"reflect"
	"testing"

	"lanjobs/task"
)

// What a node says of its limits is kept, and a record of before that is read as it always was.
func TestNodeInfoRecord(t *testing.T) {
	info := task.NodeInfo{ID: "n1", Name: "nas", Slots: 4, Labels: []task.KV{{Name: "a", Value: "b"}}, Shells: []string{"sh"}}
	var old enc
	encInfo(&old, info)
	info.Limits = "cgroup"
	var e enc
	encInfo(&e, info)
	if bytes.Equal(e.b, old.b) {
		t.Fatal("limits are not in the record")
	}
	rules := info
	rules.Refuses, rules.Reserve = []string{"gpu"}, 30
	var before enc
	encInfo(&before, rules)
	told := rules
	told.RunAs, told.Inhibit = "tasks", "always"
	var after enc
	encInfo(&after, told)
	for b, want := range map[*enc]task.NodeInfo{&before: rules, &after: told} {
		d := dec{b: b.b}
		if got := decInfo(&d); d.err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v, want %+v", got, d.err, want)
		}
	}
	for _, b := range [][]byte{e.b, old.b} {
		d := dec{b: b}
		got := decInfo(&d)
		if d.err != nil || !reflect.DeepEqual(got, info) {
			t.Errorf("%+v, %v, want %+v", got, d.err, info)
		}
		info.Limits = ""
	}
}
