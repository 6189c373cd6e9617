package plan_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
	"lanjobs/task/schedule"
)

// C01: a zone other than the machines' and elections in between: each occurrence fires once.
func TestElectionsFireNothingTwice(t *testing.T) {
	o := newOffice(t, "2026-11-29T17:00:30Z")
	o.set("a", task.Schedule{Cron: "* * * * *", Timezone: "America/New_York"})
	o.set("b", task.Schedule{Cron: "1 12 * * *", Timezone: "America/New_York"})
	o.pass(90 * time.Second)
	for range 5 {
		o.depose()
		o.pass(2 * time.Second)
		o.elect()
		o.pass(58 * time.Second)
	}
	if n := len(o.firings("b")); n != 1 {
		t.Errorf("b fired %d times", n)
	}
	seen := map[string]bool{}
	for _, f := range o.firings("a") {
		if seen[f.nominal] || f.due.Before(o.wall.Add(-10*time.Minute)) || f.at.Sub(f.due) > 5*time.Second {
			t.Errorf("%+v", f)
		}
		seen[f.nominal] = true
	}
	if len(seen) != 7 {
		t.Errorf("a fired for %d of 7 minutes", len(seen))
	}
}

// C06: leaders die over the full minute; every minute fires once, late by the election.
func TestNoMinuteIsLostToElections(t *testing.T) {
	o := newOffice(t, "2026-11-29T00:00:00Z")
	o.set("a", task.Schedule{Cron: "* * * * *"})
	for range 20 {
		o.pass(58 * time.Second)
		o.depose()
		o.pass(17 * time.Second) // to second 15 of the next minute
		o.elect()
		o.pass(45 * time.Second)
	}
	got := o.firings("a")
	for i, f := range got {
		if want := time.Date(2026, 11, 29, 0, i+1, 0, 0, time.UTC); !f.due.Equal(want) || f.at.Sub(f.due) > 17*time.Second+5*time.Second {
			t.Errorf("firing %d: due %s at %s", i, f.due, f.at)
		}
	}
	if len(got) != 40 {
		t.Errorf("%d of 40 minutes", len(got))
	}
	if next, _ := o.timetable.Next(o.s, o.wall); next < 0 {
		t.Errorf("the next lies in the past: %s", next)
	}
}

// C13: a skipped hour and a doubled one.
func TestDaylightSaving(t *testing.T) {
	for _, c := range []struct{ cron, start, fires string }{
		{"30 2 * * *", "2026-03-08T08:00:00Z", "2026-03-08T10:00:00Z"}, // 02:30 is skipped: right after the jump, 03:00 PDT
		{"30 1 * * *", "2026-11-01T07:00:00Z", "2026-11-01T08:30:00Z"}, // 01:30 comes twice: the first time, PDT
	} {
		o := newOffice(t, c.start)
		o.set("a", task.Schedule{Cron: c.cron, Timezone: "America/Los_Angeles"})
		for range 10 {
			o.pass(30 * time.Minute)
			o.elect()
		}
		if got := o.firings("a"); len(got) != 1 || got[0].due.Format(time.RFC3339) != c.fires {
			t.Errorf("%s: %+v", c.cron, got)
		}
	}
}

// C15: the cluster is off for over 12 minutes; each policy does as documented, and the rhythm goes on.
func TestWhatWasMissedWhileTheClusterWasOff(t *testing.T) {
	for misfire, want := range map[task.Misfire]struct{ a, b int }{task.MisfireSkip: {0, 0}, task.MisfireRunOnce: {1, 1}, task.MisfireRunAll: {3, 20}} {
		o := newOffice(t, "2026-11-29T00:00:01Z")
		o.set("a", task.Schedule{Cron: "*/2 * * * *", Misfire: misfire, RunAllMax: 3, Overlap: task.OverlapAllow})
		o.set("b", task.Schedule{Every: 5 * task.Second, Misfire: misfire, RunAllMax: 20, Overlap: task.OverlapAllow})
		o.pass(10 * time.Second)
		before := len(o.firings("b"))
		o.depose()
		o.pass(12*time.Minute + 46*time.Second)
		o.elect()
		o.pass(time.Second)
		if made := len(o.firings("b")) - before; made < want.b || made > want.b+1 { // one may be due at this moment
			t.Errorf("%s: %d runs of b after the break, not %d", misfire, made, want.b)
		}
		if made := len(o.firings("a")); made != want.a { // the last one was due 58 s ago: that is missed
			t.Errorf("%s: %d runs of a after the break, not %d", misfire, made, want.a)
		}
		if a, b := o.s.Schedule("a"), o.s.Schedule("b"); a.Missed != 6 || b.Missed < 140 {
			t.Errorf("%s: %d and %d missed", misfire, a.Missed, b.Missed)
		}
		before = len(o.firings("b"))
		o.pass(time.Minute)
		if n := len(o.firings("b")) - before; n != 12 {
			t.Errorf("%s: %d runs in the next minute", misfire, n)
		}
	}
}

