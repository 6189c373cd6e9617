package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lanjobs/task"
)

// timeline writes what happens: one line for each thing, the tick before the first of it.
type timeline struct {
	Scenario
	text strings.Builder
}

func (tl *timeline) String() string { return tl.text.String() }

func (tl *timeline) line(t int, first *bool, format string, args ...any) {
	at := ""
	if *first {
		at, *first = "t="+strconv.Itoa(t), false
	}
	fmt.Fprintf(&tl.text, "%-6s%s\n", at, fmt.Sprintf(format, args...))
}

// tick writes what has happened in a tick. Ticks in which machines do no more than renew are left out.
func (tl *timeline) tick(t int, r *run) {
	if t == 0 {
		fmt.Fprintf(&tl.text, "%s: %s on %s, %s, ttl %d, heartbeat %d, window from %d\n\n", tl.Name, shards(tl.Shards), strings.Join(tl.Workers, " "),
			tl.Balance, tl.TTL, tl.Heartbeat, tl.Window)
	}
	first := true
	for _, w := range tl.Workers {
		if slices.Contains(tl.Lost[w], t) {
			tl.line(t, &first, "%s is lost", w)
		}
		if slices.Contains(tl.Back[w], t) {
			tl.line(t, &first, "%s is back", w)
		}
	}
	expired, done, granted := map[string][]string{}, map[string][]string{}, map[string][]string{}
	skipped := map[task.JobID]int{}
	for _, e := range r.events {
		switch e.Kind {
		case task.EventLeaseExpire:
			expired[e.NodeName] = append(expired[e.NodeName], e.Shards)
		case task.EventShardSkip:
			skipped[e.Job] += len(numbers([]string{e.Shards}))
		case task.EventLeaseRelease:
			done[e.NodeName] = append(done[e.NodeName], e.Shards)
		case task.EventLeaseGrant:
			granted[e.NodeName] = append(granted[e.NodeName], e.Shards)
		}
	}
	for _, w := range tl.Workers {
		if len(done[w]) > 0 {
			tl.line(t, &first, "%s has done %s", w, ranges(done[w]))
		}
	}
	for _, w := range tl.Workers {
		if len(expired[w]) > 0 {
			tl.line(t, &first, "the leases of %s end: %s", w, ranges(expired[w]))
		}
	}
	for _, e := range r.events {
		switch {
		case e.Kind == task.EventNodeOffline:
			tl.line(t, &first, "%s is silent", e.NodeName)
		case e.Kind == task.EventJobSubmit:
			tl.line(t, &first, "triggered: %s", e.Job)
			if n := skipped[e.Job]; n > 0 {
				tl.line(t, &first, "%s of %s skipped by key", shards(n), e.Job)
			}
		case e.Kind == task.EventLeaseGrant && granted[e.NodeName] != nil: // all of the tick at the first
			for _, w := range tl.Workers {
				if len(granted[w]) > 0 {
					tl.line(t, &first, "%s gets %s", w, ranges(granted[w]))
				}
			}
			clear(granted)
		case e.Kind == task.EventJobState && task.JobState(e.To).Final():
			tl.line(t, &first, "%s %s", e.Job, e.To)
		}
	}
}

// end writes the sum.
func (tl *timeline) end(r *run) {
	tl.text.WriteByte('\n')
	for _, id := range r.jobs {
		j := r.state.Job(id)
		st, ran := &j.Stages[0], map[string]int{}
		for k := range st.Len() {
			if sh := st.At(k); sh.State == task.ShardSucceeded && sh.Skipped() == "" {
				ran[r.state.NodeByPlace(sh.Node).Info.Name]++
			}
		}
		fmt.Fprintf(&tl.text, "%s: %s, %d of %d done", id, j.State, st.Counts[task.ShardSucceeded], st.Len())
		for _, w := range tl.Workers {
			if ran[w] > 0 {
				fmt.Fprintf(&tl.text, ", %s ran %d", w, ran[w])
			}
		}
		tl.text.WriteByte('\n')
	}
}

func shards(n int) string {
	if n == 1 {
		return "1 shard"
	}
	return strconv.Itoa(n) + " shards"
}

// ranges writes shards, each by itself up to a dozen: "1 4 7", else as ranges.
func ranges(texts []string) string {
	all := numbers(texts)
	if len(all) > 12 {
		return task.FormatRanges(all)
	}
	words := make([]string, len(all))
	for i, k := range all {
		words[i] = strconv.Itoa(k)
	}
	return strings.Join(words, " ")
}

// numbers are the shards that events name, in order.
func numbers(texts []string) (all []int) {
	for _, text := range texts {
		rs, _ := task.ParseRanges(text) // the ledger writes them well
		for _, r := range rs {
			for k := r.First; k <= r.Last; k++ {
				all = append(all, k)
			}
		}
	}
	slices.Sort(all)
	return all
}
