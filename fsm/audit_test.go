package fsm

import (
	"fmt"
	"strings"
	"testing"

	"lanjobs/task"
)

// audit is a reader of the audit log alone: it must be able to tell at any time who holds what, and the state of each job and
// stage (R37).
type audit struct {
	holds  map[task.Token]string
	states map[string]string
}

func newAudit() *audit { return &audit{map[task.Token]string{}, map[string]string{}} }

func holding(job task.JobID, stage string, shard int, node task.NodeID) string {
	return fmt.Sprintf("%s/%s/%d on %s", job, stage, shard, node)
}

// read takes an event in.
func (a *audit) read(e task.Event) error {
	switch e.Kind {
	case task.EventJobSubmit, task.EventJobState, task.EventStageState:
		what := string(e.Job) + "/" + e.Stage
		if before, known := a.states[what]; e.From != before && (known || e.From != "waiting") || e.From == e.To {
			return fmt.Errorf("%s goes from %q to %q, and was %q", what, e.From, e.To, before)
		}
		a.states[what] = e.To
		return nil
	case task.EventJobCollect:
		for what := range a.states {
			if strings.HasPrefix(what, string(e.Job)+"/") {
				delete(a.states, what)
			}
		}
		return nil
	case task.EventLeaseGrant, task.EventLeaseRelease, task.EventLeaseExpire, task.EventLeaseConfirm, task.EventLeaseRenew:
	default:
		return nil
	}
	ranges, err := task.ParseRanges(e.Shards)
	if err != nil {
		return err
	}
	t, n := e.Token, 0
	for _, r := range ranges {
		for k := r.First; k <= r.Last; k++ {
			what, held := holding(e.Job, e.Stage, k, e.Node), a.holds[t]
			switch {
			case e.Kind == task.EventLeaseGrant && held != "":
				return fmt.Errorf("token %d is granted, and held already: %s, %s", t, what, held)
			case e.Kind == task.EventLeaseGrant:
				a.holds[t] = what
			case held != what:
				return fmt.Errorf("%s of token %d: %s, which was granted as %q", e.Kind, t, what, held)
			case e.Kind != task.EventLeaseConfirm && e.Kind != task.EventLeaseRenew:
				delete(a.holds, t)
			}
			if e.NodeName != string(e.Node) || e.JobName == "" {
				return fmt.Errorf("%+v does not name its node and job", e)
			}
			t++
			n++
		}
	}
	last := e.LastToken
	if n == 1 {
		last = e.Token
	}
	if last != t-1 || (n == 1) != (e.Attempt > 0) || e.Execution != e.Token.Execution() {
		return fmt.Errorf("%+v names %d shards", e, n)
	}
	if (e.Kind == task.EventLeaseRelease || e.Kind == task.EventLeaseExpire) && e.Reason == "" {
		return fmt.Errorf("%+v gives no reason", e)
	}
	return nil
}

// compare tells whether the log and the state agree.
func (a *audit) compare(s *State) error {
	if len(a.holds) != s.LeaseCount() {
		return fmt.Errorf("the audit log shows %d leases, there are %d", len(a.holds), s.LeaseCount())
	}
	for what, state := range a.states {
		id, stage, _ := strings.Cut(what, "/")
		j := s.Job(task.JobID(id))
		if j == nil {
			return fmt.Errorf("the audit log knows job %s", id)
		}
		have := string(j.State)
		if stage != "" {
			have = j.Stages[j.Spec.Stage(stage)].State.String()
		}
		if have != state {
			return fmt.Errorf("%s is %s, in the audit log %s", what, have, state)
		}
	}
	for t, what := range a.holds {
		l := s.Lease(t)
		if l == nil {
			return fmt.Errorf("the audit log shows token %d held: %s", t, what)
		}
		j := s.JobBySeq(l.Seq)
		if have := holding(l.Ref.Job, j.Spec.Stages[l.Ref.Stage].Name, l.Ref.Shard, s.NodeByPlace(l.Node).Info.ID); have != what {
			return fmt.Errorf("token %d: %s, in the audit log %s", t, have, what)
		}
	}
	return nil
}

