package fsm

import (
	"errors"
	"fmt"

	"lanjobs/task"
)

// Check tests every law of doc.go that a state can show by itself. It is run after each step of the tests and on every
// snapshot that is read; an error means a bug or damaged data, never a user's mistake.
func (s *State) Check() error {
	c := &checker{s: s, seen: make(map[task.Token]bool, len(s.leases)), waits: make(map[wait]bool, len(s.waits))}
	for _, w := range s.waits {
		c.waits[w] = true
	}
	c.nodes()
	c.queues = map[string]*tally{}
	c.schedules()
	c.keys()
	s.Jobs(func(j *Job) bool { c.job(j); return len(c.errs) < 20 })
	if len(c.errs) == 0 {
		c.sums()
	}
	return errors.Join(c.errs...)
}

// checker gathers what is wrong, and what must add up.
type checker struct {
	s                  *State
	errs               []error
	seen               map[task.Token]bool // tokens of leased shards
	waits              map[wait]bool
	queues             map[string]*tally
	jobs, live, shards int
	runs               int // unfinished jobs of schedules
	weight             int64
}

func (c *checker) fault(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

func (c *checker) nodes() {
	s := c.s
	if len(s.nodeAt) != len(s.nodes) || len(s.held) != len(s.nodes) {
		c.fault("%d nodes, %d ids", len(s.nodes), len(s.nodeAt))
		return
	}
	held := 0
	for i, n := range s.nodes {
		if at, ok := s.nodeAt[n.Info.ID]; !ok || int(at) != i {
			c.fault("node %s is not at its place", n.Info.ID)
		}
		held += len(s.held[i])
	}
	if held != len(s.leases) {
		c.fault("nodes hold %d leases, there are %d", held, len(s.leases))
	}
}

func (c *checker) job(j *Job) {
	s := c.s
	c.jobs++
	if !j.State.Final() {
		c.live++
		c.unfinished(j)
	}
	if at, ok := s.jobAt[j.ID]; !ok || at != j.Seq || s.JobBySeq(j.Seq) != j {
		c.fault("job %s is not at its place", j.ID)
		return
	}
	if at, ok := s.byRequest[j.Request]; j.Request != "" && (!ok || at != j.Seq) {
		c.fault("job %s is not found by its request", j.ID)
	}
	open, ready, weight := false, false, int64(0)
	for i := range j.KV {
		weight += j.KV[i].weight()
	}
	for i := range j.Stages {
		weight += c.stage(j, i) + j.Stages[i].size()
		if p := c.parts(j, i); p != "" {
			c.fault("job %s, stage %d: %s", j.ID, i, p)
		}
		open = open || j.Stages[i].State == task.StageOpen
		ready = ready || j.grantable(i) > 0
		c.shards += j.Stages[i].shards.n
	}
	for i := range j.Stages {
		if j.State.Final() && !j.Stages[i].State.Done() {
			c.fault("job %s is %s but stage %d is %s", j.ID, j.State, i, j.Stages[i].State)
		}
	}
	if !j.State.Final() && !open {
		c.fault("job %s is %s but no stage is open: nothing can end it", j.ID, j.State)
	}
	ready = ready && !j.State.Final() && !j.Cancelling && !j.Paused
	if ready {
		c.tally(j.Queue()).ready++
	}
	if j.queue != nil && ready != j.queue.ready.has(j.Priority, j.Seq) {
		c.fault("job %s has something to grant: %v, which the queue does not say", j.ID, ready)
	}
	if weight != j.weight {
		c.fault("job %s weighs %d, has %d", j.ID, j.weight, weight)
	}
	c.weight += weight
}

// sums compares the totals.
func (c *checker) sums() {
	s := c.s
	for _, sp := range s.specs {
		c.weight += sp.weight() // a sum: no order
	}
	c.queueSums()
	c.books()
	for _, x := range []struct {
		what      string
		have, say int64
	}{
		{"jobs", int64(c.jobs), int64(len(s.jobAt))}, {"live jobs", int64(c.live), int64(s.live)}, {"shards", int64(c.shards), int64(s.shards)},
		{"bytes", c.weight, s.weight}, {"leased shards", int64(len(c.seen)), int64(len(s.leases))}, {"runs of schedules", int64(c.runs), int64(s.countRuns())},
	} {
		if x.have != x.say {
			c.fault("there are %d %s, %d are counted", x.have, x.what, x.say)
		}
	}
}

// stage checks a stage and gives the weight of its shards.
func (c *checker) stage(j *Job, si int) (weight int64) {
	st, spec := &j.Stages[si], &j.Spec.Stages[si]
	counts, waits, ready := [task.ShardStates]int32{}, int32(0), 0
	for k := range st.shards.n {
		sh := st.shards.at(k)
		counts[sh.State]++
		weight += sh.Extra.weight()
		if p := c.shard(j, si, k, sh, &waits, &ready); p != "" {
			c.fault("%s/%s/%d is %s in a stage that is %s, token %d, due %d: %s", j.ID, spec.Name, k, sh.State, st.State, sh.Token, sh.Due, p)
			return weight
		}
	}
	if n := spec.Shards; st.shards.n < n || st.shards.n > n && !dynamic(spec) && spec.Range == nil {
		c.fault("%s/%s has %d shards", j.ID, spec.Name, st.shards.n)
	}
	done := int(counts[task.ShardSucceeded] + counts[task.ShardFailed] + counts[task.ShardCancelled])
	needed := false
	for _, need := range j.Spec.needs[si] {
		needed = needed || !j.Stages[need].State.Done()
	}
	problem := ""
	switch {
	case counts != st.Counts:
		problem = fmt.Sprintf("has %v", counts)
	case waits != st.Waits:
		problem = fmt.Sprintf("counts %d waiting, has %d", st.Waits, waits)
	case st.State == task.StageOpen && (st.ready == nil || st.ready.n != ready):
		problem = fmt.Sprintf("has %d ready shards and does not say so", ready)
	case st.State == task.StageOpen && done == st.shards.n:
		problem = "all its shards are done"
	case st.State == task.StageOpen && needed:
		problem = "a stage that it needs is not done"
	case st.State == task.StageWaiting && (!needed || int(counts[task.ShardPending]) != st.shards.n):
		problem = "all that it needs is done, or it has begun"
	case st.State.Done() && st.State != task.StageSkipped && done < st.shards.n:
		problem = "a shard is lost"
	case st.State == task.StageSucceeded && int(counts[task.ShardSucceeded]) != st.shards.n:
		problem = "not all its shards succeeded"
	case st.Stopping && (st.State != task.StageOpen || counts[task.ShardPending] > 0):
		problem = "it is being stopped, and a shard still waits"
	case spec.Parallelism > 0 && st.Active() > spec.Parallelism:
		problem = fmt.Sprintf("%d shards run, %d may", st.Active(), spec.Parallelism)
	}
	if problem != "" {
		c.fault("%s/%s is %s and counts %v: %s", j.ID, spec.Name, st.State, st.Counts, problem)
	}
	return weight
}

func (c *checker) shard(j *Job, si, k int, sh *Shard, waits *int32, ready *int) string {
	s, st := c.s, &j.Stages[si]
	if sh.Token > s.newestToken() {
		return "its token was never given"
	}
	if sh.Token != 0 && (sh.Node < 0 || int(sh.Node) >= len(s.nodes)) {
		return "its node does not exist"
	}
	if sh.State.Leased() {
		l := s.leases[sh.Token]
		if c.seen[sh.Token] || l == nil || l.Token != sh.Token || l.Ref != (task.ShardRef{Job: j.ID, Stage: si, Shard: k}) || l.Seq != j.Seq || l.Node != sh.Node || s.held[l.Node][sh.Token] != l {
			return "that is not its lease"
		}
		c.seen[sh.Token] = true
		c.tally(j.Queue()).leases++
		if pin := j.PinnedTo(si, k); pin != "" && pin != s.nodes[sh.Node].Info.ID {
			return "it runs where it may not"
		}
		if st.State != task.StageOpen {
			return "nothing may run there"
		}
		if sh.Due > s.Clock.Add(j.Spec.Stages[si].Lease.TTL) {
			return "no lease lasts longer than its TTL"
		}
		if s.due > sh.Due {
			return fmt.Sprintf("the bound of deadlines is %d", s.due)
		}
	}
	pending := sh.State == task.ShardPending
	if pending && st.State == task.StageOpen {
		if sh.Due <= s.Clock {
			*ready++
		} else {
			*waits++
			if !c.waits[wait{sh.Due, j.Seq, int32(si), int32(k)}] {
				return "nothing waits for its time"
			}
		}
		if st.ready == nil || st.ready.has(k) != (sh.Due <= s.Clock) {
			return fmt.Sprintf("clock %d, and the ready set says otherwise", s.Clock)
		}
	} else if st.State == task.StageOpen && (st.ready == nil || st.ready.has(k)) {
		return "it is in the ready set"
	} else if !sh.State.Leased() && sh.Due != 0 {
		return "nothing is due"
	}
	return ""
}
