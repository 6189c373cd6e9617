package api

import (
	"strings"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

const nightly = "name: nightly\nlabels: {team: media}\nschedule: {cron: \"0 3 * * *\", timezone: Europe/Berlin}\nrun: echo hi\n"

// scheduled is a cluster with the schedule nightly, submitted an hour ago.
func scheduled(t *testing.T, more ...string) *cluster {
	c := newCluster(t)
	for _, text := range append([]string{nightly}, more...) {
		c.ask("POST", "/v1/jobs", text).ok(nil)
	}
	c.lead(time.Hour)
	return c
}

func TestAJobWithAScheduleIsASchedule(t *testing.T) {
	c := newCluster(t)
	var r task.SubmitReply
	a := c.ask("POST", "/v1/jobs", nightly, transport.HeaderRequestID, "q1").ok(&r)
	if a.status != 201 || r.ID != "" || r.Schedule != "nightly" || r.Existed || a.header.Get("Location") != "/v1/schedules/nightly" {
		t.Fatalf("%d %+v", a.status, r)
	}
	// noon in UTC is 13:00 in Berlin; 03:00 there is 02:00 in UTC.
	if r.Next == nil || !r.Next.Due.Equal(time.Date(2026, 11, 30, 2, 0, 0, 0, time.UTC)) || r.Next.Local != "Mon 2026-11-30 03:00:00 CET" {
		t.Errorf("next %+v", r.Next)
	}
	a = c.ask("POST", "/v1/jobs", strings.Replace(nightly, "echo hi", "echo ho", 1)).ok(&r)
	if a.status != 200 || !r.Existed || c.state.Schedule("nightly").Spec.Stages[0].Run != "echo ho" || c.state.JobSeqs() != 0 {
		t.Errorf("changed: %d %+v", a.status, r)
	}
	c.ask("POST", "/v1/jobs?dry_run=1", nightly).ok(nil)
}

func TestScheduleViews(t *testing.T) {
	c := scheduled(t, "name: beat\nschedule: {every: 1h}\nqueue: default\nrun: x\n", "name: past\nschedule: {at: \"2026-12-01T00:00:00\"}\nrun: x\n")
	c.do(0, &fsm.FireSchedule{Name: "beat", Nominal: "2026-11-29T12:00:00Z", Due: noon.UnixMilli(), Job: "jbeat1"})
	c.do(0, &fsm.FireSchedule{Name: "past", Nominal: "2026-12-01T00:00[UTC]", Due: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC).UnixMilli(), Job: "jpast1"})
	c.get("/v1/schedules").golden("schedules.json")
	c.get("/v1/schedules/nightly?next=3").golden("schedule.json")
	var one task.ScheduleView
	c.get("/v1/schedules/nightly?next=0").ok(&one)
	if len(one.Next) != 0 || one.State != "active" {
		t.Errorf("%+v", one)
	}
	c.get("/v1/schedules/past").ok(&one)
	if one.State != "over" || len(one.Next) != 0 || len(one.Runs) != 1 || one.Runs[0].ID != "jpast1" {
		t.Errorf("%+v", one)
	}
	var l task.List[task.ScheduleView]
	c.get("/v1/schedules?limit=2").ok(&l)
	if len(l.Items) != 2 || l.Next != "nightly" {
		t.Fatalf("%+v", l)
	}
	c.get("/v1/schedules?limit=2&after=" + l.Next).ok(&l)
	if len(l.Items) != 1 || l.Items[0].Name != "past" || l.Next != "" {
		t.Errorf("%+v", l)
	}
	c.get("/v1/schedules/nigthly").problem(404, "not_found", `no schedule "nigthly". Did you mean "nightly"?`)
	c.get("/v1/schedules/nightly?next=x").problem(400, "invalid", "is not a number")
}

