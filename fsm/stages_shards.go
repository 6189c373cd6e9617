package fsm

import (
	"slices"
	"strings"

	"lanjobs/task"
)

// fixShards gives a stage its shards when it opens, if the spec does not (R23, R24). empty: there is nothing to do, why says the
// reason. Otherwise a reason says why it can have none.
func (s *State) fixShards(j *Job, i int) (empty bool, reason string) {
	st, spec := &j.Stages[i], &j.Spec.Stages[i]
	if !dynamic(spec) || st.shards.n > 0 { // some are done since before a retry
		return false, ""
	}
	var items []string
	var pins []task.NodeID
	if spec.Broadcast {
		if pins = s.fitting(j.Queue(), spec); len(pins) == 0 {
			return false, "no machine fits"
		}
	} else if items, reason = s.lines(j, spec); reason != "" {
		return false, reason
	} else if len(items) == 0 {
		return true, spec.ShardsFrom + " has no lines"
	}
	n := max(len(items), len(pins))
	switch room := min(task.MaxShards-j.shardsTotal(), maxTotalShards-s.shards); {
	case n > room:
		return false, spec.ShardsFrom + " has more than " + itoa(room) + " lines, as many shards as there is room for"
	case spec.ShardKey != "" && len(s.keyAt)+n > maxKeys:
		return false, "the cluster remembers " + itoa(len(s.keyAt)) + " shard keys, at most " + itoa(maxKeys) + " are allowed"
	}
	if problem := s.full((&Stage{Items: items, Pins: pins}).size()); problem != nil {
		return false, problem.Detail
	}
	st.Items, st.Pins = items, pins
	s.weigh(j, st.size())
	st.shards = newCow[Shard](n)
	st.Counts[task.ShardPending] = int32(n)
	s.shards += n
	return false, ""
}

// lines gives the lines of an output of an earlier stage, in the order of its shards, without the empty ones: of the shards that
// succeeded. It stops at more than a job can have.
func (s *State) lines(j *Job, spec *task.StageSpec) (items []string, reason string) {
	from, name := source(&j.Spec.Spec, spec)
	st := &j.Stages[from]
	found := false
	for k := range st.shards.n {
		sh := st.shards.at(k)
		if sh.State != task.ShardSucceeded {
			continue
		}
		for _, kv := range sh.Outputs() {
			if kv.Name != name {
				continue
			}
			found = true
			var lines []string = strings.Split(kv.Value, "\n")
			for _, line := range lines {
				if line = strings.TrimSuffix(line, "\r"); strings.TrimSpace(line) != "" {
					items = append(items, strings.Clone(line))
				}
			}
		}
		if len(items) > task.MaxShards {
			break
		}
	}
	if !found && st.Counts[task.ShardSucceeded] > 0 {
		return nil, "no shard of " + j.Spec.Stages[from].Name + " has an output " + name
	}
	return items, ""
}

// fitting gives the members that meet a stage's requirements and do not refuse its queue, here or not, in order of first registration.
func (s *State) fitting(queue string, spec *task.StageSpec) (out []task.NodeID) {
	for _, n := range s.nodes {
		if n.Gone != "" || n.Incarnation == 0 {
			continue
		}
		info := n.Labelled()
		if len(task.Unmatched(spec.Require, &info)) == 0 && !slices.Contains(info.Refuses, queue) {
			out = append(out, n.Info.ID)
		}
	}
	return out
}

// dropShards takes a stage its shards away again: it gets others when it opens anew.
func (s *State) dropShards(j *Job, i int) {
	st := &j.Stages[i]
	for k := range st.shards.n {
		sh := st.shards.at(k)
		s.weigh(j, -sh.Extra.weight())
		if sh.State == task.ShardSucceeded {
			s.forgetOwn(j, i, k)
		}
	}
	s.weigh(j, -st.size())
	s.shards -= st.shards.n
	st.Items, st.Pins, st.shards, st.Counts, st.Waits = nil, nil, newCow[Shard](0), [task.ShardStates]int32{}, 0
}

// pinGone tells whether the only node that may run a shard is no longer a member.
func (s *State) pinGone(j *Job, stage, shard int) bool {
	pin := j.PinnedTo(stage, shard)
	if pin == "" {
		return false
	}
	n := s.Node(pin)
	return n == nil || n.Gone != ""
}

func (s *State) goneReason(pin task.NodeID) string {
	name := string(pin)
	if n := s.Node(pin); n != nil {
		name = n.Info.Name
	}
	return "its machine " + name + " is no longer a member"
}

// failGone fails the pending shards of an open stage whose only nodes are gone: nobody else may run them.
func (s *State) failGone(j *Job, i int) {
	st := &j.Stages[i]
	failed := false
	for k := range st.Pins {
		if st.State != task.StageOpen || st.shards.at(k).State != task.ShardPending || !s.pinGone(j, i, k) {
			continue
		}
		sh := s.mutShard(j, i, k)
		if sh.Due > s.Clock {
			st.Waits--
		}
		sh.Due = 0
		s.move(st, sh, task.ShardFailed)
		st.ready.clear(k)
		failed = true
		s.emitShard(task.EventShardState, j, i, k, sh, task.Event{From: "pending", To: "failed", Reason: s.goneReason(st.Pins[k])})
	}
	if failed {
		s.failFast(j, i)
	}
}

// failGoneOf fails what waits for a node that has just left.
func (s *State) failGoneOf(id task.NodeID) {
	var seqs []int
	s.Jobs(func(j *Job) bool {
		for i := range j.Stages {
			if j.Stages[i].State == task.StageOpen && slices.Contains(j.Stages[i].Pins, id) {
				seqs = append(seqs, j.Seq)
				break
			}
		}
		return true
	})
	for _, seq := range seqs {
		j := s.mutJob(seq)
		for i := range j.Stages {
			s.failGone(j, i)
			s.stageProgress(j, i)
		}
		s.refreshReady(j)
	}
}

// failFast stops an open stage whose success is out of reach, if it asks for that: what waits is cancelled, what runs is told to
// stop (Stopping).
func (s *State) failFast(j *Job, i int) {
	st, success := &j.Stages[i], j.Spec.Stages[i].Success
	if !success.FailFast || st.State != task.StageOpen || st.Stopping || j.Cancelling {
		return
	}
	n := st.shards.n
	lost := int(st.Counts[task.ShardFailed] + st.Counts[task.ShardCancelled])
	if need := success.Needed(n); n-lost < need {
		st.Stopping = true
		st.Reason = itoa(lost) + " of " + itoa(n) + " failed, " + itoa(need) + " must succeed (success.fail_fast)"
		s.cancelPending(j, i)
	}
}
