package cli

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with testdata/golden/NAME.
func golden(t *testing.T, name, have string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(have), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, old := strings.Split(have, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(old)) {
		if i >= len(got) || i >= len(old) || got[i] != old[i] {
			t.Fatalf("%s differs from line %d on (go test -update writes it anew)\n--- have\n%s\n--- want\n%s", file, i+1,
				strings.Join(got[i:min(i+8, len(got))], "\n"), strings.Join(old[i:min(i+8, len(old))], "\n"))
		}
	}
}

func ptr[T any](v T) *T { return &v }

// home is the cluster of the manual's pictures.
func home(b *bench) {
	b.w.clock = stillClock{}
	at := func(ago time.Duration) time.Time { return b.w.clock.Wall().Add(-ago).UTC() }
	b.api.view.Name, b.api.view.Sentence = "home", "3 voters: survives 1 failure"
	b.api.view.Health, b.api.view.Term, b.api.view.Voters, b.api.view.Survives = "healthy", 7, 3, 1
	b.api.view.Nodes = []task.NodeView{
		{ID: "n1", Name: "mini-1", Role: "leader", State: "ready", OS: "darwin", Arch: "arm64", CPUs: 8, Slots: 8, Version: "1.4.0", Running: 3,
			Load: &task.Load{CPU: 2.1}, SeenSeconds: ptr(1.0), Labels: []task.KV{{Name: "ssd", Value: "true"}}, Addresses: []string{"192.168.1.5:7420"}},
		{ID: "n2", Name: "mini-2", Role: "voter", State: "silent", OS: "darwin", Arch: "arm64", CPUs: 8, Slots: 8, Version: "1.4.0",
			Load: &task.Load{CPU: 1}, SeenSeconds: ptr(240.0), Note: "asleep since 12:01?", Since: ptr(at(4 * time.Minute))},
		{ID: "n3", Name: "nas", Role: "voter", State: "ready", OS: "linux", Arch: "amd64", CPUs: 4, Slots: 4, Version: "1.4.0", Running: 2,
			Rules: task.RulesView{RefuseQueues: []string{"gpu", "video"}, RunAs: "tasks", AllowUsers: []string{"anna"}, Inhibit: "never", ReservePercent: 50},
			Load:  &task.Load{CPU: 0.7}, SeenSeconds: ptr(2.0)},
		{ID: "n4", Name: "pc-win", Role: "worker", State: "draining", OS: "windows", Arch: "amd64", CPUs: 16, Slots: 16, Version: "1.4.0", Running: 1,
			Load: &task.Load{CPU: 0.1}, SeenSeconds: ptr(3.0), Labels: []task.KV{{Name: "gpu", Value: "true"}}},
	}
	b.api.jobs = []*fakeJob{
		{view: task.JobView{ID: "j7jw01", Name: "nightly-backup", State: task.JobPending, Queue: "default", Priority: 50, Submitted: at(12 * time.Second), AgeSeconds: 12,
			Shards: task.Counts{Total: 1, Pending: 1}, Note: "no machine: node=nas is full (2/2)",
			Stages: []task.StageView{{Name: "main", State: "open", Shards: task.Counts{Total: 1, Pending: 1}}}}, logs: map[string]string{}, running: map[string]bool{}},
		{view: task.JobView{ID: "j7k2xz", Name: "score", State: task.JobFailed, Queue: "default", Priority: 50, Submitted: at(time.Hour), AgeSeconds: 3700, By: "anna",
			Started: ptr(at(time.Hour)), Ended: ptr(at(10 * time.Minute)), Key: "score-2026-11", Labels: []task.KV{{Name: "team", Value: "a"}},
			Shards: task.Counts{Total: 100, Succeeded: 97, Failed: 3},
			Stages: []task.StageView{{Name: "main", State: "failed", Shards: task.Counts{Total: 100, Succeeded: 97, Failed: 3}}}}, logs: map[string]string{}, running: map[string]bool{}},
		{view: task.JobView{ID: "j7k3q9", Name: "transcode", State: task.JobRunning, Queue: "video", Priority: 60, Submitted: at(252 * time.Second), AgeSeconds: 252,
			Started: ptr(at(250 * time.Second)), Shards: task.Counts{Total: 26, Succeeded: 15, Running: 6, Pending: 4, Backoff: 1, Waiting: 1},
			Stages: []task.StageView{
				{Name: "init", State: "succeeded", Shards: task.Counts{Total: 1, Succeeded: 1}},
				{Name: "segments", State: "open", Needs: []string{"init"}, Parallelism: 6, Shards: task.Counts{Total: 24, Succeeded: 14, Running: 6, Pending: 4, Backoff: 1}},
				{Name: "merge", State: "waiting", Needs: []string{"segments"}, Shards: task.Counts{Total: 1, Waiting: 1}}}}, logs: map[string]string{}, running: map[string]bool{}},
	}
	video := b.api.jobs[2]
	for i := range 24 {
		s := task.ShardView{Stage: "segments", Shard: i, State: "succeeded", Attempts: 5, Attempt: 1, NodeName: []string{"nas", "mini-1"}[i%2]}
		switch {
		case i == 9:
			s.State, s.NodeName, s.Attempt, s.LeaseSeconds, s.CheckpointSeq, s.CheckpointAge, s.Progress = "running", "nas", 2, ptr(281.0), 3, ptr(8.0), "30%"
			s.Token, s.Execution = 18231, "xe2f"
		case i == 13:
			s.State, s.Failures, s.NodeName, s.CheckpointSeq, s.RetrySeconds, s.Last = "backoff", 2, "", 1, ptr(18.0), "exit 1 on pc-win"
		case i > 19:
			s.State, s.NodeName, s.Attempt, s.Why = "pending", "", 0, "parallelism 6 reached"
		}
		video.shards = append(video.shards, s)
	}
	video.shards[9].History = []task.AttemptView{
		{Stage: "segments", Shard: 9, Attempt: 1, NodeName: "mini-2", Token: 18200, Execution: "xe1k", State: "lease_expired", Seconds: 301, Reason: "lease ended unrenewed"},
		{Stage: "segments", Shard: 9, Attempt: 2, NodeName: "nas", Token: 18231, Execution: "xe2f", State: "running", Seconds: 19}}
	video.shards[13].History = []task.AttemptView{{Stage: "segments", Shard: 13, Attempt: 1, NodeName: "pc-win", Token: 18205, Execution: "xe1p", State: "failed",
		Counted: true, Seconds: 3, ExitCode: ptr(1), Reason: "exit 1", Tail: "frame 12\nout of range\x1b[31m\n"}}
	b.api.why = []transport.WhyView{{Stage: "main", Shards: "0", Node: "nas", Why: "is full (2/2)", Fix: "wait, or serve --slots"},
		{Stage: "main", Shards: "0", Node: "pc-win", Why: "node=nas does not hold", Fix: "another placement.require"}}
	b.api.tokens = []transport.TokenView{{ID: "t1", LeftSeconds: 1800, UsesLeft: 1, By: "anna"}, {ID: "t2", LeftSeconds: 90, UsesLeft: 3, Worker: true}}
	wall := func(ago time.Duration) int64 { return at(ago).UnixMilli() }
	b.api.events = []task.Event{
		{Index: 18201, Wall: wall(26 * time.Hour), Kind: task.EventLeaderElected, Node: "n1", NodeName: "mini-1"},
		{Index: 18202, Wall: wall(300 * time.Second), Kind: task.EventLeaseGrant, Job: "j7k3q9", JobName: "transcode", Stage: "segments", Shards: "0-5", Token: 18231, LastToken: 18236, NodeName: "nas", TTL: 30000},
		{Index: 18203, Wall: wall(100 * time.Second), Kind: task.EventLeaseRenew, Job: "j7k3q9", JobName: "transcode", Stage: "segments", Shards: "9", Attempt: 1, Token: 18200, Execution: "xe1k", NodeName: "mini-2", TTL: 300000},
		{Index: 18204, Wall: wall(20 * time.Second), Kind: task.EventLeaseExpire, Job: "j7k3q9", JobName: "transcode", Stage: "segments", Shards: "9", Attempt: 1, Token: 18200, Execution: "xe1k", NodeName: "mini-2", Reason: "lease ended unrenewed"},
		{Index: 18204, N: 1, Wall: wall(20 * time.Second), Kind: task.EventJobState, Job: "j7k2xz", JobName: "score", From: "running", To: "failed", By: "anna"},
	}
}

