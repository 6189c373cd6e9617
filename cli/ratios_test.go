//go:build bench

package cli_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestRatios prints the table of `make bench`: what lanjobs reaches, against reference loops of the same run on the same disk.
// It fails only if something cannot be measured, never for a figure.
func TestRatios(t *testing.T) {
	b := newBench(t)
	reference := b.openDisk()
	fmt.Printf("%-66s %9s %9s   %s\n", "what, on "+strconv.Itoa(runtime.NumCPU())+" processors", "reached", "to reach", "limited by")
	for _, part := range []struct {
		name string
		run  func() []figure
	}{
		{"jobs", func() []figure {
			three := b.cluster(benchSlots, true)
			defer three.stop()
			rate, cost := three.cost(20_000, func() float64 { return b.singleJobs(three, 20_000) })
			return []figure{{what: "lives of single no-op jobs per bbolt commit, one a request", rate: rate, by: "HTTP: " + cost + " of processors per job, in all nodes"}}
		}},
		{"bulk", func() []figure {
			three := b.cluster(benchSlots, true)
			defer three.stop()
			rate, cost := three.cost(60_000, func() float64 { return b.manyJobs(three, 60_000) })
			return []figure{{what: "lives of single no-op jobs per bbolt commit, 500 a request", rate: rate, want: "8", by: "processors: " + cost + " of them per job, in all nodes"}}
		}},
		{"shards", func() []figure {
			three := b.cluster(benchSlots, true)
			defer three.stop()
			rate, cost := three.cost(200_000, func() float64 { return b.shards(three, 200_000) })
			return []figure{{what: "lives of no-op shards of a sharded job per bbolt commit", rate: rate, want: "30", by: "processors: " + cost + " of them per shard, in all nodes"}}
		}},
		{"leaders", func() []figure {
			three := b.cluster(benchSlots, true)
			defer three.stop()
			grant, hand := b.failovers(three, 10)
			return []figure{
				{what: "next grant after SIGKILL of the leader, median of 10", reached: ms(grant), want: "1500 ms", by: "election time-out 500 ms, twice"},
				{what: "planned hand-over of leadership, to the next grant", reached: ms(hand), want: "100 ms", by: "workers' next polls"},
			}
		}},
		{"idle", func() []figure {
			real := b.cluster(runtime.NumCPU(), false)
			defer real.stop()
			line, commit := b.firstLine(real, reference, 20)
			cpu, mem, wrote := b.idle(real, 20*time.Second)
			return []figure{
				{what: "submit to first line of the task, idle cluster, in commits at rest", reached: ratio(line.Seconds() / commit.Seconds()), want: "20",
					by: fmt.Sprintf("%.1f ms in all: two commits, a process", line.Seconds()*1000)},
				{what: "the same in commits that follow each other", took: line, want: "20", by: "processors and a disk that wake up"},
				{what: "idle three-node cluster: log entries in 20 s", reached: strconv.Itoa(wrote), want: "0"},
				{what: "idle three-node cluster: leader's share of a processor", reached: fmt.Sprintf("%.1f %%", cpu*100), want: "4 %", by: "heartbeats and pings"},
				{what: "idle three-node cluster: leader's memory", reached: fmt.Sprintf("%d MB", mem), want: "40 MB"},
			}
		}},
		{"skew", func() []figure {
			real := b.cluster(4, false)
			defer real.stop()
			plain, split := b.skewed(real, false), b.skewed(real, true)
			return []figure{{what: "a skewed range on three nodes: time without splitting, over with", reached: ratio(plain.Seconds() / split.Seconds()), want: "1.7", by: "half of the rest at each split"}}
		}},
		{"commands", func() []figure {
			one := b.alone()
			defer one.stop()
			return []figure{{what: "real commands on one node, against fork-exec-wait", reached: fmt.Sprintf("%.0f %%", 100*b.commands(one, 2000)/b.bareExecs()), want: "50 %", by: "guard, logs, records of each attempt"}}
		}},
	} {
		if only := os.Getenv("LANJOBS_BENCH"); only != "" && !strings.Contains(only, part.name) {
			continue
		}
		var figures []figure
		commits := reference.beside(func() { figures = part.run() })
		for _, f := range figures {
			f.print(commits)
		}
	}
}

// figure is a row of the table. One of reached, rate and took is set; the last two are told in bare commits of the same minutes.
type figure struct {
	what, reached, want, by string
	rate                    float64 // a second
	took                    time.Duration
}

func (f figure) print(commits float64) {
	beside := fmt.Sprintf("; %.0f commits/s", commits)
	switch {
	case f.rate > 0:
		f.reached, f.by = ratio(f.rate/commits), f.by+beside
	case f.took > 0:
		f.reached, f.by = ratio(f.took.Seconds()*commits), f.by+beside
	}
	fmt.Printf("%-66s %9s %9s   %s\n", f.what, f.reached, f.want, f.by)
}

func ratio(v float64) string    { return fmt.Sprintf("%.1f", v) }
func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
