package fsm

import (
	"errors"
	"fmt"

	"lanjobs/task"
)

// Check tests every law of doc.go that a state can show by itself. It is run after each step of the tests and on every
// snapshot that is read; an error means a bug or damaged data, never a user's mistake.
func (s *State) Check() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for id, i := range s.nodeAt {
		if int(i) >= len(s.nodes) || s.nodes[i].Info.ID != id {
			fault("node %s is not at its place", id)
		}
	}
	if len(s.nodeAt) != len(s.nodes) {
		fault("%d nodes, %d ids", len(s.nodes), len(s.nodeAt))
	}
	leased, live := 0, 0
	seen := map[task.Token]bool{}
	newest := task.Token(s.Generation<<task.GenerationBits | s.nextToken)
	for seq := range s.jobs.n {
		j := *s.jobs.at(seq)
		if j == nil {
			continue
		}
		if !j.State.Final() {
			live++
		}
		for si := range j.Stages {
			leased += s.checkStage(j, si, seen, newest, fault)
		}
		if j.State.Final() {
			for si := range j.Stages {
				if !j.Stages[si].State.Done() {
					fault("job %s is %s but stage %d is %s", j.ID, j.State, si, j.Stages[si].State)
				}
			}
		}
		if len(errs) > 20 {
			break
		}
	}
	if leased != len(s.leases) && len(errs) == 0 {
		fault("%d shards are leased, %d leases are indexed", leased, len(s.leases))
	}
	if live != s.live {
		fault("%d jobs are live, %d are counted", live, s.live)
	}
	return errors.Join(errs...)
}

func (s *State) checkStage(j *Job, si int, seen map[task.Token]bool, newest task.Token, fault func(string, ...any)) (leased int) {
	st := &j.Stages[si]
	counts, waits := [task.ShardStates]int32{}, int32(0)
	for k := range st.shards.n {
		sh := st.shards.at(k)
		counts[sh.State]++
		name := fmt.Sprintf("%s/%s/%d", j.ID, j.Spec.Stages[si].Name, k)
		if sh.Token > newest {
			fault("%s has token %d, newest is %d", name, sh.Token, newest)
		}
		if sh.Tries > 0 && int(sh.Node) >= len(s.nodes) || sh.Node < 0 {
			fault("%s was on a node that does not exist", name)
			continue
		}
		if sh.State.Leased() {
			leased++
			l := s.leases[sh.Token]
			if seen[sh.Token] || l == nil || l.Ref.Shard != k || l.Ref.Stage != si || l.Ref.Job != j.ID || l.Node != sh.Node {
				fault("%s is %s under token %d, which is not its lease", name, sh.State, sh.Token)
			}
			seen[sh.Token] = true
			if st.State != task.StageOpen {
				fault("%s is %s in a stage that is %s", name, sh.State, st.State)
			}
			if s.due > sh.Due {
				fault("%s falls due at %d, the bound is %d", name, sh.Due, s.due)
			}
		}
		if st.State == task.StageOpen && st.ready != nil {
			ready := sh.State == task.ShardPending && sh.Due <= s.Clock
			if ready != st.ready.has(k) {
				fault("%s is %s (due %d, clock %d) but ready=%v", name, sh.State, sh.Due, s.Clock, st.ready.has(k))
			}
			if sh.State == task.ShardPending && sh.Due > s.Clock {
				waits++
			}
		}
	}
	if counts != st.Counts {
		fault("%s/%s counts %v, has %v", j.ID, j.Spec.Stages[si].Name, st.Counts, counts)
	}
	if st.State == task.StageOpen && waits != st.Waits {
		fault("%s/%s counts %d waiting, has %d", j.ID, j.Spec.Stages[si].Name, st.Waits, waits)
	}
	if p := j.Spec.Stages[si].Parallelism; p > 0 && st.Active() > p {
		fault("%s/%s runs %d of at most %d", j.ID, j.Spec.Stages[si].Name, st.Active(), p)
	}
	return leased
}
