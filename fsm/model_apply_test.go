package fsm

import (
	"fmt"
	"maps"
	"slices"

	"lanjobs/task"
)

// apply does a command in the model and tells what its answer must be: whether it is accepted, and the answer's lists as text.
func (m *model) apply(c Command) (ok bool, answer string) {
	defer m.fireWaiting()
	switch c := c.(type) {
	case *InitCluster:
		m.cluster = true // every random history knows only one
		return true, ""
	case *Elected:
		return true, ""
	case *NewGeneration:
		m.gen, m.n = max(m.gen+1, c.AtLeast), 0
		return true, ""
	case *RegisterNode:
		return m.register(c)
	case *SetOnline:
		n := m.nodes[c.Node]
		if n == nil || n.gone {
			return false, ""
		}
		n.online = c.Online
		return true, ""
	case *SetNode:
		return m.setNode(c), ""
	case *CreateToken:
		j, there := m.joins[string(c.Hash)]
		if there && j.id == c.ID {
			return true, ""
		}
		for _, other := range m.joins {
			there = there || other.id == c.ID
		}
		if there || !slices.Contains([]Role{"", RoleViewer, RoleOperator, RoleAdmin}, c.Role) {
			return false, ""
		}
		maps.DeleteFunc(m.joins, func(_ string, j *mJoin) bool { return j.until <= m.led })
		m.joins[string(c.Hash)] = &mJoin{c.ID, c.Uses, m.led + c.TTL, c.Role}
		return true, ""
	case *RemoveToken:
		n := len(m.joins)
		maps.DeleteFunc(m.joins, func(_ string, j *mJoin) bool { return j.id == c.ID })
		return len(m.joins) < n, ""
	case *AdmitNode:
		return m.admit(c), ""
	case *SubmitJob:
		return m.submit(c)
	case *CancelJob:
		return m.cancel(c), ""
	case *RetryJob:
		return m.retry(c), ""
	case *CollectJobs:
		for _, id := range c.Jobs {
			j := m.jobs[id]
			window := j != nil && j.spec.IdempotencyKey != "" && j.schedule == "" && m.led-j.submitted < j.spec.IdempotencyWindow
			if j != nil && j.final && m.led-j.ended >= j.spec.Retain && m.led-j.submitted >= requestWindow && !window {
				delete(m.jobs, id)
				delete(m.byReq, j.request)
			}
		}
		return true, ""
	case *Grant:
		return m.grant(c)
	case *Renew:
		return m.renew(c)
	case *Report:
		return m.report(c)
	case *Expire:
		for _, t := range c.Tokens {
			if ref, sh := m.find(t); sh != nil && sh.due <= m.clock {
				m.end(ref, sh, task.Outcome{End: task.EndLeaseExpired})
				m.progress(ref.Job)
			}
		}
		return true, ""
	case *Checkpoint:
		if c.Seq == 0 {
			return false, ""
		}
		sh := m.holder(c.Ref, c.Token)
		if sh == nil || c.Seq < sh.seq || c.Seq == sh.seq && string(c.Data) != sh.data {
			return false, ""
		}
		sh.seq, sh.data = c.Seq, string(c.Data)
		return true, ""
	case *PutOutput:
		if c.Output.Name == "" {
			return false, ""
		}
		sh := m.holder(c.Ref, c.Token)
		if sh == nil {
			return false, ""
		}
		if _, repeated := sh.puts[c.RequestID]; !repeated {
			sh.put(c.Output)
			sh.wrote(c.RequestID, 0)
		}
		return true, ""
	case *PutState:
		return m.putState(c)
	}
	return m.applyMore(c)
}

func (sh *mShard) put(kv task.KV) {
	if sh.outputs == nil {
		sh.outputs = map[string]string{}
	}
	sh.outputs[kv.Name] = kv.Value
}

func (sh *mShard) wrote(r task.RequestID, version uint64) {
	if sh.puts == nil {
		sh.puts = map[task.RequestID]uint64{}
	}
	if r != "" {
		sh.puts[r] = version
	}
}

