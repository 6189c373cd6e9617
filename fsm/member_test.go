package fsm

import (
	"fmt"
	"strings"
	"testing"

	"lanjobs/task"
)

func cluster(t *testing.T) *ledger {
	l := newLedger(t)
	l.ok(0, node("a", 1), &InitCluster{ID: "c", Name: "home"}, &CreateToken{ID: "t1", Hash: []byte("h1"), TTL: task.Hour, Uses: 1, By: "anna"})
	return l
}

// TestAJoinTokenAdmitsNobodyInAnothersName: what is admitted is given a certificate for its id, and ids are no secret.
func TestAJoinTokenAdmitsNobodyInAnothersName(t *testing.T) {
	l := cluster(t)
	join := &AdmitNode{TokenHash: []byte("h1"), Node: "b", Name: "b"}
	l.ok(0, join)
	if r := l.ok(0, join)[0]; !r.Existed {
		t.Fatal("a repeat of the admission was not known for one")
	}
	l.ok(0, &CreateToken{ID: "t2", Hash: []byte("h2"), TTL: task.Hour, Uses: 5})
	if r := l.ok(0, join)[0]; !r.Existed {
		t.Fatal("a repeat was refused after another token was made")
	}
	l.ok(0, &CreateToken{ID: "t4", Hash: []byte("login"), TTL: task.Hour, Uses: 1, Role: RoleAdmin}) // for a person, not a machine
	for _, c := range []struct {
		hash string
		node task.NodeID
	}{{"h1", "a"}, {"h2", "a"}, {"h2", "b"}, {"h1", "c"}, {"h3", "d"}, {"login", "d"}} {
		if r, ev := l.do(0, &AdmitNode{TokenHash: []byte(c.hash), Node: c.node}); r[0].Err == nil || len(ev) != 0 {
			t.Errorf("%+v was accepted: %+v", c, r[0])
		}
	}
	l.lead(task.Hour)
	if r, _ := l.do(0, join); r[0].Err == nil {
		t.Error("a token that has ended admits again")
	}
	if r, _ := l.do(0, &AdmitNode{TokenHash: []byte("h2"), Node: "e"}); r[0].Err == nil {
		t.Error("a token that has ended admits")
	}
	if r := l.ok(0, &AdmitNode{Node: "f", Worker: true})[0]; r.Existed || !l.s.Node("f").WorkerOnly {
		t.Error("a person's approval does not admit")
	}
	l.ok(0, &SetNode{Node: "f", Action: NodeRemove})
	if r, _ := l.do(0, &AdmitNode{Node: "f"}); r[0].Err == nil {
		t.Error("a removed node was admitted under its old identity")
	}
}

// TestAnIDIsThatOfOneKey: a token may be known to several, and a certificate is issued for the key that comes with it.
func TestAnIDIsThatOfOneKey(t *testing.T) {
	l := cluster(t)
	join := &AdmitNode{TokenHash: []byte("h1"), Node: "b", Name: "b", Key: []byte("key of b")}
	l.ok(0, join)
	thief := &AdmitNode{TokenHash: []byte("h1"), Node: "b", Name: "b", Key: []byte("key of a thief")}
	for _, c := range []*AdmitNode{thief, {TokenHash: []byte("h1"), Node: "b"}, {Node: "b", Key: thief.Key}} {
		if r, ev := l.do(0, c); r[0].Err == nil || !strings.Contains(r[0].Err.Error(), "another key") || len(ev) != 0 {
			t.Errorf("%+v: %+v", c, r[0])
		}
	}
	if r := l.ok(0, join)[0]; !r.Existed {
		t.Error("the same key was not known again")
	}
	if again := reread(t, l.s); string(again.Node("b").Key) != "key of b" {
		t.Errorf("a snapshot keeps the key as %q", again.Node("b").Key)
	}
	if r, _ := l.do(0, &AdmitNode{Node: "x", Key: make([]byte, maxIDLength+1)}); r[0].Err == nil {
		t.Error("a key of any length is kept")
	}
}

