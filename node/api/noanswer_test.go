package api

import (
	"testing"
	"time"

	"lanjobs/task"
)

// TestNoAnswerIsSaid: a machine that does not answer is told before it counts as silent: the sentence above the table says so already.
func TestNoAnswerIsSaid(t *testing.T) {
	c := newCluster(t)
	c.members[2].Away = 14 * time.Second
	var n task.NodeView
	if c.get("/v1/nodes/nas").ok(&n); n.State != nodeReady || n.Note != "no answer for 14s: silent after 1m" {
		t.Errorf("%s, %q", n.State, n.Note)
	}
	c.members[2].Away = 0
	n = task.NodeView{}
	if c.get("/v1/nodes/nas").ok(&n); n.Note != "" {
		t.Errorf("it answers: %q", n.Note)
	}
}

// TestACopyOfBeforeTheStart: a member that has just started and knows no leader shows the state of its last snapshot, and says how old
// that is.
func TestACopyOfBeforeTheStart(t *testing.T) {
	c := newCluster(t)
	c.submit(hello)
	c.standing = Standing{Silence: time.Second, Fresh: true, Copy: true}
	var v task.ClusterView
	if c.get("/v1/status").ok(&v); v.StaleSeconds < 3500 {
		t.Errorf("its last entry is of an hour ago, but the copy is said to be %v s old", v.StaleSeconds)
	}
}

// TestOutOfTheCluster: a machine that was removed does not speak of an election.
func TestOutOfTheCluster(t *testing.T) {
	c := newCluster(t)
	c.standing = Standing{Silence: time.Minute, Copy: true, Out: true}
	var v task.ClusterView
	if c.get("/v1/status").ok(&v); v.Sentence != "this machine takes no part in it any more" {
		t.Errorf("%q", v.Sentence)
	}
}
