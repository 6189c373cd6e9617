package fsm

import (
	"encoding/json"
	"math"
	"slices"

	"lanjobs/task"
)

// intern decodes a spec, or finds the equal one that is already here.
func (s *State) intern(data, digest []byte) (*Spec, *task.Problem) {
	if len(data) > task.MaxSpecBytes {
		return nil, task.NewProblem(task.ErrTooLarge, "the job is larger than "+itoa(task.MaxSpecBytes)+" bytes", "")
	}
	if sp := s.specs[string(data)]; sp != nil {
		return sp, nil
	}
	sp, problem := newSpec(string(data), string(digest))
	if problem != "" {
		return nil, task.NewProblem(task.ErrInvalid, "job spec: "+problem, "")
	}
	return sp, nil
}

func newSpec(text, digest string) (*Spec, string) {
	sp := &Spec{JSON: text, Digest: digest}
	if len(text) > largeSpec {
		var outline struct{ Stages stageCount }
		if err := json.Unmarshal([]byte(text), &outline); err != nil {
			return nil, err.Error()
		}
		if outline.Stages > task.MaxStages {
			return nil, "between 1 and " + itoa(task.MaxStages) + " stages are needed"
		}
	}
	if err := json.Unmarshal([]byte(text), &sp.Spec); err != nil {
		return nil, err.Error()
	}
	if problem := checkSpec(&sp.Spec); problem != "" {
		return nil, problem
	}
	sp.derive()
	return sp, ""
}

// largeSpec: a stage takes hundreds of bytes, and two as JSON. Above this length they are counted before they are decoded.
const largeSpec = 64 << 10

// stageCount is the length of the longest list of stages in a spec, which may have the key more than once.
type stageCount int

func (n *stageCount) UnmarshalJSON(data []byte) error {
	var stages []json.RawMessage
	err := json.Unmarshal(data, &stages)
	*n = max(*n, stageCount(len(stages)))
	return err
}

// checkSpec holds what Apply itself relies on; the job file's own checks are at the edge. It is part of Apply and of the
// snapshot's format: what it accepted once it must accept for ever. Numbers are bounded so that they fit an int of 32 bits,
// since a replica that cannot read a spec that others accept would part from them.
func checkSpec(sp *task.Spec) string {
	switch {
	case len(sp.Name) > maxIDLength || len(sp.IdempotencyKey) > maxKeyLength:
		return "its name or idempotency key is too long"
	case sp.Priority < 0 || sp.Priority > 100:
		return "priority is not from 0 to 100"
	case outside(sp.Retain) || outside(sp.IdempotencyWindow) || outside(sp.Deadline) || outside(sp.StartWithin):
		return "a length of time is out of bounds"
	case len(sp.Stages) == 0 || len(sp.Stages) > task.MaxStages:
		return "between 1 and " + itoa(task.MaxStages) + " stages are needed"
	}
	if sp.Schedule != nil {
		if p := checkSchedule(sp); p != "" {
			return "schedule: " + p
		}
	}
	total := 0
	for i := range sp.Stages {
		st := &sp.Stages[i]
		if st.Name == "" || len(st.Name) > maxIDLength || sp.Stage(st.Name) != i {
			return "stage " + itoa(i+1) + " has no name of its own"
		}
		if st.Shards < 1 && !dynamic(st) || st.Shards > task.MaxShards-total {
			return "stage " + st.Name + ": between 1 and " + itoa(task.MaxShards) + " shards are allowed in a job"
		}
		total += st.Shards
		if p := checkStage(sp, i); p != "" {
			return "stage " + st.Name + ": " + p
		}
	}
	return ""
}

func checkStage(sp *task.Spec, i int) string {
	st := &sp.Stages[i]
	retry := &st.Retry
	switch {
	case len(st.Items) > 0 && len(st.Items) != st.Shards:
		return "items and shards differ in number"
	case st.Parallelism < 0 || st.Parallelism > task.MaxShards:
		return "parallelism out of bounds"
	case st.Lease.TTL < task.MinTTL || st.Lease.TTL > task.MaxTTL:
		return "lease.ttl out of bounds"
	case outside(st.Lease.Heartbeat) || outside(st.Lease.StopGrace) || outside(st.Timeout) || outside(st.StallTimeout):
		return "a length of time is out of bounds"
	case outsideOf(st.Resources.MilliCPU, task.MaxMilliCPU) || outsideOf(st.Resources.MemoryMB, task.MaxResourceMB) || outsideOf(st.Resources.DiskMB, task.MaxResourceMB):
		return "resources out of bounds"
	case st.Lease.MaxRenewFailures < 0 || st.Lease.MaxRenewFailures > maxRetries:
		return "max_renew_failures out of bounds"
	case retry.Attempts < 1 || retry.Attempts > maxRetries || retry.LeaseLosses < 1 || retry.LeaseLosses > maxRetries:
		return "retry.attempts and retry.lease_losses must be from 1 to " + itoa(maxRetries)
	case outside(retry.Initial) || outside(retry.Max) || retry.Factor < 0 || retry.Factor > 1000 || retry.JitterPct < 0 || retry.JitterPct > 100:
		return "retry waits out of bounds"
	case st.Success.Percent < 0 || st.Success.Percent > 100 || st.Success.Count < 0 || st.Success.Count > task.MaxShards:
		return "success out of bounds"
	case slices.ContainsFunc(retry.PermanentOn, wide) || slices.ContainsFunc(retry.ElsewhereOn, wide):
		return "an exit code does not fit 32 bits"
	case st.When != task.WhenSuccess && st.When != task.WhenFailure && st.When != task.WhenAlways:
		return "unknown when"
	case len(st.User) > maxIDLength || st.OnSleep != "" && st.OnSleep != task.OnSleepRelease && st.OnSleep != task.OnSleepKeep && st.OnSleep != task.OnSleepFinish:
		return "unknown user or on_sleep"
	case len(st.Needs) > i:
		return "it needs more stages than stand before it"
	}
	for _, need := range st.Needs {
		if k := sp.Stage(need); k < 0 || k >= i {
			return "it needs " + need + ", which must stand before it"
		}
	}
	return checkShards(sp, i)
}

func wide(n int) bool { return n < math.MinInt32 || n > math.MaxInt32 }

func outside(m task.Millis) bool { return m < 0 || m > maxLength }

func outsideOf(n, most int) bool { return n < 0 || n > most }