// C17: runs never overlap, whoever leads; what is left out is counted; of a queue at most one waits.
func TestRunsDoNotOverlap(t *testing.T) {
	for _, overlap := range []task.Overlap{task.OverlapSkip, task.OverlapQueue} {
		o := newOffice(t, "2026-11-29T00:00:01Z")
		o.runFor = 45 * time.Second
		o.set("a", task.Schedule{Every: 10 * task.Second, Overlap: overlap})
		for range 15 {
			for range 40 {
				o.pass(time.Second)
				if n := o.s.Live(); n > 1 {
					t.Fatalf("%s: %d runs at once", overlap, n)
				}
			}
			o.depose()
			o.pass(10 * time.Second)
			o.elect()
		}
		if n, skipped := len(o.firings("a")), o.s.Schedule("a").Skipped; n < 12 || skipped == 0 {
			t.Errorf("%s: %d runs, %d skipped", overlap, n, skipped)
		}
	}
}

// Whatever leaders, lost batches and wrong clocks do: no occurrence fires twice, in disorder, or before its schedule was made;
// and once clocks are right again, the rhythm is too.
func TestSchedulesUnderRandomLeaders(t *testing.T) {
	for seed := range int64(seeds(60)) {
		r := rand.New(rand.NewSource(seed))
		o := newOffice(t, "2026-10-24T20:00:00Z")
		start := o.wall
		o.lost = func() bool { return r.Intn(10) == 0 }
		o.set("cron", task.Schedule{Cron: "*/3 * * * *", Timezone: "Europe/Berlin", Overlap: task.OverlapAllow, Misfire: []task.Misfire{task.MisfireSkip, task.MisfireRunOnce, task.MisfireRunAll}[seed%3]})
		o.set("every", task.Schedule{Every: 47 * task.Second, Overlap: task.OverlapAllow, Jitter: 20 * task.Second})
		o.set("turn", task.Schedule{Every: 31 * task.Second, Misfire: task.MisfireRunAll, Jitter: 10 * task.Second})
		o.runFor = time.Duration(r.Intn(50)) * time.Second
		for range 120 {
			o.pass(time.Duration(1+r.Intn(90)) * time.Second)
			switch r.Intn(4) {
			case 0:
				o.depose()
				o.pass(time.Duration(1+r.Intn(40)) * time.Second)
				o.elect()
			case 1:
				o.shift = time.Duration(r.Intn(600)-300) * time.Second // of the leader's clock
			}
		}
		o.shift, o.lost = 0, nil
		o.pass(6 * time.Minute) // past whatever was settled ahead of time
		last := map[string]firing{}
		names := map[string]bool{}
		for _, f := range o.fired {
			if names[f.schedule+f.nominal] || !f.due.After(last[f.schedule].due) || !f.due.After(start) {
				t.Fatalf("seed %d: %+v after %+v", seed, f, last[f.schedule])
			}
			names[f.schedule+f.nominal] = true
			last[f.schedule] = f
		}
		before := len(o.firings("cron"))
		o.pass(30 * time.Minute)
		if n := len(o.firings("cron")) - before; n != 10 {
			t.Fatalf("seed %d: %d of 10 in the half hour after", seed, n)
		}
		for name, e := range map[string]error{"cron": o.timetable.Fault("cron"), "every": o.timetable.Fault("every")} {
			if e != nil {
				t.Fatalf("%s: %v", name, e)
			}
		}
	}
}