func TestActsOnASchedule(t *testing.T) {
	c := scheduled(t)
	var s task.ScheduleView
	c.ask("POST", "/v1/schedules/nightly/pause", "").ok(&s)
	if s.State != "paused" || !s.Schedule.Paused || len(s.Next) == 0 || s.Note != "lanjobs schedule resume nightly" {
		t.Errorf("%+v", s)
	}
	c.ask("POST", "/v1/schedules/nightly/resume", "{}").ok(&s)
	if s.State != "active" || s.Schedule.Paused {
		t.Errorf("%+v", s)
	}
	c.ask("POST", "/v1/schedules/nope/pause", "").problem(404, "not_found", "no schedule")
	var r task.SubmitReply
	a := c.ask("POST", "/v1/schedules/nightly/trigger", "", transport.HeaderRequestID, "t1").ok(&r)
	j := c.state.Job(r.ID)
	if a.status != 201 || j == nil || j.Schedule != "nightly" || j.By != "anna" || r.Schedule != "nightly" {
		t.Fatalf("%+v %+v", r, j)
	}
	c.ask("POST", "/v1/schedules/nightly/trigger", "", transport.HeaderRequestID, "t1").ok(&r)
	if r.ID != j.ID || c.state.JobSeqs() != 1 {
		t.Errorf("a repeat made %s, %d jobs", r.ID, c.state.JobSeqs())
	}
	c.ask("POST", "/v1/schedules/nightly/trigger", "").problem(409, "conflict", "overlap: skip")
	c.ask("POST", "/v1/schedules/nope/trigger", "").problem(404, "not_found", "no schedule")
	var v task.JobView
	c.get("/v1/jobs/nightly").ok(&v)
	if v.Schedule != "nightly" || v.ScheduledFor == nil {
		t.Errorf("%+v", v)
	}
	c.ask("DELETE", "/v1/schedules/nightly", "").ok(&s)
	if c.state.Schedule("nightly") != nil || c.state.Job(j.ID) == nil || s.Name != "nightly" {
		t.Error("not removed, or with its jobs")
	}
	c.get("/v1/schedules/nightly").problem(404, "not_found", "")
}

// Who repeats a request, as a client does whose answer was lost, is not told that the schedule which it made was there before.
func TestARepeatedSubmitOfASchedule(t *testing.T) {
	c := newCluster(t)
	send := func(id, file string) (r task.SubmitReply) {
		c.ask("POST", "/v1/jobs", file, transport.HeaderRequestID, id).ok(&r)
		return r
	}
	other := strings.Replace(nightly, "run: ", "run: true; ", 1)
	for _, x := range []struct {
		what, id, file string
		existed        bool
		note           string
	}{
		{"made", "q1", nightly, false, ""},
		{"repeated", "q1", nightly, false, ""},
		{"the same again by another request", "q2", nightly, true, ""},
		{"changed", "q3", other, true, ""},
		{"repeated when it has been changed since", "q1", nightly, false, "it has been changed since by anna"},
	} {
		if r := send(x.id, x.file); r.Existed != x.existed || r.Note != x.note || r.Schedule != "nightly" || r.Next == nil {
			t.Errorf("%s: %+v", x.what, r)
		}
	}
	c.ask("DELETE", "/v1/schedules/nightly", "").ok(nil)
	if r := send("q1", nightly); r.Existed || r.Note != "it was removed since" || r.Next != nil {
		t.Errorf("repeated when it has been removed since: %+v", r)
	}
}

func TestATriggeredRunWaitsForTheOneBefore(t *testing.T) {
	c := scheduled(t, strings.NewReplacer("nightly", "queued", "Europe/Berlin", "Europe/Berlin, overlap: queue").Replace(nightly))
	var first, second task.SubmitReply
	c.ask("POST", "/v1/schedules/queued/trigger", "").ok(&first)
	c.ask("POST", "/v1/schedules/queued/trigger", "").ok(&second)
	if second.ID == "" || c.state.Job(second.ID) != nil || second.Note != "it starts when run "+string(first.ID)+" has ended" {
		t.Errorf("%+v", second)
	}
	var s task.ScheduleView
	c.get("/v1/schedules/queued").ok(&s)
	if s.Waiting == nil || s.Note != "the next run starts when "+string(first.ID)+" has ended" {
		t.Errorf("%+v", s)
	}
	c.run("n3", first.ID, 0, 0)
	if c.state.Job(second.ID) == nil {
		t.Error("it did not start")
	}
}

func TestAScheduleWhoseLastTimeLiesAhead(t *testing.T) {
	c := scheduled(t)
	ahead := noon.Add(72 * time.Hour)
	c.do(0, &fsm.FireSchedule{Name: "nightly", Nominal: "x", Due: ahead.UnixMilli(), Job: "jx"})
	var s task.ScheduleView
	c.get("/v1/schedules/nightly").ok(&s)
	if !strings.Contains(s.Note, "3d ahead of the leader's clock") || !s.Next[0].Due.After(ahead) {
		t.Errorf("%q %+v", s.Note, s.Next)
	}
}
