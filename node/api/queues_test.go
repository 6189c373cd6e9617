package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
)

func TestQueues(t *testing.T) {
	c := newCluster(t)
	var q task.QueueView
	c.ask("PATCH", "/v1/queues/video", `{"max":1,"balance":"modulo"}`).ok(&q)
	if q.Name != "video" || q.Max != 1 || q.Balance != "modulo" || q.State != "open" || q.By != "anna" {
		t.Errorf("%+v", q)
	}
	c.ask("PATCH", "/v1/queues/video", `{"balance":"round-robin"}`).ok(&q)
	if q.Max != 1 || q.Balance != "round-robin" {
		t.Errorf("what the body has not is changed: %+v", q)
	}
	id := c.submit("name: film\nqueue: video\nshards: 3\nrun: echo\n")
	c.lead(90 * time.Second)
	c.confirm("n3", c.grant("n3", id, 0, 0)...)
	c.get("/v1/queues").golden("queues.json")
	c.get("/v1/queues/video").ok(&q)
	if q.State != "full" || q.Active != 1 || q.Pending != 2 || q.Jobs != 1 || q.OldestSeconds == nil {
		t.Errorf("%+v", q)
	}
	c.ask("DELETE", "/v1/queues/video", "").problem(409, "conflict", "1 unfinished job or schedule uses")
	c.ask("DELETE", "/v1/queues/default", "").problem(409, "conflict", "always there")
	c.ask("POST", "/v1/queues/video/pause", "").ok(&q)
	if q.State != "paused" || q.Note != "lanjobs queue resume video" {
		t.Errorf("%+v", q)
	}
	c.ask("POST", "/v1/queues/video/resume", "").ok(&q)
	if q.State != "full" {
		t.Errorf("%+v", q)
	}
	c.ask("PATCH", "/v1/queues/fresh", `{}`).ok(&q)
	c.ask("DELETE", "/v1/queues/fresh", "").ok(&q)
	if c.state.Queue("fresh") != nil || q.Name != "fresh" {
		t.Errorf("%+v", q)
	}
	if err := c.state.Check(); err != nil {
		t.Error(err)
	}
}

func TestQueuesThatAreNotThere(t *testing.T) {
	c := newCluster(t)
	c.ask("PATCH", "/v1/queues/video", `{"max":2}`).ok(nil)
	n := len(c.commands)
	c.get("/v1/queues/vidoe").problem(404, "not_found", `no queue "vidoe". Did you mean "video"? | There are: default, video. A new one: lanjobs queue set vidoe`)
	c.ask("POST", "/v1/queues/vidoe/pause", "").problem(404, "not_found", "Did you mean")
	c.ask("DELETE", "/v1/queues/vidoe", "").problem(404, "not_found", "Did you mean")
	for body, words := range map[string]string{`{"max":-1}`: "max -1 is not from 0", `{"max":"x"}`: "cannot be read", `{"balance":"modolo"}`: `Did you mean "modulo"?`,
		`{"balance":"best"}`: "one of least-loaded", `{"limit":1}`: "unknown field"} {
		c.ask("PATCH", "/v1/queues/video", body).problem(400, "invalid", words)
	}
	c.ask("PATCH", "/v1/queues/Video!", `{"max":1}`).problem(400, "invalid", `the queue name "Video!" is not allowed`)
	if len(c.commands) != n {
		t.Error("something was proposed")
	}
	job := "name: film\nqueue: vidoe\nrun: echo\n"
	c.ask("POST", "/v1/jobs", job).problem(404, "not_found", `no queue "vidoe". Did you mean "video"?`)
	c.ask("POST", "/v1/jobs?dry_run=1", job).problem(404, "not_found", `no queue "vidoe". Did you mean "video"?`)
}

func TestPauseResumeAndPriorityOfAJob(t *testing.T) {
	c := newCluster(t)
	c.submit("name: a\nshards: 3\nrun: echo\n")
	var v task.JobView
	c.ask("POST", "/v1/jobs/a/pause", "").ok(&v)
	if !v.Paused || v.Note != "is paused: lanjobs resume j7k3q9" || v.Ahead != nil {
		t.Errorf("%+v", v)
	}
	if toks := c.do(0, &fsm.Grant{Node: "n3", Incarnation: 1, Job: "j7k3q9", Shards: []int{0}})[0].Tokens; toks[0] != 0 {
		t.Error("a shard of a paused job was granted")
	}
	c.ask("POST", "/v1/jobs/a/resume", "").ok(&v)
	if v.Paused || v.Note != "" {
		t.Errorf("%+v", v)
	}
	c.ask("POST", "/v1/jobs/a/priority", `{"priority":90}`).ok(&v)
	if v.Priority != 90 {
		t.Errorf("%+v", v)
	}
	for _, body := range []string{`{}`, `{"priority":101}`, `{"priority":-1}`} {
		c.ask("POST", "/v1/jobs/a/priority", body).problem(400, "invalid", "from 0 to 100")
	}
	c.ask("POST", "/v1/jobs/b/pause", "").problem(404, "not_found", "no job")
	c.do(0, &fsm.CancelJob{Job: "j7k3q9"})
	c.ask("POST", "/v1/jobs/a/pause", "").problem(409, "conflict", "has ended: cancelled")
}

