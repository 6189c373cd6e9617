package fsm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"lanjobs/task"
)

// scheduled is a submit of a schedule of a name.
func scheduled(name string, overlap task.Overlap, stages ...task.StageSpec) *SubmitJob {
	spec := task.Spec{Name: name, Queue: "default", Retain: task.Hour, Stages: stages,
		Schedule: &task.Schedule{Cron: "* * * * *", Timezone: "UTC", Overlap: overlap, Misfire: task.MisfireRunOnce}}
	data, _ := json.Marshal(spec)
	return &SubmitJob{RequestID: task.RequestID("r-" + name + string(overlap)), Job: task.JobID("unused-" + name), Spec: data, Digest: data}
}

// due is the occurrence of a schedule at a moment, its job named after it.
func due(name string, at int64) *FireSchedule {
	return &FireSchedule{Name: name, Nominal: fmt.Sprint("t", at), Due: at, Job: task.JobID(fmt.Sprint(name, "-", at))}
}

// refused applies commands each alone, at the same moment: nothing may change.
func (l *ledger) refused(code string, cs ...Command) {
	l.t.Helper()
	for _, c := range cs {
		before := l.s.Digest()
		r, _ := l.s.ApplyBatch(l.s.Index, &Batch{Wall: l.s.Wall, Leader: "n1", Commands: []Command{c}})
		if r[0].Err == nil || r[0].Err.Code != code || l.s.Digest() != before {
			l.t.Fatalf("%T %+v is answered %+v, want %s", c, c, r[0].Err, code)
		}
	}
}

// run does a job's only shard.
func (l *ledger) run(job task.JobID) {
	l.t.Helper()
	l.ok(0, exit(string(job), 0, 0, l.one(string(job), 0, 0), 0))
}

func TestAnOccurrenceIsDecidedOnce(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1))
	r := l.ok(0, scheduled("s", task.OverlapAllow, stage("main", 1)))[0]
	if sc := l.s.Schedule("s"); r.Schedule != "s" || r.Existed || r.Job != "" || sc.LastDue != 2 || l.s.JobSeqs() != 0 { // the wall clock of entry 2
		t.Fatalf("%+v, %+v", r, sc)
	}
	if r := l.ok(0, scheduled("s", task.OverlapAllow, stage("main", 1)))[0]; r.Schedule != "s" || !r.Existed {
		t.Fatalf("%+v", r)
	}
	l.refused("conflict", due("s", 2), due("s", 1))
	l.refused("not_found", due("other", 9), &SkipSchedule{Name: "other", Due: 9}, &SetSchedule{Name: "other", Action: SchedulePause})
	if r := l.ok(0, due("s", 100))[0]; r.Job != "s-100" {
		t.Fatalf("%+v", r)
	}
	again := due("s", 100) // by another leader, which has another id for its job
	again.Job = "other"
	l.refused("conflict", again, due("s", 99), &SkipSchedule{Name: "s", Due: 100})
	sameName := due("s", 150) // the same local time at another moment, by other zone data
	sameName.Nominal = "t100"
	l.refused("conflict", sameName)
	l.s = reread(t, l.s)
	l.refused("conflict", again)
	l.ok(0, &SkipSchedule{Name: "s", Nominal: "t300", Due: 300, Missed: 3, Reason: "older than misfire_grace"})
	l.refused("conflict", due("s", 300))
	l.ok(0, scheduled("s", task.OverlapSkip, stage("main", 1))) // another file: what was decided stays decided
	l.refused("conflict", due("s", 300))
	j, sc := l.s.Job("s-100"), l.s.Schedule("s")
	if j.Schedule != "s" || j.ScheduledFor != 100 || sc.Fired != 1 || sc.Missed != 3 || sc.LastJob != "s-100" || sc.LastDue != 300 {
		t.Fatalf("%+v, %+v", j, sc)
	}
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		overlap       task.Overlap
		jobs, skipped int // after four occurrences, of which the first still runs
		later         string
	}{
		{task.OverlapAllow, 4, 0, ""},
		{task.OverlapSkip, 1, 3, ""},
		{task.OverlapQueue, 1, 2, "s-200"},
		{task.OverlapReplace, 1, 2, "s-400"},
	} {
		l := newLedger(t)
		l.ok(0, node("a", 1), scheduled("s", c.overlap, stage("main", 1)), due("s", 100))
		tok := l.one("s-100", 0, 0)
		for _, at := range []int64{200, 300, 400} {
			l.ok(0, due("s", at))
			l.s = reread(t, l.s)
		}
		if sc := l.s.Schedule("s"); l.s.JobSeqs() != c.jobs || sc.Skipped != uint64(c.skipped) || (sc.Waiting != nil) != (c.later != "") || sc.LastDue != 400 {
			t.Errorf("%s: %d jobs, %+v", c.overlap, l.s.JobSeqs(), sc)
		}
		if cancelling := l.s.Job("s-100").Cancelling; cancelling != (c.overlap == task.OverlapReplace) {
			t.Errorf("%s: cancelling %v", c.overlap, cancelling)
		}
		if c.overlap == task.OverlapReplace { // the old one is gone before the new one starts (C17)
			l.ok(0, &Report{Node: "a", Reports: []task.Report{{Job: "s-100", Token: tok, Outcome: task.Outcome{End: task.EndCancelled}}}})
		} else {
			l.ok(0, exit("s-100", 0, 0, tok, 0))
		}
		if j := l.s.Job(task.JobID(c.later)); c.later != "" && (j == nil || j.State.Final()) {
			t.Errorf("%s: %s did not start when the one before had ended", c.overlap, c.later)
		}
		if n := l.s.JobSeqs(); c.later != "" && n != c.jobs+1 || c.later == "" && n != c.jobs {
			t.Errorf("%s: %d jobs at the end", c.overlap, n)
		}
	}
}

