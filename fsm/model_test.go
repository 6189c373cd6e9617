package fsm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"lanjobs/task"
)

// model is what the laws say in plain words: maps, no pages, no sets, no heaps, and the state of stages and jobs worked out
// anew each time from what their shards are. It was written from the requirements, not from Apply, and must stay far simpler.
type model struct {
	level     int // of all machines
	clock     task.Instant
	led       task.Millis
	cluster   bool
	tokens    []task.Token // all that were ever given
	gen, n    uint64
	nodes     map[task.NodeID]*mNode
	joins     map[string]*mJoin // by hash
	jobs      map[task.JobID]*mJob
	byReq     map[task.RequestID]task.JobID
	wall      int64
	order     []task.NodeID // nodes by their places
	queues    map[string]*mQueue
	schedules map[string]*mSchedule
	did       map[task.RequestID]mAct // acts on queues and schedules
	keys      map[string]mProof
	clients   map[string]mClient
	audited   int // refusals of stale tokens that the audit log must show
}

type mNode struct {
	inc            uint64
	slots          int
	online, drains bool
	gone           bool
	token, key     string
	labels, extra  []task.KV
	starts         []mStart // since the last clear, those that count
	unstable       bool
	seat           NodeAction
}

// mStart is a start of a node after so many crashes.
type mStart struct {
	at      task.Millis
	crashes int
}

// mClient is a client, by its id.
type mClient struct {
	key, token string
	role       Role
}

type mJoin struct {
	id    string
	uses  int
	until task.Millis
	role  Role
}

type mJob struct {
	spec              *task.Spec
	digest            string
	request           task.RequestID
	submitted, ended  task.Millis
	started           task.Millis // what the deadline counts from
	begun             bool        // something of it ran, or it was retried
	granted           bool        // something of it was granted since it last waited for its start
	expired, paused   bool
	priority          int
	queue, schedule   string
	due               int64
	cancelling, final bool
	acts              map[task.RequestID]bool
	kv                map[string]mValue
	version           uint64
	stages            []mStage
}

type mValue struct {
	version uint64
	value   string
}

type mStage struct {
	shards    []*mShard
	cancelled bool // a cancel met it before its end
	opened    bool
	none      string // "good" or "bad": it got no shards when it opened
	stopping  bool
	items     []string
	pins      []task.NodeID
}

type mShard struct {
	state                        string // pending, assigned, running, done, dead, cancelled
	token                        task.Token
	node                         task.NodeID
	due                          task.Instant
	tries, fails, losses, defers int
	seq                          uint64
	data                         string
	outputs                      map[string]string
	reported                     map[task.Token]task.NodeID
	puts                         map[task.RequestID]uint64
	part                         *task.ShardRange
	cursor                       *int64
	wanted                       bool
	skipped                      task.JobID
	ran                          bool       // an attempt has ended otherwise than by being given back
	unmet                        task.Token // of the last recorded attempt, if that was given back
}

func newModel() *model {
	return &model{nodes: map[task.NodeID]*mNode{}, joins: map[string]*mJoin{}, jobs: map[task.JobID]*mJob{}, byReq: map[task.RequestID]task.JobID{},
		queues: map[string]*mQueue{task.DefaultQueue: {}}, schedules: map[string]*mSchedule{}, did: map[task.RequestID]mAct{}, keys: map[string]mProof{}, clients: map[string]mClient{}}
}

func (m *model) advance(b *Batch) {
	e := min(b.Elapsed, MaxElapsed)
	m.clock += task.Instant(e)
	m.led += e + b.Idle
	m.wall = b.Wall
	maps.DeleteFunc(m.keys, func(_ string, p mProof) bool { return p.until <= m.led })
}

// isDone tells whether a shard needs no more work.
func (sh *mShard) isDone() bool {
	return sh.state == "done" || sh.state == "dead" || sh.state == "cancelled"
}

func (sh *mShard) leased() bool { return sh.state == "assigned" || sh.state == "running" }

func (st *mStage) count(is func(*mShard) bool) (n int) {
	for _, sh := range st.shards {
		if is(sh) {
			n++
		}
	}
	return n
}

// class is what a stage is by its shards and by the stages it needs: waiting, open, good, bad, or skipped; broken tells
// whether what follows on success must not follow.
func (j *mJob) class(i int) (class string, broken bool) {
	st, spec := &j.stages[i], &j.spec.Stages[i]
	switch {
	case st.none != "":
		return st.none, st.none == "bad"
	case st.cancelled && len(st.shards) == 0:
		return "bad", true
	}
	if len(st.shards) > 0 && st.count((*mShard).isDone) == len(st.shards) {
		good := st.count(func(sh *mShard) bool { return sh.state == "done" })
		cancelled := st.cancelled && st.count(func(sh *mShard) bool { return sh.state == "cancelled" }) > 0
		if !cancelled && good >= spec.Success.Needed(len(st.shards)) {
			return "good", false
		}
		return "bad", true
	}
	up := false
	for _, need := range spec.Needs {
		c, b := j.class(j.spec.Stage(need))
		if c == "waiting" || c == "open" {
			return "waiting", false
		}
		up = up || b
	}
	switch {
	case spec.When == task.WhenSuccess && up:
		return "skipped", true
	case spec.When == task.WhenFailure && !up:
		return "skipped", false
	}
	return "open", false
}

