package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// work are the routes of the fake API about schedules, queues, dead letters and acts on jobs.
func (f *fakeAPI) work(mux *http.ServeMux) {
	job := func(act func(*fakeJob, *http.Request)) http.HandlerFunc {
		return f.onJob(func(j *fakeJob, r *http.Request) any { act(j, r); return j.view })
	}
	mux.HandleFunc("POST /v1/jobs/{ref}/pause", job(func(j *fakeJob, _ *http.Request) { j.view.Paused = true }))
	mux.HandleFunc("POST /v1/jobs/{ref}/resume", job(func(j *fakeJob, _ *http.Request) { j.view.Paused = false }))
	mux.HandleFunc("POST /v1/jobs/{ref}/priority", job(func(j *fakeJob, r *http.Request) {
		var b transport.PriorityBody
		_ = json.NewDecoder(r.Body).Decode(&b)
		j.view.Priority = *b.Priority
	}))
	mux.HandleFunc("GET /v1/dead", f.locked(func(r *http.Request) any {
		var out []task.DeadGroup
		for _, g := range f.dead {
			if ref := r.URL.Query().Get("job"); ref == "" || ref == string(g.Job) {
				out = append(out, g)
			}
		}
		return list("DeadList", f.view.Index, out)
	}))
	mux.HandleFunc("GET /v1/schedules", f.locked(func(r *http.Request) any { return pageOf(r, "ScheduleList", f.view.Index, f.schedules) }))
	mux.HandleFunc("GET /v1/schedules/{ref}", f.onSchedule(func(s *task.ScheduleView, _ *http.Request) any { return s }))
	mux.HandleFunc("DELETE /v1/schedules/{ref}", f.onSchedule(func(s *task.ScheduleView, _ *http.Request) any {
		gone := *s
		f.schedules = slices.DeleteFunc(f.schedules, func(o task.ScheduleView) bool { return o.Name == gone.Name })
		return gone
	}))
	mux.HandleFunc("POST /v1/schedules/{ref}/pause", f.onSchedule(func(s *task.ScheduleView, _ *http.Request) any { s.State = "paused"; return s }))
	mux.HandleFunc("POST /v1/schedules/{ref}/resume", f.onSchedule(func(s *task.ScheduleView, _ *http.Request) any { s.State = "active"; return s }))
	mux.HandleFunc("POST /v1/schedules/{ref}/trigger", f.onSchedule(func(s *task.ScheduleView, _ *http.Request) any {
		j := f.add(task.Spec{Name: s.Name, Stages: []task.StageSpec{{Name: "main", Shards: 1}}})
		j.view.State = task.JobSucceeded
		return task.SubmitReply{ID: j.view.ID, Name: s.Name, Schedule: s.Name, Note: f.note}
	}))
	mux.HandleFunc("GET /v1/queues", f.locked(func(*http.Request) any { return list("QueueList", f.view.Index, f.queues) }))
	mux.HandleFunc("GET /v1/queues/{ref}", f.onQueue(func(q *task.QueueView, _ *http.Request) any { return q }))
	mux.HandleFunc("POST /v1/queues/{ref}/pause", f.onQueue(func(q *task.QueueView, _ *http.Request) any { q.State = "paused"; return q }))
	mux.HandleFunc("POST /v1/queues/{ref}/resume", f.onQueue(func(q *task.QueueView, _ *http.Request) any { q.State = "open"; return q }))
	mux.HandleFunc("DELETE /v1/queues/{ref}", f.onQueue(func(q *task.QueueView, _ *http.Request) any {
		gone := *q
		f.queues = slices.DeleteFunc(f.queues, func(o task.QueueView) bool { return o.Name == gone.Name })
		return gone
	}))
	mux.HandleFunc("PATCH /v1/queues/{ref}", f.locked(func(r *http.Request) any {
		i := slices.IndexFunc(f.queues, func(q task.QueueView) bool { return q.Name == r.PathValue("ref") })
		if i < 0 {
			i = len(f.queues)
			f.queues = append(f.queues, task.QueueView{Name: r.PathValue("ref"), State: "open", Balance: task.BalanceLeastLoaded})
		}
		var b transport.QueueBody
		_ = json.NewDecoder(r.Body).Decode(&b)
		q := &f.queues[i]
		if b.Max != nil {
			q.Max = *b.Max
		}
		if b.Balance != nil {
			q.Balance = *b.Balance
		}
		return q
	}))
}

