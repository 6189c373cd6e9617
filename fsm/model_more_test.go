package fsm

import (
	"fmt"
	"slices"
	"strings"

	"lanjobs/task"
)

// The model of queues, schedules, shards that come when a stage opens, splits and shard keys.

type mProof struct {
	job   task.JobID
	until task.Millis
}

func (m *model) pinGone(st *mStage, k int) bool {
	return len(st.pins) > 0 && m.nodes[st.pins[k]].gone
}

// failGone fails what waits for a machine that is gone, in open stages.
func (m *model) failGone(id task.JobID) {
	j := m.jobs[id]
	for i := range j.stages {
		st := &j.stages[i]
		if c, _ := j.class(i); c != "open" || !st.opened {
			continue
		}
		gone := false
		for k, sh := range st.shards {
			if sh.state == "pending" && m.pinGone(st, k) {
				sh.state, sh.due, gone = "dead", 0, true
			}
		}
		if gone {
			j.failFast(i)
		}
	}
	m.progress(id)
}

// progress opens the stages whose time has come.
func (m *model) progress(id task.JobID) {
	j := m.jobs[id]
	for i := range j.stages {
		st := &j.stages[i]
		if c, _ := j.class(i); c == "open" && !st.opened {
			st.opened = true
			m.open(id, i)
		}
	}
}

// failFast stops a stage when a shard of it has died and it cannot succeed any more. A person may retry some of such a stage.
func (j *mJob) failFast(i int) {
	st, success := &j.stages[i], j.spec.Stages[i].Success
	lost := st.count(func(sh *mShard) bool { return sh.state == "dead" || sh.state == "cancelled" })
	if c, _ := j.class(i); c == "open" && success.FailFast && !j.cancelling && !st.stopping && len(st.shards)-lost < success.Needed(len(st.shards)) {
		st.stopping = true
		for _, sh := range st.shards {
			if sh.state == "pending" {
				sh.state, sh.due = "cancelled", 0
			}
		}
	}
}

// open gives a stage its shards if it has none, and ends those that need not or cannot run.
func (m *model) open(id task.JobID, i int) {
	j := m.jobs[id]
	st, spec := &j.stages[i], &j.spec.Stages[i]
	if dynamic(spec) && len(st.shards) == 0 {
		if spec.Broadcast {
			st.pins = m.members(spec)
		} else if st.items, st.none = j.lines(spec); st.none == "" && len(st.items) == 0 {
			st.none = "good"
		}
		if spec.Broadcast && len(st.pins) == 0 {
			st.none = "bad"
		}
		if st.none != "" {
			return
		}
		st.shards = freshShards(len(st.items) + len(st.pins))
	}
	for k, sh := range st.shards {
		ref := task.ShardRef{Job: id, Stage: i, Shard: k}
		if sh.state == "pending" && !m.skipKnown(ref) && m.pinGone(st, k) {
			sh.state, sh.due = "dead", 0
			defer j.failFast(i)
		}
	}
}

// members are the machines that a broadcast goes to, by their places in the cluster.
func (m *model) members(spec *task.StageSpec) (out []task.NodeID) {
	for _, id := range m.order {
		n := m.nodes[id]
		info := task.NodeInfo{Labels: mergeKVs(nil, append(slices.Clone(n.labels), n.extra...))}
		if !n.gone && n.inc > 0 && len(task.Unmatched(spec.Require, &info)) == 0 {
			out = append(out, id)
		}
	}
	return out
}

// lines are those of an output of the shards that succeeded; none of them has it = bad.
func (j *mJob) lines(spec *task.StageSpec) (out []string, none string) {
	name, output, _ := strings.Cut(spec.ShardsFrom, ".")
	good, found := false, false
	for _, sh := range j.stages[j.spec.Stage(name)].shards {
		if sh.state != "done" {
			continue
		}
		good = true
		v, has := sh.outputs[output]
		found = found || has
		for line := range strings.FieldsFuncSeq(v, func(c rune) bool { return c == '\n' || c == '\r' }) {
			out = append(out, line)
		}
	}
	if good && !found {
		return nil, "bad"
	}
	return out, ""
}