func TestTheAuditLogTellsALife(t *testing.T) {
	st := stage("main", 4)
	st.Retry.Attempts = 1
	l := newLedger(t)
	var got []string
	note := func(elapsed task.Millis, cs ...Command) {
		t.Helper()
		_, events := l.do(elapsed, cs...)
		for _, e := range events {
			line := fmt.Sprintf("%s %s/%s/%s", e.Kind, e.Job, e.Stage, e.Shards)
			if e.Token != 0 {
				line += fmt.Sprintf(" %d-%d", e.Token, e.LastToken)
			}
			if e.From+e.To != "" {
				line += fmt.Sprintf(" %s>%s", e.From, e.To)
			}
			if e.Reason != "" {
				line += " " + e.Reason
			}
			if e.Expiry != 0 {
				line += fmt.Sprintf(" until %d, ttl %d, renewed %d", e.Expiry, e.TTL, e.LastRenewal)
			}
			got = append(got, line)
		}
	}
	note(0, node("a", 1), submit("j1", st))
	note(5, grant("j1", 0, 0, 1, 2, 3))
	note(5, &Renew{Node: "a", Incarnation: 1, Tokens: []task.Token{1}})
	done := &Report{Node: "a"}
	for k := range 3 { // two of a kind in one line, what follows from the third after its own
		code := k / 2
		done.Reports = append(done.Reports, task.Report{Job: "j1", Shard: k, Token: task.Token(k + 1), Outcome: task.Outcome{End: task.EndExited, ExitCode: code}})
	}
	note(0, done)
	l.lead(task.AssignTTL)
	note(0, &Expire{Tokens: []task.Token{4}}, exit("j1", 0, 3, 4, 0))
	note(0, &CancelJob{Job: "j1", Reason: "enough", By: "anna"})
	want := []string{
		"node.register //",
		"job.submit j1// >pending",
		"stage.state j1/main/ waiting>open",
		"lease.grant j1/main/0-3 1-4 until 30005, ttl 30000, renewed 0",
		"job.state j1// pending>running",
		"lease.confirm j1/main/0 1-0 until 300010, ttl 300000, renewed 0",
		"lease.release j1/main/0-1 1-2 exit 0",
		"lease.release j1/main/2 3-0 exit 1",
		"shard.state j1/main/2 3-0 running>failed exit 1, attempt 1 of 1",
		"lease.expire j1/main/3 4-0 assignment never confirmed until 30005, ttl 0, renewed 0",
		"lease.refuse j1/main/3 4-0 stale token: report of exit 0 refused",
		"job.cancel j1// enough",
		"stage.state j1/main/ open>cancelled enough",
		"job.state j1// running>cancelled enough",
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("line %d:\n%s\nwant\n%s", i, fmt.Sprint(got[min(i, len(got)):]), fmt.Sprint(want[min(i, len(want)):]))
		}
	}
}

func TestReleasesAreGroupedWhereTheirTokensFollowEachOther(t *testing.T) {
	for _, c := range []struct {
		shards []int // in the order of their reports; shard k has token k+1
		codes  []int
		want   string
	}{
		{[]int{0, 1, 2}, []int{0, 0, 0}, "0-2 "},
		{[]int{0, 2, 3}, []int{0, 0, 0}, "0 2-3 "},
		{[]int{1, 0}, []int{0, 0}, "1 0 "},
		{[]int{0, 1, 2}, []int{0, 1, 1}, "0 1-2 "},
	} {
		l := newLedger(t)
		_, log := l.do(0, node("a", 1), submit("j1", stage("main", 4)), grant("j1", 0, 0, 1, 2, 3))
		r := &Report{Node: "a"}
		for i, k := range c.shards {
			r.Reports = append(r.Reports, task.Report{Job: "j1", Shard: k, Token: task.Token(k + 1), Outcome: task.Outcome{End: task.EndExited, ExitCode: c.codes[i]}})
		}
		_, events := l.do(0, r)
		a, got := newAudit(), ""
		for _, e := range append(log, events...) {
			if err := a.read(e); err != nil {
				t.Errorf("%v: %v", c.shards, err)
			}
			if e.Kind == task.EventLeaseRelease {
				got += e.Shards + " "
			}
		}
		if err := a.compare(l.s); err != nil || got != c.want {
			t.Errorf("%v ended with %v: %q, %v", c.shards, c.codes, got, err)
		}
	}
}

