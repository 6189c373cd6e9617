//go:build e2e && linux

package cli_test

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
)

// twenty saves 1 to 20 as fast as it may, then does what the gate's place says.
const twenty = `say start "$(cat "$LANJOBS_CHECKPOINT" 2>/dev/null)"
if [ -s "$LANJOBS_CHECKPOINT" ]; then exit 0; fi
n=0
while [ "$n" -lt 20 ]; do
  n=$((n + 1))
  echo "$n" | lanjobs task checkpoint
  say saved "$n"
done
`

// TestProcLastCheckpoint: the next attempt gets the last checkpoint whose save was answered, whatever dies right after it: the
// command, its machine, or the leader (C34).
func TestProcLastCheckpoint(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	id := l.submit(l.nodes[0], l.file("fails", lease(longLease)+"\nretry: {attempts: 2, initial: 100ms}", twenty+"exit 1"))
	l.ends(l.nodes[0], id, task.JobSucceeded, 60*time.Second)
	l.gotTwenty("fails")

	id = l.submit(l.nodes[0], l.file("dies", lease(shortLease), twenty+"sleep 300"))
	on := l.node(l.starts("dies", 1, 20*time.Second)[0].node)
	l.saved("dies", 20)
	on.poweroff()
	l.ends(l.others(on)[0], id, task.JobSucceeded, 60*time.Second)
	l.gotTwenty("dies")
	on.restart()
	l.whole(60 * time.Second)

	old := l.leader()
	id = l.submit(old, l.file("leaderless", lease(longLease)+"\nretry: {attempts: 2, initial: 100ms}", twenty+"sleep 1\nexit 1"))
	l.saved("leaderless", 20)
	old.kill(syscall.SIGKILL)
	l.ends(l.others(old)[0], id, task.JobSucceeded, 60*time.Second)
	l.gotTwenty("leaderless")
}

// saved waits for the answer to a save, closely: what the test does next shall come right after it.
func (l *lab) saved(job string, n int) {
	l.t.Helper()
	for end := time.Now().Add(patience); l.ledger.count(job, "saved") < n; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			l.t.Fatalf("%s has not saved %d", job, n)
		}
	}
}

// renewedFor waits until an attempt of a job has been renewed for so many milliseconds on the cluster's clock.
func (l *lab) renewedFor(n *member, id string, attempt int, ms int64) {
	l.t.Helper()
	l.waitFor(60*time.Second, fmt.Sprintf("attempt %d of %s is renewed for %d ms", attempt, id, ms), func() bool {
		var granted, last task.Instant
		for _, e := range l.events(n, id, "lease.grant", "lease.renew", "lease.confirm") {
			switch {
			case e.Attempt != attempt:
			case e.Kind == task.EventLeaseGrant:
				granted = e.Clock
			default:
				last = e.Clock
			}
		}
		return granted > 0 && int64(last-granted) >= ms
	})
}

func (l *lab) gotTwenty(job string) {
	l.t.Helper()
	if s := l.ledger.of(job, "start"); len(s) != 2 || s[1].note != "20" {
		l.t.Errorf("%s: starts %+v; the second one is to find checkpoint 20", job, s)
	}
}

// TestProcStaleSaves: a machine that was frozen for two leases wakes up with its command in the middle of saving. Its saves and
// its report are refused, what is stored never goes back, and the command is killed soon (C35).
func TestProcStaleSaves(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	id := l.submit(l.nodes[0], l.file("stale", lease(shortLease), steps))
	first := l.starts("stale", 1, 20*time.Second)[0]
	on := l.node(first.node)
	l.saved("stale", 5)
	on.freeze()
	found, _ := strconv.Atoi(l.starts("stale", 2, 60*time.Second)[1].note)
	l.renewedFor(l.others(on)[0], id, 2, shortLease.Milliseconds())
	thawed := l.ledger.mark(t)
	on.thaw()
	l.waitFor(10*time.Second, "the old command is dead", func() bool { return len(on.tasks()) == 0 })
	l.ledger.soonDead(t, thawed, "stale", first.exec)
	l.open("stale")
	l.ends(l.nodes[0], id, task.JobSucceeded, 40*time.Second)
	for _, e := range l.ledger.since(thawed, "stale") {
		// The answer to a last save may have come right before the freeze: what it saved was then there for the new owner.
		if n, _ := strconv.Atoi(e.note); e.event == "saved" && e.exec == first.exec && n > found {
			t.Errorf("a save with the old fence was accepted: %+v, the new owner began at %d", e, found)
		}
	}
	ends := l.ledger.of("stale", "end")
	if len(ends) != 1 || ends[0].exec == first.exec {
		t.Fatalf("ends %+v, want one, not of %s", ends, first.exec)
	}
	stored := l.shards(l.nodes[0], id)
	if last, _ := strconv.Atoi(ends[0].note); len(stored) != 1 || string(stored[0].Execution) != ends[0].exec || stored[0].CheckpointSeq < uint64(last) {
		t.Errorf("stored %+v, the owner had saved %d", stored, last)
	}
	if text := l.must(l.nodes[0], "events", "--job", id, "--audit"); !strings.Contains(text, "stale") {
		t.Logf("no stale report was refused: the command was killed before it could send one")
	}
}