func (j *mJob) over() bool {
	for i := range j.stages {
		if c, _ := j.class(i); c == "waiting" || c == "open" {
			return false
		}
	}
	return true
}

func (m *model) shard(r task.ShardRef) *mShard {
	j := m.jobs[r.Job]
	if j == nil || r.Stage < 0 || r.Stage >= len(j.stages) || r.Shard < 0 || r.Shard >= len(j.stages[r.Stage].shards) {
		return nil
	}
	return j.stages[r.Stage].shards[r.Shard]
}

// holder gives the shard if the token is its current lease; anything else is to be audited.
func (m *model) holder(r task.ShardRef, t task.Token) *mShard {
	sh := m.shard(r)
	if sh == nil || !sh.leased() || sh.token != t {
		m.audited++
		return nil
	}
	return sh
}

func (m *model) each(f func(task.ShardRef, *mShard)) {
	for id, j := range m.jobs {
		for i := range j.stages {
			for k, sh := range j.stages[i].shards {
				f(task.ShardRef{Job: id, Stage: i, Shard: k}, sh)
			}
		}
	}
}

func (m *model) find(t task.Token) (ref task.ShardRef, found *mShard) {
	m.each(func(r task.ShardRef, sh *mShard) {
		if sh.leased() && sh.token == t {
			ref, found = r, sh
		}
	})
	return ref, found
}

func (m *model) heldBy(n task.NodeID) (c int) {
	m.each(func(_ task.ShardRef, sh *mShard) {
		if sh.leased() && sh.node == n {
			c++
		}
	})
	return c
}

// end closes an attempt.
func (m *model) end(ref task.ShardRef, sh *mShard, o task.Outcome) {
	j := m.jobs[ref.Job]
	p := j.spec.Stages[ref.Stage].Retry
	sh.due, sh.puts = 0, nil
	sh.ran = sh.ran || o.End != task.EndUnmet
	sh.cursor, sh.wanted = nil, false
	if o.End == task.EndExited && o.ExitCode == 0 {
		sh.state, sh.data = "done", ""
		m.prove(ref)
		return
	}
	if o.End == task.EndUnmet && sh.unmet != 0 {
		delete(sh.reported, sh.unmet)
	}
	if sh.unmet = 0; o.End == task.EndUnmet {
		sh.unmet = sh.token
	}
	v := p.Judge(o)
	if v == task.VerdictDefer && sh.defers == task.MaxDefers {
		v = task.VerdictRetry
	}
	sh.state = "pending"
	switch v {
	case task.VerdictUnmet:
	case task.VerdictDefer:
		sh.defers++
		sh.due = m.clock.Add(p.Wait(1, 0))
		if o.Wait > 0 {
			sh.due = m.clock.Add(o.Wait)
		}
	case task.VerdictReassign, task.VerdictCancelled:
		if o.End != task.EndDrained && o.End != task.EndShutdown {
			sh.losses++
		}
		if sh.losses >= p.LeaseLosses && o.End != task.EndDrained && o.End != task.EndShutdown {
			sh.state = "dead"
		}
	default:
		sh.fails++
		sh.due = m.clock.Add(p.Wait(sh.fails, 0))
		if sh.fails >= p.Attempts || v == task.VerdictPermanent {
			sh.state = "dead"
		}
	}
	st := &j.stages[ref.Stage]
	switch {
	case j.cancelling || st.stopping:
		sh.state = "cancelled"
	case sh.state == "pending" && m.pinGone(st, ref.Shard):
		sh.state = "dead"
	}
	if sh.state != "pending" || sh.due == m.clock {
		sh.due = 0
	}
	if sh.state == "dead" {
		j.failFast(ref.Stage)
	}
}

// unstart makes a job wait for its start again if all that was granted of it was given back.
func (m *model) unstart(j *mJob) {
	if m.level < LevelCare || j.spec.StartWithin == 0 || !j.begun || !j.granted || j.cancelling {
		return
	}
	for i := range j.stages {
		for _, sh := range j.stages[i].shards {
			if sh.state != "pending" || sh.ran {
				return
			}
		}
	}
	j.begun, j.granted, j.started = false, false, 0
}

// settle notes which jobs have come to an end.
func (m *model) settle() {
	for _, j := range m.jobs {
		if over := j.over(); over != j.final {
			j.final, j.ended = over, m.led
		}
		for i := range j.stages {
			if c, _ := j.class(i); c != "open" {
				j.stages[i].stopping = false
			}
		}
	}
}

