package fsm

import (
	"fmt"
	"testing"
	"time"

	"lanjobs/task"
)

// BenchmarkSchedules measures ten thousand schedules: to make, to fire each once, and to list.
func BenchmarkSchedules(b *testing.B) {
	one := make([]*SubmitJob, task.MaxSchedules)
	for i := range one {
		one[i] = scheduled(fmt.Sprintf("s%05d", (i*7919)%len(one)), task.OverlapAllow, stage("main", 1))
	}
	for b.Loop() {
		before := heapBytes()
		s := New()
		per := func(what string, f func(i int) Command) {
			start := time.Now()
			for i := range one {
				if r, _ := s.ApplyBatch(uint64(i), &Batch{Commands: []Command{f(i)}}); r[0].Err != nil {
					b.Fatal(r[0].Err)
				}
			}
			b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(len(one)), "ns/"+what)
		}
		per("make", func(i int) Command { return one[i] })
		b.ReportMetric(float64(heapBytes()-before)/float64(len(one)), "B/schedule")
		per("fire", func(i int) Command { return due(s.schedules[i].Name, 9) })
		start := time.Now()
		s.Snapshot()
		b.ReportMetric(float64(time.Since(start).Microseconds()), "µs-pause")
	}
}

// BenchmarkQueue measures a hundred thousand jobs that wait in one queue: to submit, to look for the next to grant, to grant
// from, to give another priority, and to cancel.
func BenchmarkQueue(b *testing.B) {
	const jobs = 100_000
	one := inQueue("q", "x", stage("main", 1))
	for b.Loop() {
		s := New()
		s.ApplyBatch(1, &Batch{Commands: []Command{node("a", 1), &SetQueue{Name: "q", Max: new(2)}}})
		per := func(what string, n int, f func(i int) Command) {
			start := time.Now()
			for i := range n {
				if r, _ := s.ApplyBatch(uint64(i), &Batch{Elapsed: 1, Commands: []Command{f(i)}}); r[0].Err != nil {
					b.Fatal(r[0].Err)
				}
			}
			b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(n), "ns/"+what)
		}
		id := func(i int) task.JobID { return task.JobID(fmt.Sprint("j", i)) }
		per("submit", jobs, func(i int) Command {
			return &SubmitJob{RequestID: task.RequestID(fmt.Sprint("r", i)), Job: id(i), Spec: one.Spec, Digest: one.Digest}
		})
		start := time.Now()
		for range 1000 {
			s.EachReady(func(*Job) Next { return NextNone })
		}
		b.ReportMetric(float64(time.Since(start).Nanoseconds())/1000, "ns/next")
		per("grant", 2, func(i int) Command { return &Grant{Node: "a", Incarnation: 1, Job: id(i), Shards: []int{0}} })
		per("priority", 1000, func(i int) Command { return &SetJob{Job: id(jobs - 1 - i), Action: JobPriority, Priority: 90} })
		per("cancel", jobs, func(i int) Command { return &CancelJob{Job: id((i * 7919) % jobs)} })
	}
}
