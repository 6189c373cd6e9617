package cli

import (
	"fmt"
	"time"

	"lanjobs/task"
)

// play is a cluster that runs all shards of a job at once for a second. Each writes two lines; shard number bad fails.
func (f *fakeAPI) play(bad int) func(*fakeJob) {
	return func(j *fakeJob) {
		time.Sleep(200 * time.Millisecond)
		f.change(func() { f.begin(j) })
		time.Sleep(time.Second)
		f.change(func() { f.end(j, bad) })
	}
}

func (f *fakeAPI) begin(j *fakeJob) {
	if j.view.State.Final() {
		return
	}
	j.view.State, j.view.Started = task.JobRunning, ptr(j.view.Submitted)
	for i := range j.view.Stages {
		st := &j.view.Stages[i]
		n := st.Shards.Total
		st.Shards = task.Counts{Total: n, Running: n}
		f.emit(j, task.Event{Kind: task.EventLeaseGrant, Stage: st.Name, Shards: all(n), NodeName: "mini-1"})
		for k := range n {
			key := fmt.Sprintf("%s/%d/1", st.Name, k)
			j.logs[key], j.running[key] = fmt.Sprintf("first of %d\n", k), true
		}
	}
}

func all(n int) string {
	if n == 1 {
		return "0"
	}
	return fmt.Sprintf("0-%d", n-1)
}

func (f *fakeAPI) end(j *fakeJob, bad int) {
	if j.view.State.Final() {
		clear(j.running)
		return
	}
	j.view.State, j.view.Ended = task.JobSucceeded, ptr(j.view.Submitted.Add(time.Second))
	j.view.Shards = task.Counts{Total: j.view.Shards.Total, Succeeded: j.view.Shards.Total}
	for i := range j.view.Stages {
		st := &j.view.Stages[i]
		n := st.Shards.Total
		st.State, st.Shards = "succeeded", task.Counts{Total: n, Succeeded: n}
		for k := range n {
			key := fmt.Sprintf("%s/%d/1", st.Name, k)
			j.logs[key] += fmt.Sprintf("last of %d", k) // without a line's end
			j.running[key] = false
		}
		if bad >= 0 && bad < n {
			j.view.State, st.State = task.JobFailed, "failed"
			st.Shards = task.Counts{Total: n, Succeeded: n - 1, Failed: 1}
			j.view.Shards = task.Counts{Total: n, Succeeded: n - 1, Failed: 1}
			f.emit(j, task.Event{Kind: task.EventShardState, Stage: st.Name, Shards: itoa(bad), From: "running", To: "failed", Reason: "exit 1, attempt 3 of 3"})
		}
	}
}
