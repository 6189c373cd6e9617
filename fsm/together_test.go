package fsm_test

import (
	"bytes"
	"reflect"
	"testing"

	"lanjobs/fsm"
)

// Jobs of one file that are submitted together have its spec in the log once; what comes out is the same.
func TestEqualSpecsAreWrittenOnce(t *testing.T) {
	a, b := []byte(`{"name":"a"}`), []byte(`{"name":"b"}`)
	batch := &fsm.Batch{Leader: "n", Together: true, Commands: []fsm.Command{
		&fsm.SubmitJob{RequestID: "r1", Job: "j1", Spec: a, Digest: []byte("da"), By: "anna"},
		&fsm.SubmitJob{RequestID: "r2", Job: "j2", Spec: a, Digest: []byte("da"), By: "bert"},
		&fsm.Elected{Node: "n", Term: 1},
		&fsm.SubmitJob{RequestID: "r3", Job: "j3", Spec: a, Digest: []byte("da")},
		&fsm.SubmitJob{RequestID: "r4", Job: "j4", Spec: b, Digest: []byte("db")},
		&fsm.SubmitJob{RequestID: "r5", Job: "j5", Spec: a, Digest: []byte("other")},
	}}
	data := batch.Encode()
	if n := bytes.Count(data, a); n != 2 {
		t.Errorf("the spec stands in the entry %d times", n)
	}
	got, err := fsm.DecodeBatch(data)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, batch) {
		t.Errorf("%+v", got.Commands)
	}
	batch.Together = false // for members that do not know the short form
	if n := bytes.Count(batch.Encode(), a); n != 4 {
		t.Errorf("without it %d times", n)
	}
}
