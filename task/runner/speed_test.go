//go:build linux

package runner

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
)

// BenchmarkAttempts runs short commands with logs, guard and endpoint, some at a time; BenchmarkBareFork is what the machine does
// without any of it. The first should reach half of the second.
func BenchmarkAttempts(b *testing.B) {
	for _, spec := range []struct {
		name string
		spec *task.Spec
	}{{"true", command("/bin/true")}, {"sh", script("echo hi")}} {
		for _, groups := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/cgroups=%t", spec.name, groups), func(b *testing.B) {
				h := newBench(b, func(c *Config) { c.NoCgroups = !groups })
				h.run(spec.spec) // the guard's own start is not meant
				slots := make(chan struct{}, 16)
				h.onExit = func(e Exit) {
					if e.Outcome.ExitCode != 0 {
						b.Errorf("%+v", e.Outcome)
					}
					h.r.Forget(e.Assignment.Execution())
					<-slots
				}
				before := usage()
				b.ResetTimer()
				for b.Loop() {
					slots <- struct{}{}
					h.start(spec.spec, far())
				}
				for range cap(slots) {
					slots <- struct{}{}
				}
				b.StopTimer()
				for range cap(slots) {
					<-slots
				}
				h.onExit = nil
				b.ReportMetric(float64((usage()-before).Microseconds())/float64(b.N), "agent-µs/op")
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "attempts/s")
			})
		}
	}
}

func usage() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkBareFork(b *testing.B) {
	for name, args := range map[string][]string{"true": {"/bin/true"}, "sh": {"/bin/sh", "-e", "-c", "echo hi"}} {
		b.Run(name, func(b *testing.B) {
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer null.Close()
			fd := null.Fd()
			slots := make(chan struct{}, 16)
			var all sync.WaitGroup
			for b.Loop() {
				slots <- struct{}{}
				all.Go(func() {
					pid, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{fd, fd, fd}})
					if err != nil {
						b.Error(err)
						return
					}
					var ws syscall.WaitStatus
					_, _ = syscall.Wait4(pid, &ws, 0, nil)
					<-slots
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "attempts/s")
		})
	}
}