// C10: a run that was lost with its machine does not block its schedule for ever.
func TestC10ALostRunDoesNotBlockItsSchedule(t *testing.T) {
	st := stage("main", 1)
	st.Retry.LeaseLosses = 1
	l := newLedger(t)
	l.ok(0, node("a", 1), scheduled("s", task.OverlapSkip, st), due("s", 100))
	l.one("s-100", 0, 0)
	l.ok(0, due("s", 200))
	l.lead(task.AssignTTL)
	l.expire()
	if r := l.ok(0, due("s", 300))[0]; r.Job != "s-300" {
		t.Fatalf("%+v, %+v", r, l.s.Schedule("s"))
	}
}

func TestRunNow(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), scheduled("s", task.OverlapSkip, stage("main", 1)), &SetSchedule{Name: "s", Action: SchedulePause})
	l.refused("conflict", due("s", 100))
	now := due("s", 1)
	now.Manual, now.RequestID, now.By = true, "m1", "anna"
	if r := l.ok(0, now)[0]; r.Job != "s-1" || l.s.Schedule("s").LastDue != 1 {
		t.Fatalf("%+v, %+v", r, l.s.Schedule("s"))
	}
	if r := l.ok(0, now)[0]; r.Job != "s-1" || !r.Existed {
		t.Fatalf("a repeat made %+v", r)
	}
	second := due("s", 2)
	second.Manual, second.RequestID = true, "m2"
	l.refused("conflict", second)
	l.run("s-1")
	if r := l.ok(0, second)[0]; r.Job != "s-2" {
		t.Fatalf("%+v", r)
	}
	if r := l.ok(0, &SetSchedule{Name: "s", Action: ScheduleResume})[0]; r.Existed || l.s.Schedule("s").LastDue != int64(l.i) {
		t.Fatalf("%+v: what lay in the pause counts as missed", l.s.Schedule("s"))
	}
}