func (f *fakeAPI) onSchedule(do func(*task.ScheduleView, *http.Request) any) http.HandlerFunc {
	return f.locked(func(r *http.Request) any {
		for i := range f.schedules {
			if f.schedules[i].Name == r.PathValue("ref") {
				return do(&f.schedules[i], r)
			}
		}
		return task.NewProblem(task.ErrNotFound, fmt.Sprintf("no schedule %q.", r.PathValue("ref")), "All schedules: lanjobs schedule ls")
	})
}

func (f *fakeAPI) onQueue(do func(*task.QueueView, *http.Request) any) http.HandlerFunc {
	return f.locked(func(r *http.Request) any {
		for i := range f.queues {
			if f.queues[i].Name == r.PathValue("ref") {
				return do(&f.queues[i], r)
			}
		}
		return task.NewProblem(task.ErrNotFound, fmt.Sprintf("no queue %q.", r.PathValue("ref")), "There are: default")
	})
}

// submitLines takes a body of many jobs; those called "bad" are refused.
func (f *fakeAPI) submitLines(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := json.NewEncoder(w)
	for d := json.NewDecoder(r.Body); d.More(); {
		var l transport.SubmitLine
		var spec task.Spec
		if err := d.Decode(&l); err != nil || json.Unmarshal(l.Spec, &spec) != nil || l.RequestID == "" || f.writes[string(l.RequestID)] {
			f.t.Errorf("a line of a submit: %+v %v", l, err)
		}
		f.writes[string(l.RequestID)] = true
		if spec.Name == "bad" {
			_ = e.Encode(transport.SubmitAnswer{Problem: task.NewProblem(task.ErrConflict, "the idempotency key was used.", "Take another.")})
			continue
		}
		r := f.submitted(spec)
		if j := f.find(string(r.ID)); j != nil && f.onSubmit != nil {
			go f.onSubmit(j)
		}
		_ = e.Encode(transport.SubmitAnswer{SubmitReply: r})
	}
}

// submitted answers for an accepted job: one with a schedule is none yet.
func (f *fakeAPI) submitted(spec task.Spec) *task.SubmitReply {
	if spec.Schedule == nil {
		return &task.SubmitReply{ID: f.add(spec).view.ID, Name: spec.Name, Note: f.note}
	}
	f.schedules = append(f.schedules, task.ScheduleView{Name: spec.Name, State: "active"})
	return &task.SubmitReply{Name: spec.Name, Schedule: spec.Name, Note: f.note,
		Next: &task.OccurrenceView{Name: "x", Local: "Mon 2026-11-30 03:00:00 CET", Due: time.Date(2026, 11, 30, 2, 0, 0, 0, time.UTC)}}
}

