package leader

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
)

func jobOf(stages int) fsm.SubmitJob {
	spec := task.Spec{Name: "x", Queue: "default"}
	for i := range stages {
		spec.Stages = append(spec.Stages, task.StageSpec{Name: fmt.Sprint("s", i), Shards: 1, When: task.WhenSuccess, Run: "x", Lease: task.DefaultLease(task.Minute), Retry: task.DefaultRetry()})
	}
	data, _ := json.Marshal(spec)
	return fsm.SubmitJob{Spec: data, Digest: data}
}

// TestTwoJobsOfOneIDInOneEntry: only the first of them is stored under it, so that only of the first anything is granted.
func TestTwoJobsOfOneIDInOneEntry(t *testing.T) {
	lead(t, func(o *office) {
		var mu sync.Mutex
		draws := []task.JobID{"same", "same", "other"}
		o.l.cfg.NewJobID = func() task.JobID {
			mu.Lock()
			defer mu.Unlock()
			id := draws[0]
			draws = draws[1:]
			return id
		}
		answer := o.parked(4)
		o.l.Rest(context.Background())
		var both sync.WaitGroup
		for stages := range 2 {
			both.Go(func() {
				if r, err := o.hand(jobOf(stages + 1)); err != nil || r.Err != nil {
					t.Error(err, r.Err)
				}
			})
			synctest.Wait()
		}
		o.l.GoOn()
		both.Wait()
		if r := <-answer; r == nil || len(r.Assignments) != 1 || r.Assignments[0].Job != "same" {
			t.Errorf("%+v", r)
		}
		if as := o.poll(4).Assignments; len(as) == 0 {
			t.Error("nothing of the other")
		}
	})
}

// TestCollectingKeepsUpWithTheJobsThatEnd: their records would grow without end where more end than a collection now and then removes.
func TestCollectingKeepsUpWithTheJobsThatEnd(t *testing.T) {
	lead(t, func(o *office) {
		const jobs = 3000
		o.log.mu.Lock()
		for i := range jobs {
			c := jobOf(1)
			c.Job = task.JobID(fmt.Sprint("old", i))
			o.log.index++
			o.log.s.ApplyBatch(o.log.index, &fsm.Batch{Commands: []fsm.Command{&c, &fsm.CancelJob{Job: c.Job}}})
		}
		o.log.index++
		o.log.s.ApplyBatch(o.log.index, &fsm.Batch{Idle: task.Hour})
		o.log.mu.Unlock()
		left := func() (n int) {
			o.log.Read(func(s *fsm.State) { s.Jobs(func(*fsm.Job) bool { n++; return true }) })
			return n
		}
		time.Sleep(time.Minute)
		for range 60 { // a minute in which something happens each second
			if r, err := o.l.Propose(context.Background(), &fsm.SetOnline{Node: "b", Online: true}); err != nil || r.Err != nil {
				t.Fatal(err, r.Err)
			}
			time.Sleep(time.Second)
		}
		if n := left(); n > 0 {
			t.Errorf("%d of %d jobs whose retention is over are still there", n, jobs)
		}
	})
}