// withCalendar are the pictures with schedules, queues and dead letters.
var withCalendar = map[string]bool{"schedule.txt": true, "queue.txt": true, "dead.txt": true, "acts.txt": true}

// TestGolden keeps what a person and a program see. The command stands above each output.
func TestGolden(t *testing.T) {
	for file, commands := range map[string][]string{
		"status.txt": {"status", "status -o wide", "status -l os!=windows", "status -o name"},
		"ls.txt":     {"ls", "ls -o wide", "ls -o name", "ls -l team=a", "ls --state cancelled"},
		"show.txt": {"show transcode", "show j7k2xz", "show nightly-backup", "show transcode --shards", "show transcode/segments/9,13 --attempts",
			"show transcode --attempts -o name", "show nightly-backup --why"},
		"node.txt":  {"node ls", "node ls -o wide", "node ls -l gpu=true -o name", "node show nas", "node drain nas --deadline 1h", "node resume nas", "node wake mini-2", "node wake nas -o json", "node label nas a=1 b-", "node drain --self"},
		"token.txt": {"token ls", "token create", "token create -q"},
		"schedule.txt": {"schedule ls", "schedule ls -o wide -l team=a", "schedule ls -o name", "schedule show nightly-backup", "schedule show once", "schedule show weekly-report -o yaml",
			"schedule pause nightly-backup", "schedule resume nightly-backup once", "schedule trigger nightly-backup", "schedule trigger nightly-backup -o json --wait",
			"schedule rm once", "schedule rm nightly-backup weekly-report", "schedule rm nightly-backup weekly-report -y", "schedule ls"},
		"queue.txt": {"queue ls", "queue ls -o wide", "queue ls -o name", "queue show video", "queue show default -o json", "queue set video --max 8", "queue set video --max 0 --balance modulo",
			"queue set fresh --max 1", "queue pause video low", "queue resume low -o json", "queue rm fresh", "queue rm nonsense"},
		"dead.txt":     {"ls --dead", "ls --dead -o name", "ls --dead -o json", "show score --dead", "show transcode --dead"},
		"acts.txt":     {"pause score transcode", "resume score", "pause score -o json", "priority transcode 90", "show score", "show transcode", "show transcode --shards", "show transcode --shards -o wide"},
		"simulate.txt": {"simulate"},
		"events.txt":   {"events", "events --audit", "events --kind lease.renew", "events -o json", "events -o yaml --kind leader.elected"},
		"json.txt":     {"status -o json", "ls -o json -l team=a", "show transcode/segments/9 -o json", "node show nas -o yaml", "ls -o yaml -l team=a", "token ls -o json", "version -o json"},
	} {
		b := newBench(t)
		home(b)
		if withCalendar[file] {
			calendar(b)
		}
		var all strings.Builder
		for _, line := range commands {
			code := b.run(strings.Fields(line)...)
			text := b.out.String()
			if line == "version -o json" {
				text = "…\n"
			}
			all.WriteString("$ lanjobs " + line + "\n" + text)
			if s := b.err.String(); s != "" {
				all.WriteString("stderr: " + strings.ReplaceAll(s, "\n", "\nstderr: ") + "\n")
			}
			if code != 0 {
				all.WriteString("exit " + itoa(code) + "\n")
			}
			all.WriteString("\n")
		}
		golden(t, file, all.String())
	}
}

// TestGoldenHelp keeps the help of every command.
func TestGoldenHelp(t *testing.T) {
	b := newBench(t)
	var all strings.Builder
	b.expect(exitDone)
	all.WriteString("$ lanjobs\n" + b.out.String() + "\n")
	all2 := leaves(tree(), nil)
	for _, path := range slices.Sorted(maps.Keys(all2)) {
		if all2[path].hidden {
			continue
		}
		b.expect(exitDone, append(strings.Fields(path), "--help")...)
		all.WriteString("$ lanjobs " + path + " --help\n" + b.out.String() + "\n")
	}
	golden(t, "help.txt", all.String())
	for _, name := range topicNames() {
		b.expect(exitDone, "help", name)
		if len(b.out.String()) < 200 {
			t.Errorf("help %s says little: %s", name, b.out)
		}
	}
	for _, line := range strings.Split(all.String(), "\n") {
		if len([]rune(line)) > 160 {
			t.Errorf("a line of help is %d wide: %s", len([]rune(line)), line)
		}
	}
}
