package jobfile

import (
	"math"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/task/schedule"
)

// good is a Spec as it might come over the wire.
func good(t *testing.T) *task.Spec {
	t.Helper()
	spec, faults := Load("x", []byte("name: x\nlabels: {a: b}\njobs:\n  a: {run: a, env: {A: b}, placement: {require: [ssd]}}\n  b: {command: [b], needs: [a], shards: {items: [x, y]}}\n"), Options{})
	if spec == nil {
		t.Fatal(faults)
	}
	spec.Files = []task.File{{Name: "a/b.sh", Mode: 0o755, Data: []byte("x")}}
	if faults := Check(spec, time.Time{}); len(faults) > 0 {
		t.Fatal(faults)
	}
	return spec
}

// What no job file can say may still come over the wire.
func TestCheckRefusesWhatNoFileCouldSay(t *testing.T) {
	for _, c := range []struct {
		want   string // part of path: message
		damage func(s *task.Spec, a, b *task.StageSpec)
	}{
		{"name: the job has no name", func(s *task.Spec, _, _ *task.StageSpec) { s.Name = "" }},
		{"name: job name", func(s *task.Spec, _, _ *task.StageSpec) { s.Name = "../x" }},
		{"queue: ", func(s *task.Spec, _, _ *task.StageSpec) { s.Queue = "" }},
		{"priority: ", func(s *task.Spec, _, _ *task.StageSpec) { s.Priority = -1 }},
		{"retain: ", func(s *task.Spec, _, _ *task.StageSpec) { s.Retain = 0 }},
		{"retain: ", func(s *task.Spec, _, _ *task.StageSpec) { s.Retain = math.MaxInt64 }},
		{"idempotency_window: ", func(s *task.Spec, _, _ *task.StageSpec) { s.IdempotencyWindow = -1 }},
		{"idempotency_key: ", func(s *task.Spec, _, _ *task.StageSpec) { s.IdempotencyKey = "a\nb" }},
		{"idempotency_key: ", func(s *task.Spec, _, _ *task.StageSpec) { s.IdempotencyKey = strings.Repeat("k", 256) }},
		{"description: ", func(s *task.Spec, _, _ *task.StageSpec) { s.Description = "a\xff" }},
		{"labels.: ", func(s *task.Spec, _, _ *task.StageSpec) { s.Labels[0].Name = "" }},
		{"labels.a: labels are not sorted", func(s *task.Spec, _, _ *task.StageSpec) { s.Labels = append(s.Labels, s.Labels[0]) }},
		{"stages: 0 stages", func(s *task.Spec, _, _ *task.StageSpec) { s.Stages = nil }},
		{"stages: 101 stages", func(s *task.Spec, _, _ *task.StageSpec) { s.Stages = make([]task.StageSpec, 101) }},
		{"files: ", func(s *task.Spec, _, _ *task.StageSpec) { s.Files[0].Name = "../x" }},
		{"files: ", func(s *task.Spec, _, _ *task.StageSpec) { s.Files[0].Name = "/x" }},
		{"files: ", func(s *task.Spec, _, _ *task.StageSpec) { s.Files[0].Name = `a\b` }},
		{"files: ", func(s *task.Spec, _, _ *task.StageSpec) { s.Files[0].Mode = 0o4755 }},
		{"files: files have", func(s *task.Spec, _, _ *task.StageSpec) {
			s.Files[0].Data = make([]byte, task.MaxFilesBytes+1)
		}},
		{"files: files are not sorted", func(s *task.Spec, _, _ *task.StageSpec) { s.Files = append(s.Files, s.Files[0]) }},
		{"a file and a directory", func(s *task.Spec, _, _ *task.StageSpec) { s.Files = append(s.Files, task.File{Name: "a/b.sh/c"}) }},
		{"source: ", func(s *task.Spec, _, _ *task.StageSpec) { s.Source = strings.Repeat("x", task.MaxJobFileBytes+1) }},
		{"stages[1].name: ", func(_ *task.Spec, _, b *task.StageSpec) { b.Name = "a" }},
		{"stages[0].needs[0]: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Needs = []string{"zz"} }},
		{`a cycle: a needs b needs a`, func(_ *task.Spec, a, _ *task.StageSpec) { a.Needs = []string{"b"} }},
		{"stages[0].needs: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Needs = make([]string, 101) }},
		{"stages[0].when: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.When = "" }},
		{"stages[0].when: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.When = task.WhenFailure }},
		{"stages[0].run: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Run = " \n" }},
		{"stages[0].run: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Run = "a\x00" }},
		{"stages[0].command: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Command = []string{"x"} }},
		{"stages[0].shell: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Shell = "" }},
		{"stages[1].shell: ", func(_ *task.Spec, _, b *task.StageSpec) { b.Shell = "sh" }},
		{"stages[1].command[0]: ", func(_ *task.Spec, _, b *task.StageSpec) { b.Command = []string{""} }},
		{"stages[1].command[1]: ", func(_ *task.Spec, _, b *task.StageSpec) { b.Command = []string{"a", "\x00"} }},
		{"stages[0].env.A: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Env = append(a.Env, a.Env[0]) }},
		{"stages[0].env.LANJOBS_X: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Env[0].Name = "LANJOBS_X" }},
		{"stages[0].env.A: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Env[0].Value = "\x00" }},
		{"stages[0].env_files[0]: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.EnvFiles = []string{"${X}/a"} }},
		{"stages[0].workdir: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Workdir = "~" }},
		{"stages[0].shards: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Shards = 0 }},
		{"stages[0].shards: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Shards = math.MaxInt }},
		{"stages: all stages together", func(_ *task.Spec, a, _ *task.StageSpec) { a.Shards = task.MaxShards }},
		{`stages[1].shards: stage "b": 3 shards with 2 items`, func(_ *task.Spec, _, b *task.StageSpec) { b.Shards = 3 }},
		{"stages[1].shards.items[1]: ", func(_ *task.Spec, _, b *task.StageSpec) { b.Items[1] = "\x00" }},
		{"stages[1].parallelism: ", func(_ *task.Spec, _, b *task.StageSpec) { b.Parallelism = 3 }},
		{"stages[1].parallelism: ", func(_ *task.Spec, _, b *task.StageSpec) { b.Parallelism = -1 }},
		{"stages[1].success.at_least: ", func(_ *task.Spec, _, b *task.StageSpec) { b.Success = task.Success{Count: 3} }},
		{"stages[1].success.at_least: ", func(_ *task.Spec, _, b *task.StageSpec) { b.Success = task.Success{Count: 1, Percent: 1} }},
		{"stages[1].success.at_least: ", func(_ *task.Spec, _, b *task.StageSpec) { b.Success = task.Success{Percent: 101} }},
		{"stages[0].placement.require[0]: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Require[0].Op = ">" }},
		{"stages[0].placement.require[0]: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Require[0].Values = []string{"x"} }},
		{"stages[0].timeout: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Timeout = -1 }},
		{"stages[0].lease.ttl: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Lease = task.LeaseTerms{} }},
		{"stages[0].lease.ttl: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Lease.TTL = task.MaxTTL + 1 }},
		{"stages[0].lease.heartbeat: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Lease.Heartbeat = a.Lease.TTL/3 + 1 }},
		{"stages[0].lease.heartbeat: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Lease.Heartbeat = 0 }},
		{"stages[0].stop_grace: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Lease.StopGrace = a.Lease.TTL/3 + 1 }},
		{"stages[0].stop_grace: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Lease.StopGrace = -1 }},
		{"stages[0].lease.max_renew_failures: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Lease.MaxRenewFailures = -1 }},
		{"stages[0].retry.attempts: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Retry.Attempts = 0 }},
		{"stages[0].retry.lease_losses: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Retry.LeaseLosses = 0 }},
		{"stages[0].retry.initial: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Retry.Initial = -1 }},
		{"stages[0].retry.max: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Retry.Max = a.Retry.Initial - 1 }},
		{"stages[0].retry.factor: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Retry.Factor = math.NaN() }},
		{"stages[0].retry.factor: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Retry.Factor = 0.9 }},
		{"stages[0].retry.jitter: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Retry.JitterPct = 101 }},
		{"stages[0].retry.permanent_on[1]: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Retry.PermanentOn = []int{1, 1} }},
		{"stages[0].retry.elsewhere_on[0]: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Retry.ElsewhereOn = []int{0} }},
		{"queue: queue", func(s *task.Spec, _, _ *task.StageSpec) { s.Queue = "A b" }},
		{"deadline: ", func(s *task.Spec, _, _ *task.StageSpec) { s.Deadline = -1 }},
		{"deadline: ", func(s *task.Spec, _, _ *task.StageSpec) { s.Deadline = math.MaxInt64 }},
		{"start_within: ", func(s *task.Spec, _, _ *task.StageSpec) { s.StartWithin = 1 }},
		{"idempotency_key: ", func(s *task.Spec, _, _ *task.StageSpec) { s.IdempotencyKey = "${A}" }},
		{"schedule: the schedule has no time", func(s *task.Spec, _, _ *task.StageSpec) { s.Schedule = &task.Schedule{} }},
		{"schedule.timezone: ", func(s *task.Spec, _, _ *task.StageSpec) { s.Schedule = &task.Schedule{Every: task.Hour} }},
		{"schedule.overlap: ", func(s *task.Spec, _, _ *task.StageSpec) { s.Schedule = &task.Schedule{Every: task.Hour} }},
		{"schedule.misfire: ", func(s *task.Spec, _, _ *task.StageSpec) { s.Schedule = &task.Schedule{Every: task.Hour} }},
		{"schedule.run_all_max: ", func(s *task.Spec, _, _ *task.StageSpec) { s.Schedule = &task.Schedule{Every: task.Hour} }},
		{"schedule.cron: ", func(s *task.Spec, _, _ *task.StageSpec) { s.Schedule = &task.Schedule{Cron: "\xff"} }},
		{"idempotency_key: ", func(s *task.Spec, _, _ *task.StageSpec) {
			d := schedule.Default()
			d.Every, s.Schedule, s.IdempotencyKey = task.Hour, &d, "k"
		}},
		{"stages[0].stall_timeout: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.StallTimeout = 10 }},
		{"stages[0].placement.prefer[0]: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Prefer = []task.Requirement{{}} }},
		{"stages[0].placement.prefer: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Prefer = make([]task.Requirement, 65) }},
		{"stages[0].placement.paths[0]: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Paths = []string{"/a\x00"} }},
		{"stages[0].placement.paths[1]: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Paths = []string{"/a", "/a"} }},
		{"stages[0].placement.paths: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Paths = make([]string, 65) }},
		{"stages[0].placement.programs[0]: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Programs = []string{"../x"} }},
		{"stages[0].placement.programs[0]: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Programs = []string{"/x\n"} }},
		{"stages[0].resources.cpu", func(_ *task.Spec, a, _ *task.StageSpec) { a.Resources.MilliCPU = -1 }},
		{"stages[0].resources.memory", func(_ *task.Spec, a, _ *task.StageSpec) { a.Resources.MemoryMB = math.MaxInt }},
		{"stages[0].resources.disk", func(_ *task.Spec, a, _ *task.StageSpec) { a.Resources.DiskMB = -1 }},
		{"stages[0].shards: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Broadcast = true }},
		{"stages[0].shards: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Broadcast, a.ShardsFrom, a.Shards = true, "b.x", 0 }},
		{"stages[1].shards: ", func(_ *task.Spec, _, b *task.StageSpec) { b.ShardsFrom = "a.x" }},
		{"stages[1].shards: ", func(_ *task.Spec, _, b *task.StageSpec) { b.ShardsFrom, b.Items = "a.x", nil }},
		{"stages[1].shards.from: ", func(_ *task.Spec, _, b *task.StageSpec) { b.ShardsFrom, b.Items, b.Shards = "a.", nil, 0 }},
		{"stages[0].shards.from: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.ShardsFrom, a.Shards = "b.x", 0 }},
		{"stages[1].parallelism: ", func(_ *task.Spec, _, b *task.StageSpec) {
			b.ShardsFrom, b.Items, b.Shards, b.Parallelism = "a.x", nil, 0, task.MaxShards+1
		}},
		{"stages[1].success.at_least: ", func(_ *task.Spec, _, b *task.StageSpec) {
			b.ShardsFrom, b.Items, b.Shards, b.Success = "a.x", nil, 0, task.Success{Count: task.MaxShards + 1}
		}},
		{"stages[0].shards.range: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Range = &task.RangeSpec{Size: 1} }},
		{"stages[0].shards.range: ", func(_ *task.Spec, a, _ *task.StageSpec) {
			a.Range = &task.RangeSpec{Start: math.MinInt64, End: math.MaxInt64, Size: math.MaxInt64}
		}},
		{"stages[0].shards.range: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Range = &task.RangeSpec{Start: -1, End: 9, Size: 10} }},
		{"stages[0].shards.size: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Range = &task.RangeSpec{End: 9, Size: -1} }},
		{"stages[0].shards.size: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Range = &task.RangeSpec{End: task.MaxRange, Size: 1} }},
		{"stages[0].shards: ", func(_ *task.Spec, a, _ *task.StageSpec) { a.Range = &task.RangeSpec{End: 9, Size: 3} }},
		{"stages[1].shards.weights: ", func(_ *task.Spec, _, b *task.StageSpec) { b.Weights = []int{1} }},
		{"stages[1].shards.weights[1]: ", func(_ *task.Spec, _, b *task.StageSpec) { b.Weights = []int{1, task.MaxWeight + 1} }},
		{"stages[1].shards.weights[0]: ", func(_ *task.Spec, _, b *task.StageSpec) { b.Weights = []int{-1, 1} }},
		{"stages[1].shard_key: ", func(_ *task.Spec, _, b *task.StageSpec) { b.ShardKey = "x" }},
		{"stages[1].shard_key: ", func(_ *task.Spec, _, b *task.StageSpec) { b.ShardKey = "${LANJOBS_ITEM}\x00" }},
		{"stages[1].shard_key: ", func(_ *task.Spec, _, b *task.StageSpec) { b.ShardKey = strings.Repeat("${LANJOBS_ITEM}", 20000) }},
		{"stages[1].shard_key: ", func(_ *task.Spec, _, b *task.StageSpec) { b.ShardKey = "${LANJOBS_ITEM} ${NODE}" }},
		{"stages[1].shard_key: ", func(_ *task.Spec, a, b *task.StageSpec) {
			a.ShardKey, b.ShardKey = "k${LANJOBS_SHARD}", "k${LANJOBS_SHARD}"
		}},
		{"more than 4096", func(_ *task.Spec, a, _ *task.StageSpec) {
			a.Items, a.Shards = []string{}, 50
			for range 50 {
				a.Items = append(a.Items, strings.Repeat("i", 100<<10))
			}
		}},
	} {
		spec := good(t)
		c.damage(spec, &spec.Stages[0], &spec.Stages[1])
		var got []string
		for _, f := range Check(spec, time.Time{}) {
			got = append(got, f.Path+": "+f.Message)
		}
		if all := strings.Join(got, "\n"); !strings.Contains(all, c.want) {
			t.Errorf("want %q, got:\n%s", c.want, all)
		}
	}
	if len(Check(nil, time.Time{})) != 1 || len(Check(&task.Spec{}, time.Time{})) == 0 {
		t.Error("an empty Spec is accepted")
	}
}

func TestRequirements(t *testing.T) {
	node := &task.NodeInfo{Name: "nas", OS: "linux", Arch: "arm64", Labels: []task.KV{{Name: "gpu", Value: "true"}}}
	for text, matches := range map[string]bool{"gpu=true": true, "gpu = true": true, "gpu=no": false, "os in (linux, darwin)": true, "os in (windows)": false,
		"arch!=arm": true, "arch!=arm64": false, "gpu": true, "ssd": false, "node=nas": true} {
		r, ok := ParseRequirement(text)
		if !ok || r.Match(node) != matches {
			t.Errorf("%s: %+v, read %v, matches %v", text, r, ok, r.Match(node))
		}
		if again, ok := ParseRequirement(r.String()); !ok || again.String() != r.String() {
			t.Errorf("%s: written as %s, which is read as %s", text, r, again)
		}
	}
	for _, text := range []string{"", "a b", "=x", "a==b", "a>=1", "os in linux", "os in ()", "os in (a,)", "a in (b", "!a", "a=b,c=d", "a=\x1b"} {
		if r, ok := ParseRequirement(text); ok {
			t.Errorf("%q: taken as %+v", text, r)
		}
	}
}