func TestOnlyMembersRegister(t *testing.T) {
	l := cluster(t)
	if r, _ := l.do(0, node("b", 1)); r[0].Err == nil || l.s.Node("b") != nil {
		t.Fatal("an unknown node registered")
	}
	l.ok(0, &AdmitNode{TokenHash: []byte("h1"), Node: "b", Worker: true})
	n := node("b", 1)
	n.Info.Voter = true
	n.Info.Labels = []task.KV{{Name: "zone", Value: "1"}, {Name: "gpu", Value: "true"}}
	l.ok(0, n)
	if b := l.s.Node("b"); b.Info.Voter {
		t.Fatal("a worker became a voter")
	} else if v, ok := b.Info.Label("gpu"); !ok || v != "true" {
		t.Fatalf("labels that came unsorted are not found: %v", b.Info.Labels)
	}
	n.Info.Labels[0].Value = "changed" // the caller's own
	if v, _ := l.s.Node("b").Info.Label("zone"); v != "1" {
		t.Fatal("the state keeps what the command holds")
	}
	if r, _ := l.do(0, &SetNode{Node: "b", Action: NodeLeave}, node("b", 2)); r[1].Err == nil {
		t.Fatal("a node that left registered")
	}
}

func TestMemberCommandsAreBounded(t *testing.T) {
	l := cluster(t)
	var many []task.KV
	for i := range maxLabels + 1 {
		many = append(many, task.KV{Name: fmt.Sprint("label", i), Value: "x"})
	}
	labelled, wide := node("a", 2), node("a", 2)
	labelled.Info.Labels, wide.Info.Slots = many, task.MaxSlots+1
	for _, c := range []Command{
		&InitCluster{}, &InitCluster{ID: "d"}, node("", 1), node("a", 0), labelled, wide,
		&SetNode{Node: "a", Action: NodeLabel, Labels: many}, &SetNode{Node: "x", Action: NodeDrain}, &SetNode{Node: "a", Action: "paint"},
		&CreateToken{ID: "t", Hash: nil, TTL: 1, Uses: 1}, &CreateToken{ID: "t1", Hash: []byte("other"), TTL: 1, Uses: 1}, &CreateToken{ID: "other", Hash: []byte("h1"), TTL: 1, Uses: 1},
		&RemoveToken{ID: "none"}, &AdmitNode{}, &SetOnline{Node: "x"},
	} {
		before := l.s.Digest()
		r, events := l.s.ApplyBatch(l.s.Index, &Batch{Wall: l.s.Wall, Commands: []Command{c}})
		if r[0].Err == nil || len(events) != 0 || l.s.Digest() != before {
			t.Errorf("%T %+v: %+v", c, c, r[0])
		}
	}
	if r := l.ok(0, &InitCluster{ID: "c", Name: "home"})[0]; !r.Existed {
		t.Error("a repeated init was not known for one")
	}
	l.ok(0, &SetNode{Node: "a", Action: NodeLabel, Labels: []task.KV{{Name: "b", Value: "1"}, {Name: "a", Value: "2"}}}, &SetNode{Node: "a", Action: NodeLabel, Labels: []task.KV{{Name: "b"}}})
	if info := l.s.Node("a").Labelled(); len(info.Labels) != 1 || info.Labels[0].Name != "a" {
		t.Errorf("%v", info.Labels)
	}
}

func TestASubmitIsKnownForARepeatForAWhile(t *testing.T) {
	l := newLedger(t)
	c := submit("j1", stage("main", 1))
	c.Spec = []byte(`{"name":"x","stages":[{"name":"main","shards":1,"when":"success","lease":{"ttl":2000},"retry":{"attempts":1,"lease_losses":1}}]}`)
	l.ok(0, c, &CancelJob{Job: "j1"}, &CollectJobs{Jobs: []task.JobID{"j1"}})
	again := *c
	again.Job = "j2"
	if r := l.ok(0, &again)[0]; !r.Existed || r.Job != "j1" {
		t.Fatalf("a job that is kept for no time was collected before a repeat of its submit, which ran it again: %+v", r)
	}
	l.lead(requestWindow)
	l.ok(0, &CollectJobs{Jobs: []task.JobID{"j1"}})
	if l.s.Job("j1") != nil {
		t.Fatal("it is never collected")
	}
	c = submit("j3", stage("main", 1)) // the window of a key that it does not have
	c.Spec = []byte(strings.Replace(string(c.Spec), `"retain":86400000`, `"retain":0,"idempotency_window":86400000`, 1))
	l.ok(0, c, &CancelJob{Job: "j3"})
	l.lead(requestWindow)
	l.ok(0, &CollectJobs{Jobs: []task.JobID{"j3"}})
	if l.s.Job("j3") != nil {
		t.Fatal("a job without a key is kept for its window")
	}
}
