package fsm

import (
	"fmt"
	"testing"

	"lanjobs/task"
)

// TestWhatIsOverIsNotWaitedFor: a job that ends in a second may have a deadline of a day, and a shard that was cancelled may have been
// about to wait for a month. Were each kept until its time, a busy cluster's replicas would grow for as long.
func TestWhatIsOverIsNotWaitedFor(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1))
	for i := range 3000 {
		id := fmt.Sprint("j", i)
		l.i++
		l.s.ApplyBatch(l.i, &Batch{Commands: []Command{
			timed(id, 29*task.Day, 30*task.Day, stage("main", 1)), grant(id, 0, 0)}})
		c := exit(id, 0, 0, l.s.Job(task.JobID(id)).Shard(0, 0).Token, 0)
		c.Reports[0].Outcome = task.Outcome{End: task.EndDeferred, Wait: 30 * task.Day}
		l.i++
		l.s.ApplyBatch(l.i, &Batch{Commands: []Command{c}})
		if i%100 > 0 {
			l.i++
			l.s.ApplyBatch(l.i, &Batch{Commands: []Command{&CancelJob{Job: task.JobID(id)}}})
		}
	}
	if live := l.s.live; live != 30 || len(l.s.waits) > 1500 || len(l.s.expiries) > 1500 {
		t.Fatalf("%d jobs wait, with %d retries and %d deadlines", live, len(l.s.waits), len(l.s.expiries))
	}
	if err := l.s.Check(); err != nil {
		t.Fatal(err)
	}
	if at, ok := l.s.Due(); !ok || at != task.Instant(30*task.Day) {
		t.Fatal(at, ok)
	}
}