// TestPlaceInTheQueue: higher priorities go first, the same share; other queues and paused jobs do not count.
func TestPlaceInTheQueue(t *testing.T) {
	c := newCluster(t)
	c.ask("PATCH", "/v1/queues/video", `{}`).ok(nil)
	for _, text := range []string{"name: a\nrun: echo\n", "name: v\nqueue: video\nrun: echo\n", "name: b\nrun: echo\n", "name: c\npriority: 90\nrun: echo\n", "name: d\nrun: echo\n"} {
		c.submit(text)
	}
	c.ask("POST", "/v1/jobs/b/pause", "").ok(nil)
	place := func(name string) string {
		var v task.JobView
		if c.get("/v1/jobs/" + name).ok(&v); v.Ahead == nil {
			return "none"
		}
		return fmt.Sprintf("%d %d", *v.Ahead, *v.Beside)
	}
	for name, want := range map[string]string{"c": "0 0", "a": "1 1", "b": "none", "d": "1 1", "v": "0 0"} {
		if got := place(name); got != want {
			t.Errorf("%s has %s, want %s", name, got, want)
		}
	}
	c.run("n3", "j7k3q9", 0, 0)
	if got := place("d"); got != "1 0" {
		t.Errorf("d has %s after a has ended", got)
	}
}

func TestRunTimes(t *testing.T) {
	c := newCluster(t)
	id := c.submit("name: a\nshards: 3\nrun: echo\n")
	var v task.JobView
	if c.get("/v1/jobs/a").ok(&v); v.P50Seconds != nil || v.SuggestedTimeout != nil {
		t.Errorf("before the first end: %+v", v)
	}
	for k, d := range []time.Duration{2 * time.Second, 40 * time.Second, 4 * time.Second} {
		tok := c.grant("n3", id, 0, k)
		c.confirm("n3", tok...)
		c.lead(d)
		c.exit("n3", id, 0, k, tok[0], task.Outcome{End: task.EndExited})
	}
	c.get("/v1/jobs/a").ok(&v)
	if v.P50Seconds == nil || *v.P50Seconds != 4 || *v.P99Seconds != 40 || *v.SuggestedTimeout != 90 || *v.Stages[0].SuggestedTimeout != 90 || v.Stages[0].TimeoutSeconds != 86400 {
		t.Errorf("%v %v %v %+v", v.P50Seconds, v.P99Seconds, v.SuggestedTimeout, v.Stages[0])
	}
	var l task.List[task.JobView]
	if c.get("/v1/jobs").ok(&l); l.Items[0].P50Seconds != nil {
		t.Error("lists have no run times")
	}
}

// TestSuggestedTimeouts are 2 to 3 times P99, and never below 10 s.
func TestSuggestedTimeouts(t *testing.T) {
	for ms := task.Millis(1); ms < 30*task.Day; ms += ms/50 + 1 {
		got, p99 := suggestTimeout(ms), seconds(ms)
		if got < 2*p99 || got > 3*p99 && got > 10 {
			t.Fatalf("P99 of %gs suggests %gs", p99, got)
		}
	}
}

func TestPercentiles(t *testing.T) {
	var hundred []task.Millis
	for i := range 100 {
		hundred = append(hundred, task.Millis(i+1))
	}
	for percent, want := range map[int]task.Millis{50: 50, 99: 99, 100: 100, 1: 1} {
		if got := percentile(hundred, percent); got != want {
			t.Errorf("P%d of 1…100 is %d", percent, got)
		}
	}
	if percentile(hundred[:1], 50) != 1 || percentile(hundred[:1], 99) != 1 || percentile(hundred[:2], 50) != 1 || percentile(hundred[:2], 99) != 2 {
		t.Error("of one or two values")
	}
}

func TestDeadLetters(t *testing.T) {
	c := newCluster(t)
	id := c.submit("name: score\nlabels: {team: a}\nretry: {attempts: 1}\nstages:\n  - {name: one, shards: 6, run: ./x}\n  - {name: two, when: always, run: ./y}\n")
	for k, code := range []int{1, 2, 1, 0, 1} {
		c.fail("n3", id, 0, k, code)
	}
	late := c.grant("n4", id, 0, 5)
	c.confirm("n4", late...)
	c.exit("n4", id, 0, 5, late[0], task.Outcome{End: task.EndTimeout, Message: "after 3s"})
	c.fail("n4", id, 1, 0, 64)
	c.submit(hello)
	c.get("/v1/dead").golden("dead.json")
	var l task.List[task.DeadGroup]
	for query, want := range map[string]int{"": 4, "?limit=1": 1, "?name=hello": 0, "?label=team=a": 4, "?queue=video": 0, "?job=score": 4, "?since=1s": 0} {
		if c.get("/v1/dead" + query).ok(&l); len(l.Items) != want {
			t.Errorf("%s gives %d groups, want %d", query, len(l.Items), want)
		}
	}
	c.get("/v1/dead?job=scor").problem(404, "not_found", `Did you mean "score"`)
	c.get("/v1/dead").ok(&l)
	for _, g := range l.Items { // what it says to type means exactly these shards
		ref, err := task.ParseRef(strings.TrimPrefix(g.Retry, "lanjobs retry "))
		n := 0
		for _, r := range ref.Shards {
			n += r.Last - r.First + 1
		}
		if err != nil || ref.Job != string(id) || ref.Stage != g.Stage || len(ref.Shards) > 0 && n != g.Count {
			t.Errorf("%+v: %v", g, err)
		}
	}
}