// TestEveryActIsInTheAuditLog: what a person or a leader did stands there once, with who asked.
func TestEveryActIsInTheAuditLog(t *testing.T) {
	l := newLedger(t)
	for _, c := range []struct {
		c    Command
		want []task.EventKind
	}{
		{node("a", 1), []task.EventKind{task.EventNodeRegister}},
		{node("a", 1), nil},
		{&Elected{Node: "a", Term: 1}, []task.EventKind{task.EventLeaderElected}},
		{&InitCluster{ID: "c", By: "anna"}, []task.EventKind{task.EventClusterInit}},
		{&CreateToken{ID: "t", Hash: []byte("h"), TTL: task.Hour, Uses: 1, By: "anna"}, []task.EventKind{task.EventTokenCreate}},
		{&AdmitNode{TokenHash: []byte("h"), Node: "b", Name: "b"}, []task.EventKind{task.EventTokenUse, task.EventNodeJoin}},
		{&AdmitNode{TokenHash: []byte("h"), Node: "b", Name: "b"}, nil},
		{&RemoveToken{ID: "t", By: "anna"}, []task.EventKind{task.EventTokenRemove}},
		{&SetOnline{Node: "a"}, []task.EventKind{task.EventNodeOffline}},
		{&SetOnline{Node: "a"}, nil},
		{&SetOnline{Node: "a", Online: true}, []task.EventKind{task.EventNodeOnline}},
		{&SetNode{Node: "a", Action: NodeDrain, By: "anna"}, []task.EventKind{task.EventNodeDrain}},
		{&SetNode{Node: "a", Action: NodeResume, By: "anna"}, []task.EventKind{task.EventNodeResume}},
		{&SetNode{Node: "a", Action: NodeLabel, By: "anna"}, []task.EventKind{task.EventNodeRegister}},
		{&NewGeneration{By: "anna"}, []task.EventKind{task.EventClusterInit}},
		{submit("j1", stage("main", 1)), []task.EventKind{task.EventJobSubmit, task.EventStageState}},
		{submit("j1", stage("main", 1)), nil},
		{grant("j1", 0, 0), []task.EventKind{task.EventLeaseGrant, task.EventJobState}},
		{&Checkpoint{Ref: task.ShardRef{Job: "j1"}, Token: 1<<task.GenerationBits + 1, Seq: 1}, []task.EventKind{task.EventCheckpoint}},
		{&PutOutput{Ref: task.ShardRef{Job: "j1"}, Token: 1<<task.GenerationBits + 1, Output: task.KV{Name: "n"}}, []task.EventKind{task.EventOutput}},
		{&PutState{Ref: task.ShardRef{Job: "j1"}, Token: 1<<task.GenerationBits + 1, Key: "k"}, []task.EventKind{task.EventState}},
		{&CancelJob{Job: "j1", By: "anna"}, []task.EventKind{task.EventJobCancel}},
		{exit("j1", 0, 0, 1<<task.GenerationBits+1, 1), []task.EventKind{task.EventLeaseRelease, task.EventStageState, task.EventJobState}},
		{&RetryJob{Job: "j1", By: "anna"}, []task.EventKind{task.EventJobRetry, task.EventJobState, task.EventStageState, task.EventStageState}},
		{&SetJob{Job: "j1", Action: JobPause, By: "anna"}, []task.EventKind{task.EventJobPause}},
		{&SetJob{Job: "j1", Action: JobPause, By: "anna"}, nil},
		{&SetJob{Job: "j1", Action: JobResume, By: "anna"}, []task.EventKind{task.EventJobResume}},
		{&SetJob{Job: "j1", Action: JobPriority, Priority: 7, By: "anna"}, []task.EventKind{task.EventJobPriority}},
		{&SetQueue{Name: "q", By: "anna"}, []task.EventKind{task.EventQueueSet}},
		{&SetQueue{Name: "q", By: "anna"}, nil},
		{&SetQueue{Name: "q", Remove: true, By: "anna"}, []task.EventKind{task.EventQueueRemove}},
		{scheduled("s", task.OverlapQueue, stage("main", 1)), []task.EventKind{task.EventScheduleSet}},
		{due("s", 100), []task.EventKind{task.EventScheduleFire, task.EventJobSubmit, task.EventStageState}},
		{due("s", 200), []task.EventKind{task.EventScheduleQueue}},
		{due("s", 300), []task.EventKind{task.EventScheduleSkip}},
		{&SkipSchedule{Name: "s", Due: 400}, []task.EventKind{task.EventScheduleSkip}},
		{&CancelJob{Job: "s-100", By: "anna"}, []task.EventKind{task.EventJobCancel, task.EventStageState, task.EventJobState, task.EventScheduleFire, task.EventJobSubmit, task.EventStageState}},
		{&SetSchedule{Name: "s", Action: SchedulePause, By: "anna"}, []task.EventKind{task.EventSchedulePause}},
		{&SetSchedule{Name: "s", Action: ScheduleResume, By: "anna"}, []task.EventKind{task.EventScheduleResume}},
		{&SetSchedule{Name: "s", Action: ScheduleRemove, By: "anna"}, []task.EventKind{task.EventScheduleRemove}},
		{&SetNode{Node: "b", Action: NodeLeave, By: "anna"}, []task.EventKind{task.EventNodeLeave}},
		{&SetNode{Node: "a", Action: NodeRemove, By: "anna"}, []task.EventKind{task.EventNodeRemove}},
	} {
		_, events := l.do(0, c.c)
		var got []task.EventKind
		by := "anna"
		for _, e := range events {
			got = append(got, e.Kind)
			if e.By != "" {
				by = e.By
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) || by != "anna" || len(events) > 0 && events[0].Index != l.i {
			t.Errorf("%T %+v: %v, want %v", c.c, c.c, got, c.want)
		}
	}
}
