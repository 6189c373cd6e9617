//go:build e2e && linux

package cli_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
)

// TestProcLongWork: work that takes many leases, and work that waits for many leases before its turn, starts once (C03).
func TestProcLongWork(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	long := l.submit(l.nodes[0], l.file("long", lease(shortLease), untilGate))
	turns := l.submit(l.nodes[0], l.file("turns", lease(shortLease)+"\nshards: 5\nparallelism: 1", "say start\nsleep 7\nsay end"))
	l.ends(l.nodes[0], turns, task.JobSucceeded, 3*time.Minute)
	l.renewedFor(l.nodes[0], long, 1, 3*shortLease.Milliseconds())
	l.open("long")
	l.ends(l.nodes[0], long, task.JobSucceeded, 20*time.Second)
	l.ledger.oneStart(t, "long", 1)
	l.ledger.oneStart(t, "turns", 5)
	renewed := l.events(l.nodes[0], long, "lease.renew", "lease.confirm")
	for _, e := range renewed {
		if e.Token != renewed[0].Token || e.Execution != renewed[0].Execution {
			t.Errorf("renewed as %+v, first as %+v", e, renewed[0])
		}
	}
	for _, id := range []string{long, turns} {
		if lost := l.events(l.nodes[0], id, "lease.expire"); len(lost) > 0 {
			t.Errorf("expired: %+v", lost)
		}
	}
}

// TestProcEverybodyDies: whatever dies around an assignment, the run leaves "running" soon and is done (C10).
func TestProcEverybodyDies(t *testing.T) {
	t.Parallel()
	const ttl = 6 * time.Second // losing it early harms nothing here
	l := cluster(t)
	id := l.submit(l.nodes[0], l.file("blackout", lease(ttl), "say start \"$LANJOBS_ATTEMPT\"\n[ \"$LANJOBS_ATTEMPT\" -gt 1 ] || sleep 300\nsay end"))
	l.starts("blackout", 1, 20*time.Second)
	for _, n := range l.nodes {
		n.poweroff()
	}
	for _, n := range l.nodes {
		n.restart()
	}
	l.ends(l.nodes[0], id, task.JobSucceeded, ttl+60*time.Second)
	l.ledger.oneStart(t, "blackout", 2)
	l.whole(60 * time.Second)
	for round := range 3 {
		name := fmt.Sprintf("assigned%d", round)
		old := l.leader()
		id := l.submit(old, l.file(name, lease(ttl), "say start\nif [ \"$LANJOBS_ATTEMPT\" = 1 ]; then sleep 300; fi\nsay end"))
		var on *member
		for end := time.Now().Add(patience); on == nil && time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
			if s := l.ledger.of(name, "start"); len(s) > 0 {
				on = l.node(s[0].node)
			}
		}
		if on == nil {
			t.Fatalf("%s did not start", name)
		}
		old.kill(syscall.SIGKILL)
		on.poweroff()
		old.restart()
		third := l.others(old, on)[0]
		l.ends(third, id, task.JobSucceeded, ttl+60*time.Second)
		for _, j := range l.status(third).Jobs {
			if j.State == task.JobRunning {
				t.Errorf("%s %s is running, nobody works on it", j.Name, j.ID)
			}
		}
		on.restart()
		l.whole(60 * time.Second)
	}
}