// I8-like: years.
func TestAClockThatIsYearsAheadDoesNotEndSchedules(t *testing.T) {
	o := newOffice(t, "2026-11-29T00:00:01Z")
	o.set("a", task.Schedule{Cron: "* * * * *"})
	o.pass(3 * time.Minute)
	o.shift = -20 * 365 * 24 * time.Hour
	o.pass(5 * time.Minute)
	if n := len(o.firings("a")); n != 3 {
		t.Errorf("%d firings with a clock of long ago", n)
	}
	o.shift = 0
	o.pass(time.Minute)
	if n := len(o.firings("a")); n < 4 {
		t.Errorf("%d firings with the clock right again", n)
	}
}

func TestAChangedOrResumedScheduleMakesUpNothing(t *testing.T) {
	o := newOffice(t, "2026-11-29T00:00:01Z")
	o.set("a", task.Schedule{Cron: "* * * * *"})
	o.pass(3 * time.Minute)
	o.apply(&fsm.SetSchedule{Name: "a", Action: fsm.SchedulePause, RequestID: "p"})
	o.pass(20*time.Minute + 30*time.Second)
	if n := len(o.firings("a")); n != 3 {
		t.Fatalf("%d firings, it was paused after 3", n)
	}
	o.apply(&fsm.SetSchedule{Name: "a", Action: fsm.ScheduleResume, RequestID: "q"})
	o.wake = time.Time{}
	o.pass(20 * time.Second)
	if n := len(o.firings("a")); n != 3 || o.s.Schedule("a").Missed != 0 {
		t.Errorf("%d firings, %d missed at the resume", n, o.s.Schedule("a").Missed)
	}
	o.set2("a", task.Schedule{Cron: "*/5 * * * *"})
	o.wake = time.Time{}
	o.pass(10 * time.Minute)
	if n := len(o.firings("a")); n != 5 || o.s.Schedule("a").Missed != 0 {
		t.Errorf("%d firings, not 3 and 2 of the new rhythm; %d missed", n, o.s.Schedule("a").Missed)
	}
}

// An idle cluster with schedules writes at their times and never between; many schedules cost nothing while none is due.
func TestSchedulesWriteNothingBetween(t *testing.T) {
	o := newOffice(t, "2026-11-29T00:00:01Z")
	for i := range 200 {
		o.set(fmt.Sprintf("s%d", i), task.Schedule{Cron: "0 3 * * *"})
	}
	o.set("hourly", task.Schedule{Cron: "0 * * * *"})
	o.runFor = time.Second
	o.written = 0
	o.pass(150 * time.Minute)
	if runs := len(o.firings("hourly")); runs != 2 || o.written != 3*runs { // fire, grant, report
		t.Errorf("%d runs, %d entries", runs, o.written)
	}
}

func BenchmarkTenThousandSchedules(b *testing.B) {
	s := fsm.New()
	now := time.Date(2026, 11, 29, 0, 0, 1, 0, time.UTC)
	for i := range uint64(task.MaxSchedules) {
		full := schedule.Default()
		full.Cron = fmt.Sprintf("%d %d * * *", i%60, i/60%24)
		data, _ := json.Marshal(task.Spec{Name: fmt.Sprintf("s%05d", i), Queue: "default", Priority: 50, Retain: task.Day, Schedule: &full, Stages: []task.StageSpec{simStage("s", 1, 300_000)}})
		res, _ := s.ApplyBatch(i+1, &fsm.Batch{Wall: now.UnixMilli(), Commands: []fsm.Command{&fsm.SubmitJob{RequestID: task.RequestID(fmt.Sprint(i)), Job: "j", Spec: data, Digest: data}}})
		if res[0].Err != nil {
			b.Fatal(res[0].Err)
		}
	}
	v := &plan.View{State: s}
	settle := func(t *plan.Timetable) (plans int) {
		for {
			t.Schedules(v, now)
			plans++
			if wait, _ := t.Next(s, now); wait > 0 {
				return plans
			}
		}
	}
	b.Run("idle", func(b *testing.B) {
		t := plan.NewTimetable(nil)
		settle(t)
		for b.Loop() {
			if cs := t.Schedules(v, now); len(cs) > 0 {
				b.Fatal("something is due")
			}
			t.Next(s, now)
		}
	})
	b.Run("elected", func(b *testing.B) {
		plans := 0
		for b.Loop() {
			plans = settle(plan.NewTimetable(nil))
		}
		b.ReportMetric(float64(plans), "plans")
	})
}