func TestARemovedScheduleLeavesItsJobs(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), &SetQueue{Name: "q"})
	c := scheduled("s", task.OverlapQueue, stage("main", 1))
	c.Spec = []byte(strings.Replace(string(c.Spec), `"queue":"default"`, `"queue":"q"`, 1))
	l.ok(0, c, due("s", 100), due("s", 200))
	l.refused("conflict", &SetQueue{Name: "q", Remove: true})
	l.ok(0, &SetSchedule{Name: "s", Action: ScheduleRemove, RequestID: "x"})
	l.ok(0, &SetSchedule{Name: "s", Action: ScheduleRemove, RequestID: "x"})
	if r := l.ok(0, c)[0]; !r.Existed || l.s.Schedule("s") != nil {
		t.Fatal("a late repeat of its submit brought it back")
	}
	l.refused("conflict", &SetQueue{Name: "q", Remove: true})
	l.run("s-100")
	if l.s.JobSeqs() != 1 {
		t.Fatal("an occurrence of a removed schedule fired")
	}
	l.ok(0, &SetQueue{Name: "q", Remove: true})
	l.refused("conflict", &RetryJob{Job: "s-100", All: true})
	l.s.ApplyBatch(9, &Batch{Idle: task.Day})
	l.ok(0, &CollectJobs{Jobs: []task.JobID{"s-100"}})
	if len(l.s.specs) != 0 || l.s.weight != 0 {
		t.Fatalf("%d specs, %d bytes are left", len(l.s.specs), l.s.weight)
	}
}

func TestWithoutRoomAnOccurrenceIsSkipped(t *testing.T) {
	l := newLedger(t)
	l.ok(0, scheduled("s", task.OverlapAllow, stage("main", 1)))
	l.s.shards = maxTotalShards
	r, _ := l.s.ApplyBatch(9, &Batch{Commands: []Command{due("s", 100)}})
	l.s.shards = 0
	if sc := l.s.Schedule("s"); r[0].Err != nil || r[0].Job != "" || sc.Skipped != 1 || sc.LastDue != 100 {
		t.Fatalf("%+v, %+v", r, sc)
	}
}

// TestAYearOfAScheduleEveryMinute keeps the state bounded, and each of its half a million runs is made once.
func TestAYearOfAScheduleEveryMinute(t *testing.T) {
	minutes := 365 * 24 * 60
	if testing.Short() {
		minutes /= 12
	}
	s := New()
	c := scheduled("s", task.OverlapSkip, stage("main", 1))
	c.Spec = []byte(strings.Replace(string(c.Spec), `"retain":3600000`, `"retain":2592000000`, 1)) // 30 days
	s.ApplyBatch(1, &Batch{Wall: 1, Commands: []Command{node("a", 1), c}})
	var report *Report
	largest := int64(0)
	for i := 1; i <= minutes; i++ {
		at := int64(i) * int64(task.Minute)
		f := &FireSchedule{Name: "s", Nominal: "", Due: at, Job: task.JobID("j" + itoa(i))}
		b := &Batch{Wall: at, Idle: task.Minute, Commands: []Command{f, &Grant{Node: "a", Incarnation: 1, Job: f.Job, Shards: []int{0}}}}
		if report != nil {
			b.Commands = append([]Command{report}, b.Commands...)
		}
		if i%200 == 0 {
			b.Commands = append(b.Commands, &CollectJobs{Jobs: s.CollectableJobs(200)})
		}
		r, _ := s.ApplyBatch(uint64(i), b)
		n := len(r) - 1
		if i%200 == 0 {
			n--
			if again, _ := s.ApplyBatch(uint64(i), &Batch{Wall: at, Commands: []Command{f}}); again[0].Err == nil {
				t.Fatalf("minute %d fired twice", i)
			}
		}
		if r[n-1].Job != f.Job || len(r[n].Tokens) != 1 || r[n].Tokens[0] == 0 {
			t.Fatalf("minute %d: %+v", i, r)
		}
		report = exit(string(f.Job), 0, 0, r[n].Tokens[0], 0)
		largest = max(largest, int64(len(s.jobAt)))
	}
	if sc := s.Schedule("s"); sc.Fired != uint64(minutes) || sc.Skipped != 0 || sc.Missed != 0 || len(sc.Recent) != recentRuns {
		t.Fatalf("%+v", sc)
	}
	if largest > task.MaxFinishedJobs+500 || len(s.jobs.pages) > 60 || s.weight > 1<<20 || len(s.expiries)+len(s.waits)+len(s.acts) > 0 {
		t.Fatalf("%d jobs, %d pages, %d bytes", largest, len(s.jobs.pages), s.weight)
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
}
