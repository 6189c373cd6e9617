package fsm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"lanjobs/task"
)

// Targets, on a machine of two cores: at most 250 bytes of memory a shard, 5 ms of pause for a snapshot and 3 s to restart
// with a million shards in one job.
const million = 1_000_000

// bigJob is a state with a million shards in one job, done as said.
func bigJob(b *testing.B, done int) *State {
	s := New()
	st := stage("main", million)
	spec, err := json.Marshal(task.Spec{Name: "big", Retain: task.Day, Stages: []task.StageSpec{st}})
	if err != nil {
		b.Fatal(err)
	}
	n := node("a", 1)
	n.Info.Slots = task.MaxSlots
	s.ApplyBatch(1, &Batch{Commands: []Command{n, &SubmitJob{Job: "j1", Spec: spec}}})
	shards := make([]int, task.MaxSlots)
	for from := 0; from < done; from += len(shards) {
		shards = shards[:min(len(shards), done-from)]
		for i := range shards {
			shards[i] = from + i
		}
		r, _ := s.ApplyBatch(2, &Batch{Elapsed: 20, Commands: []Command{&Grant{Node: "a", Incarnation: 1, Job: "j1", Shards: shards}}})
		report := &Report{Node: "a"}
		for i, t := range r[0].Tokens {
			report.Reports = append(report.Reports, task.Report{Job: "j1", Shard: shards[i], Token: t, Outcome: task.Outcome{End: task.EndExited}})
		}
		s.ApplyBatch(3, &Batch{Elapsed: 20, Commands: []Command{&Renew{Node: "a", Incarnation: 1, Tokens: r[0].Tokens}, report}})
	}
	return s
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkMillionShards measures the memory of a job, the pause and the first writes of a snapshot, its size, and a restart.
func BenchmarkMillionShards(b *testing.B) {
	for _, c := range []struct {
		name string
		done int
	}{{"pending", 0}, {"done", million - 5000}} {
		b.Run(c.name, func(b *testing.B) {
			before := heapBytes()
			s := bigJob(b, c.done)
			memory := float64(heapBytes()-before) / million
			var snap *Snapshot
			var pause, touch time.Duration
			var buf bytes.Buffer
			for b.Loop() {
				start := time.Now()
				snap = s.Snapshot()
				pause += time.Since(start)
				start = time.Now()
				s.ApplyBatch(4, &Batch{Commands: []Command{grant("j1", 0, million-1)}})
				if t := s.Job("j1").Shard(0, million-1).Token; t != 0 {
					s.ApplyBatch(5, &Batch{Commands: []Command{&Report{Node: "a", Reports: []task.Report{{Job: "j1", Shard: million - 1, Token: t, Outcome: task.Outcome{End: task.EndShutdown}}}}}})
				}
				touch += time.Since(start)
			}
			b.ReportMetric(memory, "B/shard")
			b.ReportMetric(float64(pause.Microseconds())/float64(b.N), "µs-pause")
			b.ReportMetric(float64(touch.Microseconds())/float64(b.N), "µs-first-write")
			start := time.Now()
			if err := snap.Write(&buf); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms-write")
			b.ReportMetric(float64(buf.Len())/million, "B/shard-disk")
			start = time.Now()
			if _, err := Read(bytes.NewReader(buf.Bytes())); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms-restart")
		})
	}
}

// BenchmarkJobs measures a hundred thousand small jobs of one spec, all done: what a submit costs, the memory and the restart.
func BenchmarkJobs(b *testing.B) {
	const jobs = 100_000
	one := submit("x", stage("main", 1))
	for b.Loop() {
		before := heapBytes()
		s := New()
		start := time.Now()
		for i := range jobs {
			c := &SubmitJob{RequestID: task.RequestID(fmt.Sprint("r", i)), Job: task.JobID(fmt.Sprint("j", i)), Spec: one.Spec, Digest: one.Digest}
			s.ApplyBatch(uint64(i), &Batch{Commands: []Command{c}})
		}
		b.ReportMetric(float64(time.Since(start).Nanoseconds())/jobs, "ns/submit")
		s.ApplyBatch(1, &Batch{Commands: []Command{node("a", 1)}})
		for i := range jobs {
			id := fmt.Sprint("j", i)
			r, _ := s.ApplyBatch(1, &Batch{Elapsed: 1, Commands: []Command{grant(id, 0, 0)}})
			s.ApplyBatch(1, &Batch{Commands: []Command{exit(id, 0, 0, r[0].Tokens[0], 0)}})
		}
		b.ReportMetric(float64(heapBytes()-before)/jobs, "B/job")
		start = time.Now()
		snap := s.Snapshot()
		b.ReportMetric(float64(time.Since(start).Microseconds()), "µs-pause")
		var buf bytes.Buffer
		if err := snap.Write(&buf); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(buf.Len())/jobs, "B/job-disk")
		start = time.Now()
		if _, err := Read(bytes.NewReader(buf.Bytes())); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms-restart")
	}
}

