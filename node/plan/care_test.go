package plan_test

import (
	"fmt"
	"testing"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

func (b *board) pass(m task.Millis) {
	b.t.Helper()
	for m > 0 {
		b.n++
		b.s.ApplyBatch(b.n, &fsm.Batch{Leader: "a", Elapsed: min(m, fsm.MaxElapsed)})
		m -= fsm.MaxElapsed
	}
}

func TestJobsExpireByStartWithinAndByDeadline(t *testing.T) {
	b := newBoard(t, info("a"), info("b"))
	b.submitSpec("late", task.Spec{Queue: "default", StartWithin: 30_000, Stages: []task.StageSpec{simStage("s", 1, 300_000)}})
	b.submitSpec("long", task.Spec{Queue: "default", Deadline: 60_000, Stages: []task.StageSpec{simStage("s", 2, 300_000)}})
	b.apply(&fsm.Grant{Node: "b", Incarnation: 1, Job: "long", Shards: []int{0}})
	b.pass(29_000)
	if cs := plan.ExpireJobs(b.viewOf(task.Load{})); len(cs) != 0 {
		t.Fatalf("%+v", cs[0])
	}
	b.pass(1_000)
	cs := plan.ExpireJobs(b.viewOf(task.Load{}))
	if len(cs) != 1 || cs[0].(*fsm.ExpireJob).Job != "late" {
		t.Fatalf("%+v", cs)
	}
	b.commit(cs)
	if st := b.s.Job("late").State; st != task.JobExpired {
		t.Errorf("late is %s", st)
	}
	b.pass(30_000)
	b.commit(plan.ExpireJobs(b.viewOf(task.Load{})))
	orders := 0
	b.s.Leases(func(l *fsm.Lease) {
		if _, _, ok := plan.Order(b.s, b.s.Clock, l); ok {
			orders++
		}
	})
	if orders != 1 {
		t.Errorf("%d of the running attempts of the job past its deadline are told to stop", orders)
	}
	if cs := plan.ExpireJobs(b.viewOf(task.Load{})); len(cs) != 0 {
		t.Errorf("again: %+v", cs[0])
	}
}

func TestFailFastStopsTheRest(t *testing.T) {
	b := newBoard(t, info("a"), info("b"))
	st := simStage("s", 3, 300_000)
	st.Success.FailFast, st.Retry.Attempts = true, 1
	b.submit("j", st, 50)
	toks := b.apply(&fsm.Grant{Node: "b", Incarnation: 1, Job: "j", Shards: []int{0, 1}})[0].Tokens
	if _, _, ok := plan.Order(b.s, b.s.Clock, b.s.Lease(toks[1])); ok {
		t.Fatal("it is to stop before anything failed")
	}
	b.apply(&fsm.Report{Node: "b", Reports: []task.Report{{Job: "j", Token: toks[0], Outcome: task.Outcome{End: task.EndExited, ExitCode: 1}}}})
	if reason, _, ok := plan.Order(b.s, b.s.Clock, b.s.Lease(toks[1])); !ok || reason != task.StopCancel {
		t.Errorf("%q %v", reason, ok)
	}
	if got := b.place(4, plan.NewFlight()); len(got) != 0 {
		t.Errorf("more is granted: %v", got)
	}
}

func TestOldJobsAreCollectedByAgeAndByNumber(t *testing.T) {
	b := newBoard(t, info("a"))
	n := task.MaxFinishedJobs + 10
	for i := range n {
		id := fmt.Sprintf("j%05d", i)
		b.submit(id, simStage("s", 1, 300_000), 50)
		b.apply(&fsm.CancelJob{Job: task.JobID(id), RequestID: task.RequestID("c" + id)})
	}
	v := b.viewOf(task.Load{})
	if cs, _ := plan.Collect(v); len(cs) != 0 {
		t.Fatal("a job is forgotten while its submit may still be repeated")
	}
	b.pass(10 * task.Minute)
	cs, _ := plan.Collect(v)
	if len(cs) != 1 || len(cs[0].(*fsm.CollectJobs).Jobs) != 10 || cs[0].(*fsm.CollectJobs).Jobs[0] != "j00000" {
		t.Fatalf("%d commands", len(cs))
	}
	b.commit(cs)
	if cs, _ := plan.Collect(v); len(cs) != 0 {
		t.Fatalf("%d more", len(cs[0].(*fsm.CollectJobs).Jobs))
	}
	for range 9000 { // a day and an hour
		b.pass(10_000)
	}
	if cs, more := plan.Collect(v); len(cs) != 1 || len(cs[0].(*fsm.CollectJobs).Jobs) != 200 || !more {
		t.Fatalf("%d", len(cs))
	}
}
