package fsm

import (
	"fmt"
	"testing"

	"lanjobs/task"
)

// Leases that a registration frees come out of a map: its order must reach neither the state nor what is said (I10).
func TestARestartFreesInOneOrder(t *testing.T) {
	var want string
	for range 20 {
		l := newLedger(t)
		l.ok(0, node("a", 1), submit("j1", stage("main", 2)), submit("j2", stage("main", 2)))
		l.ok(0, grant("j1", 0, 0, 1), grant("j2", 0, 0, 1))
		_, events := l.do(5, node("a", 2))
		have := fmt.Sprintf("%x %s", l.s.Digest(), withoutPointers(fmt.Sprintf("%+v", events)))
		if want == "" {
			want = have
		}
		if have != want {
			t.Fatalf("two replicas differ:\n%s\n%s", want, have)
		}
	}
}

// The versions of a job's keys have no gaps, so that a replica that read a snapshot counts as the others do.
func TestARefusedWriteTakesNoVersion(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 1)))
	tok := l.ok(0, grant("j1", 0, 0))[0].Tokens[0]
	put := func(id string, ifVersion *uint64) *PutState {
		return &PutState{Ref: task.ShardRef{Job: "j1"}, Token: tok, RequestID: task.RequestID(id), Key: "k", Value: []byte("v"), IfVersion: ifVersion}
	}
	wrong := uint64(7)
	l.ok(0, put("r1", nil))
	if r, _ := l.do(0, put("r2", &wrong)); r[0].Err == nil || r[0].Version != 1 {
		t.Fatalf("a write over version 7 of a key that has version 1: %+v", r[0])
	}
	if r := l.ok(0, put("r3", nil)); r[0].Version != 2 {
		t.Fatalf("the second write has version %d", r[0].Version)
	}
}
