package fsm

import (
	"cmp"
	"slices"

	"lanjobs/task"
)

// tally is what is counted of one queue.
type tally struct{ leases, ready, users int }

func (c *checker) tally(queue string) *tally {
	t := c.queues[queue]
	if t == nil {
		t = &tally{}
		c.queues[queue] = t
	}
	return t
}

// unfinished checks what a job that is not final must have.
func (c *checker) unfinished(j *Job) {
	s := c.s
	c.tally(j.Queue()).users++
	if j.queue == nil || j.queue != s.queueNamed(j.Spec.Queue) {
		c.fault("job %s has no queue", j.ID)
	}
	if _, found := slices.BinarySearch(s.runs[j.Schedule], j.Seq); found != (j.Schedule != "") {
		c.fault("job %s is not found among the runs of %q", j.ID, j.Schedule)
	}
	if j.Schedule != "" {
		c.runs++
	}
	if j.Priority < 0 || j.Priority >= priorities {
		c.fault("job %s has priority %d", j.ID, j.Priority)
	}
	if at, ok := j.expiry(); ok && !slices.Contains(s.expiries, ledEnd{at, j.Seq}) {
		c.fault("job %s expires at %d, and nothing waits for it", j.ID, at)
	}
}

// queueSums compares the queues with what their jobs are.
func (c *checker) queueSums() {
	last := ""
	for _, q := range c.s.queues {
		if q.Name <= last {
			c.fault("queue %q stands behind %q", q.Name, last)
		}
		last = q.Name
		have := tally{q.Active, q.ready.n, q.users}
		if t := *c.tally(q.Name); t != have {
			c.fault("queue %s counts %+v, has %+v", q.Name, have, t)
		}
	}
	if c.s.queueNamed("") == nil || len(c.s.queues) > task.MaxQueues+1 {
		c.fault("%d queues", len(c.s.queues))
	}
}

// books checks what the nodes' leases take together.
func (c *checker) books() {
	s := c.s
	for i, n := range s.nodes {
		have := Booked{}
		s.LeasesOf(n.Info.ID, func(l *Lease) {
			r := s.JobBySeq(l.Seq).Spec.Stages[l.Ref.Stage].Resources
			if !r.Ordinary() {
				have.Big++
			}
			r = r.Booked()
			have.MilliCPU, have.MemoryMB, have.DiskMB = have.MilliCPU+r.MilliCPU, have.MemoryMB+r.MemoryMB, have.DiskMB+r.DiskMB
		})
		if s.booked[int32(i)] != have {
			c.fault("node %s has booked %+v, its leases take %+v", n.Info.ID, s.booked[int32(i)], have)
		}
	}
}

func (s *State) countRuns() (n int) {
	for _, runs := range s.runs {
		n += len(runs) // a sum: no order
	}
	return n
}

func (c *checker) schedules() {
	s, last := c.s, ""
	for _, sc := range s.schedules {
		c.tally(sc.Spec.queueName()).users++
		switch {
		case sc.Name <= last:
			c.fault("schedule %q stands behind %q", sc.Name, last)
		case sc.Spec.Schedule == nil || sc.Spec.Name != sc.Name || s.specs[sc.Spec.JSON] != sc.Spec:
			c.fault("schedule %s has another spec", sc.Name)
		case sc.Waiting != nil && len(s.runs[sc.Name]) == 0:
			c.fault("schedule %s: an occurrence waits for nothing", sc.Name)
		case len(sc.Recent) > recentRuns:
			c.fault("schedule %s keeps %d runs", sc.Name, len(sc.Recent))
		}
		last = sc.Name
	}
	if len(s.schedules) > task.MaxSchedules || len(s.acts) > maxActs || len(s.over) > 0 {
		c.fault("%d schedules, %d acts, %d ended runs", len(s.schedules), len(s.acts), len(s.over))
	}
}

// keys checks that every proof is found by its key and ends in time.
func (c *checker) keys() {
	s, n := c.s, 0
	s.keys.each(func(i int, p *KeyProof) bool {
		if p.Key == "" {
			return true
		}
		n++
		c.weight += p.weight()
		if at, known := s.keyAt[p.Key]; !known || at != i {
			c.fault("key %q is not at its place", p.Key)
		}
		return len(c.errs) < 20
	})
	if n != len(s.keyAt) || len(s.keyEnds) < n {
		c.fault("%d keys, %d are found, %d end", n, len(s.keyAt), len(s.keyEnds))
	}
}

// parts checks that the shards of a range cover it, each number once, and that each shard of a dynamic stage has its own.
func (c *checker) parts(j *Job, i int) string {
	st, spec := &j.Stages[i], &j.Spec.Stages[i]
	if dynamic(spec) && len(st.Items)+len(st.Pins) != st.shards.n {
		return "items and shards differ in number"
	}
	if spec.Range == nil || st.shards.n == spec.Shards { // no split
		return ""
	}
	parts := make([]task.ShardRange, st.shards.n)
	for k := range parts {
		parts[k], _ = j.RangeOf(i, k)
	}
	slices.SortFunc(parts, func(a, b task.ShardRange) int { return cmp.Compare(a.Start, b.Start) })
	at := spec.Range.Start
	for _, p := range parts {
		if p.Start != at || p.End <= p.Start {
			return "its shards do not cover its range, each number once"
		}
		at = p.End
	}
	if at != spec.Range.End {
		return "its shards do not cover its range to the end"
	}
	return ""
}