func (m *model) register(c *RegisterNode) (bool, string) {
	n := m.nodes[c.Info.ID]
	if c.Incarnation == 0 || n == nil && m.cluster || n != nil && (n.gone || c.Incarnation < n.inc) {
		return false, ""
	}
	if n == nil {
		n = &mNode{}
		m.nodes[c.Info.ID] = n
		m.order = append(m.order, c.Info.ID)
	}
	if c.Caring && c.Incarnation > n.inc {
		n.started(m.led, c.Crashes)
	}
	var kept, gone []task.Token
	m.each(func(r task.ShardRef, sh *mShard) {
		if !sh.leased() || sh.node != c.Info.ID {
			return
		}
		if slices.Contains(c.Held, sh.token) {
			kept = append(kept, sh.token)
		} else if c.Incarnation > n.inc {
			gone = append(gone, sh.token)
		}
	})
	n.inc, n.slots, n.online = c.Incarnation, c.Info.Slots, true
	n.labels = c.Info.Labels
	slices.Sort(gone)
	for _, t := range gone {
		ref, sh := m.find(t)
		m.end(ref, sh, task.Outcome{End: task.EndNodeRestarted})
		m.progress(ref.Job)
	}
	slices.Sort(kept)
	return true, fmt.Sprint(kept)
}

func (m *model) setNode(c *SetNode) bool {
	n := m.nodes[c.Node]
	if n == nil || n.gone {
		return false
	}
	switch c.Action {
	case NodeDrain:
		n.drains = true
	case NodeResume:
		n.drains = false
	case NodeRemove, NodeLeave:
		n.gone, n.online = true, false
		for id := range m.jobs {
			m.failGone(id)
		}
	case NodeLabel:
		for _, kv := range c.Labels {
			n.extra = setKV(n.extra, kv)
		}
	case NodeClear:
		n.starts, n.unstable = nil, false
	case NodePromote, NodeDemote:
		n.seat = c.Action
	case NodeAuto:
		n.seat = ""
	default:
		return false
	}
	return true
}

func (m *model) admit(c *AdmitNode) bool {
	j := m.joins[string(c.TokenHash)]
	if !m.cluster || len(c.TokenHash) > 0 && (j == nil || j.until <= m.led || j.role != "") {
		return false
	}
	if n := m.nodes[c.Node]; n != nil {
		return !n.gone && (len(c.TokenHash) == 0 || n.token == j.id) && (n.key == "" || n.key == string(c.Key))
	}
	n := &mNode{key: string(c.Key)}
	if j != nil {
		if j.uses == 0 {
			return false
		}
		j.uses--
		n.token = j.id
	}
	m.nodes[c.Node] = n
	m.order = append(m.order, c.Node)
	return true
}

func (m *model) submit(c *SubmitJob) (bool, string) {
	if id, ok := m.byReq[c.RequestID]; ok {
		return true, string(id)
	}
	spec := m.specOf(c)
	if spec != nil && spec.Schedule != nil {
		return m.submitSchedule(c, spec)
	}
	if m.jobs[c.Job] != nil || spec == nil {
		return false, ""
	}
	for id, j := range m.jobs { // at most one is within its window
		if k := spec.IdempotencyKey; k != "" && j.schedule == "" && j.spec.IdempotencyKey == k && m.led-j.submitted < j.spec.IdempotencyWindow {
			return j.digest == string(c.Digest), string(id)
		}
	}
	if m.queues[queueOf(spec)] == nil {
		return false, ""
	}
	m.byReq[c.RequestID] = c.Job
	m.addJob(c.Job, &mJob{spec: spec, digest: string(c.Digest), request: c.RequestID})
	return true, string(c.Job)
}

func (m *model) addJob(id task.JobID, j *mJob) {
	j.submitted, j.acts, j.kv, j.priority, j.queue = m.led, map[task.RequestID]bool{}, map[string]mValue{}, j.spec.Priority, queueOf(j.spec)
	for _, st := range j.spec.Stages {
		j.stages = append(j.stages, mStage{shards: freshShards(st.Shards)})
	}
	m.jobs[id] = j
	m.progress(id)
}

func freshShards(n int) (out []*mShard) {
	for range n {
		out = append(out, &mShard{state: "pending", reported: map[task.Token]task.NodeID{}})
	}
	return out
}

