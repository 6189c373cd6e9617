//go:build bench

package cli_test

import (
	"fmt"
	"lanjobs/task"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// failovers kills the leader while shards are granted all the time, and measures until the next ones are done; then once
// more with a planned end.
func (b *bench) failovers(c *benchCluster, rounds int) (killed, planned time.Duration) {
	id := b.submit(c.leader(), "long", b.spec("name: long\ncommand: [x]\nshards: 1000000\nparallelism: 2\n"))
	gap := func(s syscall.Signal) time.Duration {
		l := c.leader()
		others := slices.DeleteFunc(slices.Clone(c.nodes), func(n *benchNode) bool { return n == l })
		before := b.job(l, id).Shards.Succeeded
		start := time.Now()
		_ = l.cmd.Process.Signal(s)
		b.until("the next grant", 30*time.Second, func() bool {
			for _, n := range others {
				v, err := n.status()
				if err == nil && v.Leader != "" && v.Leader == v.Self && b.job(n, id).Shards.Succeeded > before+4 {
					return true
				}
			}
			return false
		})
		took := time.Since(start)
		_ = l.cmd.Wait()
		l.start()
		b.until("three voters again", time.Minute, func() bool { c.clear(); return c.healthy() })
		return took
	}
	var kills, hands []time.Duration
	for range rounds {
		kills = append(kills, gap(syscall.SIGKILL))
	}
	for range 5 {
		hands = append(hands, gap(syscall.SIGTERM))
	}
	return median(kills), median(hands)
}

// firstLine is the median time from submit until the task has written its first line, of a cluster that rests in between, and
// that of a bare commit after as long a rest.
func (b *bench) firstLine(c *benchCluster, d *disk, rounds int) (line, commit time.Duration) {
	fifo := filepath.Join(b.dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		b.t.Fatal(err)
	}
	spec := b.spec(fmt.Sprintf("name: first\nrun: echo line > %s\n", fifo))
	timed := func(f func()) time.Duration {
		time.Sleep(500 * time.Millisecond)
		start := time.Now()
		f()
		return time.Since(start)
	}
	var lines, commits []time.Duration
	for i := range rounds {
		n := c.leader()
		var id task.JobID
		lines = append(lines, timed(func() {
			id = b.submit(n, fmt.Sprintf("first-%d", i), spec)
			if _, err := os.ReadFile(fifo); err != nil {
				b.t.Fatal(err)
			}
		}))
		b.until("its end", time.Minute, func() bool { return b.job(n, id).State.Final() })
		commits = append(commits, timed(d.commit))
	}
	return median(lines), median(commits)
}

// idle is what a cluster with nothing to do costs.
func (b *bench) idle(c *benchCluster, d time.Duration) (cpu float64, memMB, entries int) {
	l := c.leader()
	b.until("quiet", 2*time.Minute, func() bool { // the last renewals and presences
		v, err := l.status()
		time.Sleep(3 * time.Second)
		w, err2 := l.status()
		return err == nil && err2 == nil && v.Index == w.Index
	})
	before, _ := l.status()
	used := cpuTime(l.cmd.Process.Pid)
	time.Sleep(d)
	after, _ := l.status()
	return (cpuTime(l.cmd.Process.Pid) - used).Seconds() / d.Seconds(), rss(l.cmd.Process.Pid), int(after.Index - before.Index)
}

// commands is real commands a second on one node.
func (b *bench) commands(c *benchCluster, n int) float64 {
	node := c.nodes[0]
	start := time.Now()
	id := b.submit(node, "real", b.spec(fmt.Sprintf("name: real\ncommand: [/bin/true]\nshards: %d\n", n)))
	b.until("all commands done", 5*time.Minute, func() bool { return b.job(node, id).State.Final() })
	return float64(n) / time.Since(start).Seconds()
}

// cost measures f, and how much processor time of the nodes each of its n lives took.
func (c *benchCluster) cost(n int, f func() float64) (rate float64, perLife string) {
	used := func() (all time.Duration) {
		for _, n := range c.nodes {
			all += cpuTime(n.cmd.Process.Pid)
		}
		return all
	}
	before := used()
	rate = f()
	return rate, fmt.Sprintf("%d µs", ((used() - before) / time.Duration(n)).Microseconds())
}

// skewed is how long a range takes of which the first piece has nearly all of the work: steps of half a second, which cost no
// processor. Only with cursors it can be split.
func (b *bench) skewed(c *benchCluster, split bool) time.Duration {
	say := `r=$("$CLI" task range); at=${r% *}; end=${r#* }`
	step := "at=$((at + 1))"
	if split {
		step += `; r=$("$CLI" task range --cursor "$at"); end=${r#* }`
	}
	name := fmt.Sprintf("skew-%v", split)
	spec := b.spec(fmt.Sprintf("name: %s\nshards: {range: 0-79, size: 40}\nenv: {CLI: %q}\nrun: |\n  %s\n  while [ $at -lt $end ]; do [ $at -ge 40 ] || sleep 0.5; %s; done\n",
		name, b.exe, say, step))
	start := time.Now()
	id := b.submit(c.leader(), name, spec)
	b.until("the skewed job", 5*time.Minute, func() bool { return b.job(c.leader(), id).State.Final() })
	if st := b.job(c.leader(), id).State; st != task.JobSucceeded {
		b.t.Fatalf("the skewed job is %s", st)
	}
	return time.Since(start)
}
