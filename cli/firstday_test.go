package cli

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// TestInitWaitsForTheCluster: the node here is built anew after an init; whoever types the next command meets the cluster.
func TestInitWaitsForTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.api.afterInit = func() {
			time.Sleep(time.Second)
			b.api.change(func() { b.api.view.Name = "garage" })
		}
		b.expect(exitDone, "init", "--name", "garage")
		b.expect(exitDone, "status")
		b.wants("stdout", b.out.String(), "garage   healthy")
	})
}

// TestLeaveAlone: a node of no cluster has nobody to leave, and the question says what becomes of it.
func TestLeaveAlone(t *testing.T) {
	b := newBench(t)
	b.expect(exitUsage, "leave")
	b.wants("stderr", b.err.String(), "End it and put its data, jobs and schedules aside?")
}

// TestDrainSaysWhatBecomesOfWork: what runs moves at once, or within a deadline.
func TestDrainSaysWhatBecomesOfWork(t *testing.T) {
	for _, c := range []struct {
		running int
		args    []string
		want    string
	}{
		{0, nil, "mini-1 gets nothing new; nothing runs there."},
		{1, nil, "what runs there (1 shard) is stopped and goes on elsewhere."},
		{2, []string{"--deadline", "1h"}, "what runs there (2 shards) may end within 1h, then it moves."},
	} {
		b := newBench(t)
		b.api.view.Nodes[0].Running = c.running
		b.expect(exitDone, append([]string{"node", "drain", "mini-1"}, c.args...)...)
		b.wants("stdout", b.out.String(), c.want)
	}
}

// TestLength: two units, the smaller one only if there is something of it.
func TestLength(t *testing.T) {
	for seconds, want := range map[float64]string{0: "0s", 59.9: "59s", 60: "1m", 61: "1m01s", 3600: "1h", 3660: "1h01m", 86399: "23h59m", 86400: "1d", 90000: "1d1h", 172800: "2d"} {
		if got := length(seconds); got != want {
			t.Errorf("length(%v) = %q, want %q", seconds, got, want)
		}
	}
}

// TestOutcomeNamesTheRightCommand: dead shards are shown with the ends of their output.
func TestOutcomeNamesTheRightCommand(t *testing.T) {
	for _, c := range []struct {
		failed int
		want   string
	}{{1, "why: lanjobs show j1 --dead"}, {0, "why: lanjobs show j1 --attempts"}} {
		b := newBench(t)
		call := &call{world: b.w, opt: options{}}
		_ = call.outcome([]task.JobView{{ID: "j1", Name: "a", State: task.JobFailed, Shards: task.Counts{Total: 3, Failed: c.failed}}}, true)
		b.wants("stderr", b.err.String(), c.want)
	}
}

// TestScheduledInOneZone: the time here is not said twice where the schedule's zone is that of this machine.
func TestScheduledInOneZone(t *testing.T) {
	due := testClock{}.Wall().Add(time.Hour)
	for local, want := range map[string]string{localTime(due): "next " + localTime(due) + " (in ", "Tue 2026-12-01 03:00:00 XYZ": " here, in "} {
		b := newBench(t)
		c := &call{world: b.w}
		c.saidScheduled(&task.SubmitReply{Schedule: "nightly", Next: &task.OccurrenceView{Due: due, Local: local}})
		b.wants("stderr", b.err.String(), want)
	}
}

// TestLogoutWhoseAnswerIsCut: members cut the connections of a client that is removed, at times before the answer is through. Whoever logs
// out is not told of a cluster that did not hear.
func TestLogoutWhoseAnswerIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := newAfar(t, "home")
		b := away(t, home)
		b.expect(exitDone, "login", "mini-1", "--token", loginToken)
		door, cut := b.w.access, false
		b.w.access = func(a *transport.Access) (http.RoundTripper, error) {
			way, err := door(a)
			return doorFunc(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodDelete && !cut {
					cut = true
					home.api.refuse = task.NewProblem(task.ErrNotAllowed, "removed", "")
					return nil, io.EOF
				}
				return way.RoundTrip(r)
			}), err
		}
		b.expect(exitDone, "logout")
		if !cut || b.err.String() != "" {
			t.Errorf("cut %v: %s", cut, b.err)
		}
	})
}