func (m *model) cancel(c *CancelJob) bool {
	j := m.jobs[c.Job]
	if j == nil || j.acts[c.RequestID] {
		return j != nil
	}
	j.acts[c.RequestID] = true
	if !j.final && !j.cancelling {
		m.stop(j)
	}
	return true
}

func (m *model) stop(j *mJob) {
	j.cancelling = true
	var open []int
	for i := range j.stages {
		if c, _ := j.class(i); c == "open" || c == "waiting" {
			open = append(open, i)
		}
	}
	for _, i := range open {
		j.stages[i].cancelled = true
		for _, sh := range j.stages[i].shards {
			if sh.state == "pending" {
				sh.state, sh.due = "cancelled", 0
			}
		}
	}
}

func (m *model) retry(c *RetryJob) bool {
	j := m.jobs[c.Job]
	if j == nil || j.acts[c.RequestID] {
		return j != nil
	}
	if j.cancelling && !j.final || c.All && !j.final || c.Stage != "" && j.spec.Stage(c.Stage) < 0 {
		return false
	}
	for i := range j.stages {
		if c, _ := j.class(i); c == "open" && j.stages[i].stopping {
			return false
		}
	}
	if m.queues[j.queue] == nil {
		return false
	}
	var some, whole = make([]map[int]bool, len(j.stages)), make([]bool, len(j.stages))
	any := false
	for i := range j.stages {
		some[i] = map[int]bool{}
		st := &j.stages[i]
		never := m.level >= LevelCare && st.cancelled && len(st.shards) == 0 // it was cancelled before it opened
		if (st.none == "bad" || never) && (c.Stage == "" || c.Stage == j.spec.Stages[i].Name) {
			some[i][noShard], any = true, true
		}
		for k, sh := range j.stages[i].shards {
			in := len(c.Shards) == 0
			for _, r := range c.Shards {
				in = in || r.First <= k && k <= r.Last
			}
			if in && (c.Stage == "" || c.Stage == j.spec.Stages[i].Name) && (sh.state == "dead" || sh.state == "cancelled" || sh.state == "done" && c.All) {
				some[i][k], any = true, true
			}
		}
		up := false
		for _, need := range j.spec.Stages[i].Needs {
			n := j.spec.Stage(need)
			whole[i] = whole[i] || whole[n] || len(some[n]) > 0
			_, b := j.class(n)
			up = up || b
		}
		when := j.spec.Stages[i].When
		if cl, _ := j.class(i); whole[i] && cl == "open" || !whole[i] && len(some[i]) > 0 && (when == task.WhenSuccess && up || when == task.WhenFailure && !up) {
			return false
		}
	}
	if !any {
		return false
	}
	j.acts[c.RequestID], j.cancelling, j.expired = true, false, false
	if j.final {
		j.begun, j.started, j.final = true, m.led, false // it may end anew at once
	}
	for i := range j.stages {
		st, id := &j.stages[i], c.Job
		cl, _ := j.class(i)
		if whole[i] || len(some[i]) > 0 {
			st.cancelled, st.none = false, ""
			if cl != "open" {
				st.opened = false
			}
		}
		if spec := &j.spec.Stages[i]; whole[i] && dynamic(spec) {
			for k, sh := range st.shards {
				if sh.state == "done" {
					m.forgetOwn(task.ShardRef{Job: id, Stage: i, Shard: k})
				}
			}
			st.shards, st.items, st.pins = nil, nil, nil
		}
		for k, sh := range j.stages[i].shards {
			if !sh.isDone() || !whole[i] && !some[i][k] {
				continue
			}
			if whole[i] || c.FromStart || sh.state == "done" {
				sh.seq, sh.data, sh.outputs = 0, "", nil
			}
			if sh.state == "done" {
				m.forgetOwn(task.ShardRef{Job: id, Stage: i, Shard: k})
				if sh.skipped == "" {
					sh.unmet = 0
				}
				sh.skipped = ""
			}
			sh.state, sh.due, sh.fails, sh.losses, sh.defers = "pending", 0, 0, 0, 0
		}
	}
	if m.level >= LevelCare {
		m.failGone(c.Job)
	}
	m.progress(c.Job)
	return true
}