// calendar gives the cluster of the manual's pictures schedules, queues and dead letters.
func calendar(b *bench) {
	at := func(ago time.Duration) time.Time { return b.w.clock.Wall().Add(-ago).UTC() }
	night := time.Date(2026, 11, 30, 2, 0, 0, 0, time.UTC)
	next := func(days int) task.OccurrenceView {
		day := night.AddDate(0, 0, days)
		return task.OccurrenceView{Name: day.Format("2006-01-02") + "T03:00[Europe/Berlin]", Local: day.Format("Mon 2006-01-02") + " 03:00:00 CET", Due: day}
	}
	b.api.schedules = []task.ScheduleView{
		{Name: "nightly-backup", State: "active", When: "every day at 03:00 Europe/Berlin", Queue: "default", Priority: 50, By: "anna", Created: at(72 * time.Hour),
			Schedule: task.Schedule{Cron: "0 3 * * *", Timezone: "Europe/Berlin", Overlap: task.OverlapSkip, Misfire: task.MisfireRunOnce, MisfireGrace: 6 * task.Hour},
			Next:     []task.OccurrenceView{next(0), next(1)}, Last: ptr(next(-1)), Fired: 2, Missed: 1,
			Runs: []task.RunView{{ID: "j7jw01", State: task.JobPending, ScheduledFor: ptr(night.AddDate(0, 0, -1))},
				{ID: "j7hz00", State: task.JobSucceeded, ScheduledFor: ptr(night.AddDate(0, 0, -2)), Started: ptr(night.AddDate(0, 0, -2)), Ended: ptr(night.AddDate(0, 0, -2).Add(250 * time.Second))}}},
		{Name: "once", State: "over", When: "once at 2026-11-28 12:00:00 UTC", Queue: "default", Priority: 50, Created: at(72 * time.Hour), Fired: 1,
			Schedule: task.Schedule{At: "2026-11-28T12:00:00", Timezone: "UTC", Overlap: task.OverlapSkip, Misfire: task.MisfireSkip}, Next: []task.OccurrenceView{}, Runs: []task.RunView{},
			Note: "is over: it has no further time"},
		{Name: "weekly-report", State: "paused", When: "every Monday at 06:00 Europe/Berlin", Queue: "video", Priority: 60, Created: at(72 * time.Hour), Skipped: 3,
			Labels: []task.KV{{Name: "team", Value: "a"}}, Next: []task.OccurrenceView{next(7)}, Note: "lanjobs schedule resume weekly-report"},
	}
	b.api.queues = []task.QueueView{
		{Name: "default", State: "open", Balance: task.BalanceLeastLoaded, Active: 2, Jobs: 1},
		{Name: "video", State: "full", Max: 6, Balance: task.BalanceConsistentHash, Active: 6, Pending: 3, Backoff: 1, Jobs: 1, OldestSeconds: ptr(252.0), By: "anna"},
		{Name: "low", State: "paused", Max: 1, Balance: task.BalanceRoundRobin, Note: "lanjobs queue resume low"},
	}
	b.api.dead = []task.DeadGroup{
		{Job: "j7k2xz", Name: "score", Stage: "main", Error: "exit 1", Count: 2, Shards: "17,40", Example: 17, Node: "nas", Tail: "Traceback\nKeyError: 'a'\n", Retry: "lanjobs retry j7k2xz/main/17,40"},
		{Job: "j7k2xz", Name: "score", Stage: "main", Error: "timed out", Count: 1, Shards: "99", Example: 99, Node: "mini-1", Retry: "lanjobs retry j7k2xz/main/99"},
	}
	score := b.api.find("score")
	score.view.Schedule, score.view.ScheduledFor = "weekly-score", ptr(at(time.Hour))
	score.view.P50Seconds, score.view.P99Seconds, score.view.SuggestedTimeout = ptr(42.0), ptr(65.0), ptr(150.0)
	score.view.Stages[0].TimeoutSeconds = 86400
	score.view.Stages[0].P50Seconds, score.view.Stages[0].P99Seconds, score.view.Stages[0].SuggestedTimeout = ptr(42.0), ptr(65.0), ptr(150.0)
	video := b.api.find("transcode")
	video.view.P50Seconds, video.view.P99Seconds, video.view.SuggestedTimeout = ptr(42.0), ptr(65.0), ptr(150.0)
	video.view.Stages[1].P50Seconds, video.view.Stages[1].P99Seconds, video.view.Stages[1].SuggestedTimeout = ptr(42.0), ptr(65.0), ptr(150.0)
	video.view.Stages[1].TimeoutSeconds = 3 * 3600
	video.view.Ahead, video.view.Beside = ptr(2), ptr(1)
	video.shards[0].Skipped = "j7h2aa"
	for i := range video.shards {
		video.shards[i].Range = &task.ShardRange{Start: int64(i) * 100, End: int64(i+1) * 100}
	}
	b.api.find("nightly-backup").view.Paused = true
}