func (m *model) key(r task.ShardRef) string {
	j := m.jobs[r.Job]
	st, spec := &j.stages[r.Stage], &j.spec.Stages[r.Stage]
	item := ""
	if len(st.items) > 0 {
		item = st.items[r.Shard]
	}
	return strings.NewReplacer("${LANJOBS_SHARD}", fmt.Sprint(r.Shard), "${LANJOBS_ITEM}", item, "${LANJOBS_STAGE}", spec.Name,
		"${LANJOBS_SCHEDULED_FOR}", rfc3339(j.due)).Replace(spec.ShardKey)
}

func (m *model) prove(r task.ShardRef) {
	j := m.jobs[r.Job]
	if j.spec.Stages[r.Stage].ShardKey == "" {
		return
	}
	window := j.spec.IdempotencyWindow
	if window == 0 {
		window = 7 * task.Day
	}
	m.keys[m.key(r)] = mProof{r.Job, m.led + window}
}

func (m *model) forgetOwn(r task.ShardRef) {
	if m.jobs[r.Job].spec.Stages[r.Stage].ShardKey != "" && m.keys[m.key(r)].job == r.Job {
		delete(m.keys, m.key(r))
	}
}

func (m *model) skipKnown(r task.ShardRef) bool {
	sh := m.shard(r)
	p, known := m.keys[m.key(r)]
	if m.jobs[r.Job].spec.Stages[r.Stage].ShardKey == "" || !known {
		return false
	}
	sh.state, sh.due, sh.skipped, sh.data, sh.puts = "done", 0, p.job, "", nil
	return true
}

// runs are the unfinished jobs of a schedule.
func (m *model) runs(name string) (out []*mJob) {
	for _, j := range m.jobs {
		if j.schedule == name && !j.final {
			out = append(out, j)
		}
	}
	return out
}

// rangeOf is what a shard works on.
func (m *model) rangeOf(r task.ShardRef) *task.ShardRange {
	sh := m.shard(r)
	spec := m.jobs[r.Job].spec.Stages[r.Stage].Range
	if sh.part != nil || spec == nil {
		return sh.part
	}
	return new(spec.Shard(r.Shard))
}

func (m *model) cursor(c *Cursor) (bool, string) {
	sh := m.holder(c.Ref, c.Token)
	if sh == nil {
		return false, ""
	}
	r := m.rangeOf(c.Ref)
	if r == nil || c.Cursor < r.Start || c.Cursor > r.End {
		return false, ""
	}
	if sh.cursor != nil && c.Cursor <= *sh.cursor {
		return true, fmt.Sprint(*r)
	}
	sh.cursor = &c.Cursor
	if left := r.End - c.Cursor; sh.wanted && left >= 2 && m.splits(c.Ref) {
		st := &m.jobs[c.Ref.Job].stages[c.Ref.Stage]
		half := &mShard{state: "pending", reported: map[task.Token]task.NodeID{}, part: &task.ShardRange{Start: r.End - left/2, End: r.End}}
		st.shards = append(st.shards, half)
		sh.part = &task.ShardRange{Start: r.Start, End: half.part.Start}
	}
	sh.wanted = false
	return true, fmt.Sprint(*m.rangeOf(c.Ref))
}

// splits tells whether what runs may be split at all.
func (m *model) splits(r task.ShardRef) bool {
	j := m.jobs[r.Job]
	return !j.cancelling && !j.stages[r.Stage].stopping && j.spec.Stages[r.Stage].ShardKey == ""
}