// BenchmarkRestart reads a snapshot of a million done shards.
func BenchmarkRestart(b *testing.B) {
	var buf bytes.Buffer
	if err := bigJob(b, million-5000).Snapshot().Write(&buf); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Decode(buf.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDigest is what an alarm for replicas that part would cost.
func BenchmarkDigest(b *testing.B) {
	s := bigJob(b, million/10)
	for b.Loop() {
		s.Digest()
	}
}

func BenchmarkWrite(b *testing.B) {
	s := bigJob(b, million/10)
	for b.Loop() {
		if err := s.Snapshot().Write(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkApply is an entry with one command, decoded and applied, in a state where shards of a large job run on one node.
func BenchmarkApply(b *testing.B) {
	const running = 1000
	setup := func() (*State, []task.Token) {
		s := New()
		n := node("a", 1)
		n.Info.Slots = task.MaxSlots
		s.ApplyBatch(1, &Batch{Commands: []Command{n, submit("j1", stage("main", 100_000))}})
		shards := make([]int, running)
		for i := range shards {
			shards[i] = i
		}
		r, _ := s.ApplyBatch(2, &Batch{Commands: []Command{&Grant{Node: "a", Incarnation: 1, Job: "j1", Shards: shards}}})
		return s, r[0].Tokens
	}
	for _, c := range []struct {
		name string
		make func(i int, toks []task.Token) []Command
	}{
		{"Renew", func(i int, toks []task.Token) []Command {
			return []Command{&Renew{Node: "a", Incarnation: 1, Tokens: toks[i%running : i%running+1]}}
		}},
		{"Renew64", func(i int, toks []task.Token) []Command {
			return []Command{&Renew{Node: "a", Incarnation: 1, Tokens: toks[i%900 : i%900+64]}}
		}},
		{"Checkpoint100B", func(i int, toks []task.Token) []Command {
			return []Command{&Checkpoint{Ref: task.ShardRef{Job: "j1", Shard: i % running}, Token: toks[i%running], Seq: uint64(i + 1), Data: make([]byte, 100)}}
		}},
		{"PutOutput", func(i int, toks []task.Token) []Command {
			return []Command{&PutOutput{Ref: task.ShardRef{Job: "j1", Shard: i % running}, Token: toks[i%running], Output: task.KV{Name: "n", Value: fmt.Sprint(i)}, RequestID: task.RequestID(fmt.Sprint(i))}}
		}},
		{"PutState", func(i int, toks []task.Token) []Command {
			return []Command{&PutState{Ref: task.ShardRef{Job: "j1", Shard: i % running}, Token: toks[i%running], Key: fmt.Sprint("k", i%100), Value: []byte("v"), RequestID: task.RequestID(fmt.Sprint(i))}}
		}},
		{"GrantAndReport", func(i int, toks []task.Token) []Command {
			k := running + i%(100_000-running)
			return []Command{&Grant{Node: "a", Incarnation: 1, Job: "j1", Shards: []int{k}},
				&Report{Node: "a", Reports: []task.Report{{Job: "j1", Shard: k, Token: toks[running-1] + task.Token(i+1), Outcome: task.Outcome{End: task.EndDrained}}}}}
		}},
		{"Expire", func(_ int, toks []task.Token) []Command { return []Command{&Expire{Tokens: toks[:1]}} }},
		{"SetOnline", func(i int, _ []task.Token) []Command { return []Command{&SetOnline{Node: "a", Online: i%2 == 0}} }},
		{"RegisterNode", func(i int, toks []task.Token) []Command {
			n := node("a", 1, toks[:64]...)
			n.Info.Slots = task.MaxSlots
			return []Command{n}
		}},
		{"SubmitAndCancel", func(i int, _ []task.Token) []Command {
			id := fmt.Sprint("x", i)
			return []Command{submit(id, stage("main", 1)), &CancelJob{Job: task.JobID(id)}}
		}},
		{"StaleToken", func(i int, _ []task.Token) []Command {
			return []Command{&Checkpoint{Ref: task.ShardRef{Job: "j1"}, Token: 1 << 50, Seq: 1}}
		}},
		{"Tick", func(int, []task.Token) []Command { return nil }},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, toks := setup()
			entries := make([][]byte, 0, 1<<16)
			index := uint64(10)
			b.ReportAllocs()
			for b.Loop() {
				if int(index-10) == len(entries) {
					b.StopTimer()
					for range 1 << 10 {
						entries = append(entries, (&Batch{Wall: 1, Commands: c.make(len(entries), toks)}).Encode())
					}
					b.StartTimer()
				}
				if _, _, err := s.Apply(index, entries[index-10]); err != nil {
					b.Fatal(err)
				}
				index++
			}
		})
	}
}