// TestProcShardsDoneStayDone: no shard starts again after its success, though its machine and the leader die (C19).
func TestProcShardsDoneStayDone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.found("a", "b", "c", "d")
	door := l.nodes[0]
	id := l.submit(door, l.staged("ladder", "retry: {initial: 100ms}\n"+lease(shortLease)))
	done := map[int]string{}
	look := func() {
		for _, s := range l.shards(door, id) {
			if s.Stage == "ladder" && s.State == "succeeded" {
				done[s.Shard] = s.NodeName
			}
		}
	}
	l.waitFor(60*time.Second, "half of them are done", func() bool { look(); return len(done) >= 5 })
	most, best := map[string]int{}, ""
	for _, node := range done {
		if most[node]++; node != l.leader().name && most[node] > most[best] {
			best = node
		}
	}
	off := l.node(best)
	off.poweroff()
	old := l.leader()
	old.kill(syscall.SIGKILL)
	old.restart()
	rest := l.others(off, old)[0]
	l.ends(rest, id, task.JobSucceeded, 90*time.Second)
	succeeded, lost := map[int]int{}, 0
	for _, a := range l.attempts(rest, id) {
		switch {
		case a.Stage != "ladder":
		case a.State == "succeeded":
			succeeded[a.Shard] = a.Attempt
		default:
			lost++
		}
	}
	starts, merges := 0, 0
	for _, e := range l.ledger.of("ladder", "start") {
		if e.note == "merge" {
			merges++
			continue
		}
		starts++
		if _, before := done[e.shard]; e.attempt > succeeded[e.shard] || before && e.attempt > 1 {
			t.Errorf("shard %d began again with attempt %d, it had succeeded", e.shard, e.attempt)
		}
	}
	// What was lost with its machine had begun there or not.
	if merges != 1 || len(succeeded) != 10 || starts < 10 || starts > 10+lost {
		t.Errorf("%d starts of 10 shards, %d attempts lost; merge began %d times", starts, lost, merges)
	}
	t.Logf("%d attempts lost", lost)
}

// staged is a job of ten shards that take longer and longer, and a merge.
func (l *lab) staged(name, keys string) string {
	return fmt.Sprintf(`name: %s
env: {LEDGER: %q}
%s
stages:
  - name: ladder
    shards: 10
    run: |
      %s      say start shard
      sleep $(awk "BEGIN { print 0.4 * ($LANJOBS_SHARD + 1) }")
      say end shard
  - name: merge
    run: |
      %s      say start merge
`, name, l.ledger.path, keys, say, say)
}

// TestProcAttempts: limits of attempts are what they say, over changes of the leader and the loss of a machine (C23).
func TestProcAttempts(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	door := l.nodes[0]
	once := l.submit(door, l.file("once", lease(longLease)+"\nretry: {attempts: 1}", "say start\nexit 1"))
	l.ends(door, once, task.JobFailed, 20*time.Second)
	l.ledger.oneStart(t, "once", 1)

	four := l.submit(door, l.file("four", lease(longLease)+"\nretry: {attempts: 4, initial: 2s, factor: 1, jitter: 0%}", "say start\nexit 1"))
	for k := range 3 {
		l.starts("four", k+1, 60*time.Second)
		l.waitFor(20*time.Second, "it waits, or has waited", func() bool {
			s := l.shards(l.nodes[1], four)
			return len(s) == 1 && s[0].State == "backoff" || l.ledger.count("four", "start") > k+1
		})
		old := l.leader()
		old.kill(syscall.SIGKILL)
		old.restart()
	}
	l.ends(door, four, task.JobFailed, 60*time.Second)
	l.ledger.oneStart(t, "four", 4)
	for i, e := range l.ledger.of("four", "start") {
		if e.attempt != i+1 {
			t.Errorf("start %d is attempt %d", i+1, e.attempt)
		}
	}
	l.whole(60 * time.Second)

	each := l.submit(door, l.file("each", lease(4*time.Second)+"\nshards: 10\nretry: {attempts: 3, initial: 500ms, factor: 1}", "say start\nsleep 0.3\nexit 1"))
	l.starts("each", 4, 30*time.Second)
	off := l.others(l.leader())[0]
	off.poweroff()
	off.restart()
	rest := l.others(off)[0]
	l.ends(rest, each, task.JobFailed, 90*time.Second)
	counted, lost := map[int]int{}, 0
	for _, a := range l.attempts(rest, each) {
		if a.Counted {
			counted[a.Shard]++
		} else {
			lost++
		}
	}
	for shard := range 10 {
		if counted[shard] != 3 {
			t.Errorf("shard %d: %d attempts counted, 3 are allowed", shard, counted[shard])
		}
	}
	if n := l.ledger.count("each", "start"); n > 30+lost || n < 30 {
		t.Errorf("%d starts, with %d attempts lost with their machine", n, lost)
	}
}