// compare tells where a state differs from the model.
func (m *model) compare(s *State) error {
	m.settle()
	if s.Clock != m.clock || s.Led != m.led {
		return fmt.Errorf("clock %d/%d, model %d/%d", s.Clock, s.Led, m.clock, m.led)
	}
	for id, n := range m.nodes {
		have := s.Node(id)
		if have == nil || have.Incarnation != n.inc || have.Online != n.online || have.Draining != n.drains || (have.Gone != "") != n.gone {
			return fmt.Errorf("node %s is %+v, model %+v", id, have, n)
		}
	}
	if len(s.Nodes()) != len(m.nodes) || len(s.jobAt) != len(m.jobs) {
		return fmt.Errorf("%d nodes, %d jobs, model %d, %d", len(s.Nodes()), len(s.jobAt), len(m.nodes), len(m.jobs))
	}
	if err := m.compareMore(s); err != nil {
		return err
	}
	for id, j := range m.jobs {
		if err := j.compare(s.Job(id)); err != nil {
			return fmt.Errorf("job %s: %w", id, err)
		}
	}
	return nil
}

func (m *mJob) compare(j *Job) error {
	if j == nil || j.Cancelling != m.cancelling || j.State.Final() != m.final {
		return fmt.Errorf("%+v, model cancelling %v, final %v", j, m.cancelling, m.final)
	}
	if j.Expired != m.expired || j.Paused != m.paused || j.Priority != m.priority || j.Schedule != m.schedule || j.ScheduledFor != m.due || (j.State == task.JobPending) != (!m.begun && !m.final) {
		return fmt.Errorf("%+v, model %+v", j, m)
	}
	if len(j.KV) != len(m.kv) {
		return fmt.Errorf("%d keys, model %d", len(j.KV), len(m.kv))
	}
	for k, want := range m.kv {
		if v, version := j.StateValue(k); string(v) != want.value || version != want.version {
			return fmt.Errorf("key %s is %q at %d, model %v", k, v, version, want)
		}
	}
	for i := range m.stages {
		classes := [...]string{"waiting", "open", "good", "good", "bad", "skipped", "bad"}
		if c, broken := m.class(i); classes[j.Stages[i].State] != c || (j.Stages[i].Broken != broken) {
			return fmt.Errorf("stage %d is %s, broken %v, model %s, %v", i, j.Stages[i].State, j.Stages[i].Broken, c, broken)
		}
		if st := &m.stages[i]; j.Stages[i].Len() != len(st.shards) || j.Stages[i].Stopping != st.stopping {
			return fmt.Errorf("stage %d has %d shards, stopping %v, model %d, %v", i, j.Stages[i].Len(), j.Stages[i].Stopping, len(st.shards), st.stopping)
		}
		for k, sh := range m.stages[i].shards {
			if err := m.compareShard(j, i, k); err != nil {
				return fmt.Errorf("stage %d shard %d: %w", i, k, err)
			}
			if err := sh.compare(j.Shard(i, k)); err != nil {
				return fmt.Errorf("stage %d shard %d: %w", i, k, err)
			}
		}
	}
	return nil
}

func (m *mShard) compare(sh *Shard) error {
	states := [...]string{"pending", "assigned", "running", "done", "dead", "cancelled"}
	if states[sh.State] != m.state || sh.Token != m.token || sh.Due != m.due || int(sh.Tries) != m.tries || int(sh.Fails) != m.fails || int(sh.Losses) != m.losses || int(sh.Defers) != m.defers {
		return fmt.Errorf("%+v, model %+v", sh, m)
	}
	var cp task.Checkpoint
	if c := sh.Checkpoint(); c != nil {
		cp = *c
	}
	if cp.Seq != m.seq || string(cp.Data) != m.data {
		return fmt.Errorf("checkpoint %d %q, model %d %q", cp.Seq, cp.Data, m.seq, m.data)
	}
	have := map[string]string{}
	for _, kv := range sh.Outputs() {
		have[kv.Name] = kv.Value
	}
	if len(have) != len(sh.Outputs()) || !maps.Equal(have, m.outputs) {
		return fmt.Errorf("outputs %v, model %v", sh.Outputs(), m.outputs)
	}
	return nil
}

func (m *model) specOf(c *SubmitJob) *task.Spec {
	spec := &task.Spec{}
	if err := json.Unmarshal(c.Spec, spec); err != nil {
		return nil
	}
	for _, st := range spec.Stages {
		if st.Shards < 1 && !(st.Shards == 0 && (st.Broadcast || st.ShardsFrom != "")) {
			return nil
		}
	}
	return spec
}

func ascending(ks []int) bool {
	return slices.IsSorted(ks) && len(slices.Compact(slices.Clone(ks))) == len(ks)
}