func (m *model) grant(c *Grant) (bool, string) {
	n, j := m.nodes[c.Node], m.jobs[c.Job]
	if n == nil || n.gone || n.inc != c.Incarnation || n.drains || !n.online || !ascending(c.Shards) ||
		j == nil || j.final || j.cancelling || c.Stage < 0 || c.Stage >= len(j.stages) {
		return false, ""
	}
	tokens := make([]task.Token, len(c.Shards))
	st, spec := &j.stages[c.Stage], &j.spec.Stages[c.Stage]
	for i, k := range c.Shards {
		sh := m.shard(task.ShardRef{Job: c.Job, Stage: c.Stage, Shard: k})
		class, _ := j.class(c.Stage)
		if sh == nil || class != "open" || sh.state != "pending" || sh.due > m.clock || m.heldBy(c.Node) >= n.slots ||
			spec.Parallelism > 0 && st.count((*mShard).leased) >= spec.Parallelism ||
			j.paused || !m.room(j.queue) || len(st.pins) > 0 && st.pins[k] != c.Node {
			continue
		}
		if m.skipKnown(task.ShardRef{Job: c.Job, Stage: c.Stage, Shard: k}) {
			continue
		}
		if !j.begun {
			j.begun, j.granted, j.started = true, true, m.led
		}
		m.n++
		tokens[i] = task.Token(m.gen<<task.GenerationBits + m.n)
		m.tokens = append(m.tokens, tokens[i])
		sh.state, sh.token, sh.node, sh.due = "assigned", tokens[i], c.Node, m.clock.Add(min(spec.Lease.TTL, task.AssignTTL))
		sh.tries++
	}
	m.progress(c.Job)
	return true, fmt.Sprint(tokens)
}

func (m *model) renew(c *Renew) (bool, string) {
	n := m.nodes[c.Node]
	if n == nil || n.gone || n.inc != c.Incarnation {
		return false, ""
	}
	ttls := make([]task.Millis, len(c.Tokens))
	for i, t := range c.Tokens {
		ref, sh := m.find(t)
		if sh == nil {
			continue
		}
		if sh.node != c.Node {
			m.audited++
			continue
		}
		ttls[i] = m.jobs[ref.Job].spec.Stages[ref.Stage].Lease.TTL
		sh.due, sh.state = m.clock.Add(ttls[i]), "running"
	}
	return true, fmt.Sprint(ttls)
}

func (m *model) report(c *Report) (bool, string) {
	codes := make([]string, len(c.Reports))
	for i, r := range c.Reports {
		ref := task.ShardRef{Job: r.Job, Stage: r.Stage, Shard: r.Shard}
		sh := m.shard(ref)
		switch {
		case slices.Contains([]task.End{task.EndLeaseExpired, task.EndNotConfirmed, task.EndNodeRestarted}, r.Outcome.End):
			codes[i] = "invalid"
		case sh != nil && sh.leased() && sh.token == r.Token && sh.node == c.Node:
			m.end(ref, sh, r.Outcome)
			if r.Outcome.End == task.EndUnmet {
				m.unstart(m.jobs[r.Job])
			}
			sh.reported[r.Token] = c.Node
			for _, kv := range r.Outputs {
				if sh.state == "done" {
					sh.put(kv)
				}
			}
			m.progress(r.Job)
		case sh != nil && sh.reported[r.Token] == c.Node:
		default:
			codes[i] = "stale_token"
			m.audited++
		}
	}
	return true, fmt.Sprint(codes)
}

func (m *model) putState(c *PutState) (bool, string) {
	sh := m.holder(c.Ref, c.Token)
	if sh == nil {
		return false, ""
	}
	j := m.jobs[c.Ref.Job]
	if v, repeated := sh.puts[c.RequestID]; repeated {
		return true, fmt.Sprint(v)
	}
	old := j.kv[c.Key]
	if c.IfVersion != nil && *c.IfVersion != old.version {
		return false, fmt.Sprint(old.version)
	}
	j.version++
	j.kv[c.Key] = mValue{j.version, string(c.Value)}
	sh.wrote(c.RequestID, j.version)
	return true, fmt.Sprint(j.version)
}
