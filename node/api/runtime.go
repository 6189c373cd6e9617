package api

import (
	"slices"

	"lanjobs/fsm"
	"lanjobs/task"
)

// maxSample bounds how many shards the run times of one stage are taken from: of a larger stage evenly many from all over it.
const maxSample = 10_000

// runTimes gives the run times of a stage's shards that succeeded, from grant to end on the cluster clock. Skipped ones did
// not run.
func runTimes(st *fsm.Stage) []task.Millis {
	if st.Counts[task.ShardSucceeded] == 0 {
		return nil
	}
	step := max((st.Len()+maxSample-1)/maxSample, 1)
	out := make([]task.Millis, 0, min(st.Counts[task.ShardSucceeded], maxSample))
	for k := 0; k < st.Len(); k += step {
		if sh := st.At(k); sh.State == task.ShardSucceeded && sh.Tries > 0 && sh.Skipped() == "" {
			out = append(out, sh.Ended.Sub(sh.Granted))
		}
	}
	return out
}

// percentile is the smallest of sorted values that so many percent do not exceed.
func percentile(sorted []task.Millis, percent int) task.Millis {
	return sorted[(len(sorted)*percent+99)/100-1]
}

// spread is P50 and P99 of run times, and the timeout that follows from them; nil without any.
func spread(times []task.Millis) (p50, p99, timeout *float64) {
	if len(times) == 0 {
		return nil, nil, nil
	}
	slices.Sort(times)
	a, b, c := seconds(percentile(times, 50)), seconds(percentile(times, 99)), suggestTimeout(percentile(times, 99))
	return &a, &b, &c
}

// plainTimeouts are lengths that a person would write, in seconds; each is less than 1.5 times the one before, so that the first
// one above 2 × P99 is below 3 × P99.
var plainTimeouts = []float64{10, 12, 15, 20, 25, 30, 40, 50, 60, 75, 90, 120, 150, 180, 240, 300, 360, 480, 600, 720, 900, 1200, 1500, 1800, 2400, 3000,
	3600, 4500, 5400, 7200, 9000, 10800, 14400, 18000, 21600, 28800, 36000, 43200, 57600, 72000, 86400, 129600}

// suggestTimeout is 2 to 3 times P99 (R30), and at least 10 s: below that a slow disk ends good work.
func suggestTimeout(p99 task.Millis) float64 {
	want := 2 * seconds(p99)
	for _, t := range plainTimeouts {
		if t >= want {
			return t
		}
	}
	const day = 86400
	return float64((int64(want)/day + 1) * day)
}

// measured adds the run times of a job's shards to its view.
func measured(out *task.JobView, j *fsm.Job) {
	var all []task.Millis
	var slowest float64
	for i := range j.Stages {
		times := runTimes(&j.Stages[i])
		st := &out.Stages[i]
		st.P50Seconds, st.P99Seconds, st.SuggestedTimeout = spread(times)
		if st.SuggestedTimeout != nil {
			slowest = max(slowest, *st.SuggestedTimeout)
		}
		all = append(all, times...)
	}
	if out.P50Seconds, out.P99Seconds, _ = spread(all); len(all) > 0 {
		out.SuggestedTimeout = &slowest
	}
}