func (m *model) splitShard(c *SplitShard) bool {
	sh := m.shard(c.Ref)
	if sh == nil || !sh.leased() || sh.token != c.Token {
		return false
	}
	r := m.rangeOf(c.Ref)
	if !sh.wanted && (r == nil || sh.cursor == nil || r.End-*sh.cursor < 2 || !m.splits(c.Ref)) {
		return false
	}
	sh.wanted = true
	return true
}

func (m *model) applyMore(c Command) (bool, string) {
	switch c := c.(type) {
	case *FireSchedule:
		return m.fireSchedule(c)
	case *SkipSchedule:
		sc := m.schedules[c.Name]
		if sc == nil || sc.paused || c.Due <= sc.due || c.Nominal == sc.nominal {
			return false, ""
		}
		sc.due, sc.nominal = c.Due, c.Nominal
		sc.missed += uint64(c.Missed)
		return true, ""
	case *SetSchedule:
		return m.setSchedule(c), ""
	case *SetQueue:
		return m.setQueue(c), ""
	case *SetJob:
		return m.setJob(c), ""
	case *ExpireJob:
		return m.expire(c), ""
	case *Cursor:
		return m.cursor(c)
	case *SplitShard:
		return m.splitShard(c), ""
	case *AdmitClient:
		return m.admitClient(c), ""
	case *RemoveClient:
		_, there := m.clients[c.ID]
		delete(m.clients, c.ID)
		return there, ""
	}
	panic("no such command")
}

func (m *model) compareMore(s *State) error {
	if err := m.compareCare(s); err != nil {
		return err
	}
	if len(s.schedules) != len(m.schedules) || len(s.queues) != len(m.queues) || len(s.keyAt) != len(m.keys) {
		return fmt.Errorf("%d schedules, %d queues, %d keys, model %d, %d, %d", len(s.schedules), len(s.queues), len(s.keyAt), len(m.schedules), len(m.queues), len(m.keys))
	}
	for name, want := range m.schedules {
		sc := s.Schedule(name)
		if sc == nil || sc.Spec.JSON != want.json || sc.Paused != want.paused || sc.LastDue != want.due || sc.LastNominal != want.nominal ||
			sc.Fired != want.fired || sc.Missed != want.missed || sc.Skipped != want.skipped || (sc.Waiting != nil) != (want.waiting != nil) {
			return fmt.Errorf("schedule %s is %+v, model %+v", name, sc, want)
		}
	}
	for name, want := range m.queues {
		if q := s.Queue(name); q == nil || q.Max != want.max || q.Paused != want.paused {
			return fmt.Errorf("queue %s is %+v, model %+v", name, q, want)
		}
	}
	for key, want := range m.keys {
		if p := s.KeyProof(key); p == nil || p.Job != want.job || p.Until != want.until {
			return fmt.Errorf("key %s is %+v, model %+v", key, p, want)
		}
	}
	return nil
}

// compareShard compares what a shard works on.
func (m *mJob) compareShard(j *Job, i, k int) error {
	st := &m.stages[i]
	sh, item, pin := st.shards[k], "", task.NodeID("")
	if len(st.items) > 0 {
		item = st.items[k]
	}
	if len(st.pins) > 0 {
		pin = st.pins[k]
	}
	have := j.Shard(i, k)
	r, ranged := j.RangeOf(i, k)
	if j.Item(i, k) != item || j.PinnedTo(i, k) != pin || have.Skipped() != sh.skipped || sh.part != nil && (!ranged || r != *sh.part) {
		return fmt.Errorf("%q, %q, skipped %q, %v; model %q, %q, %q, %v", j.Item(i, k), j.PinnedTo(i, k), have.Skipped(), r, item, pin, sh.skipped, sh.part)
	}
	if x := have.Extra; x != nil && (x.HasCursor != (sh.cursor != nil) || x.HasCursor && x.Cursor != *sh.cursor || x.SplitWanted != sh.wanted) {
		return fmt.Errorf("%+v, model cursor %v, wanted %v", x, sh.cursor, sh.wanted)
	}
	return nil
}
