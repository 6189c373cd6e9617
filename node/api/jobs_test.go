package api

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

func ids(l task.List[task.JobView]) string {
	var out []string
	for _, j := range l.Items {
		out = append(out, string(j.ID))
	}
	return strings.Join(out, " ")
}

func (c *cluster) jobs(query string) task.List[task.JobView] {
	c.t.Helper()
	var l task.List[task.JobView]
	c.get("/v1/jobs?" + query).ok(&l)
	if l.Kind != "JobList" || l.Items == nil || l.Index == 0 {
		c.t.Errorf("list is %+v", l)
	}
	return l
}

func TestJobReferences(t *testing.T) {
	c := newCluster(t)
	c.submit(strings.Replace(hello, "hello", "transcode", 1)) // j7k3q9
	c.submit(strings.Replace(hello, "hello", "score", 1))     // j7k2xz
	c.submit(strings.Replace(hello, "hello", "score", 1))     // j7jw01
	for ref, want := range map[string]string{"j7k3q9": "j7k3q9", "j7k3": "j7k3q9", "transcode": "j7k3q9", "score": "j7jw01", "j7j": "j7jw01"} {
		var j task.JobView
		if c.get("/v1/jobs/" + ref).ok(&j); string(j.ID) != want {
			t.Errorf("%s is %s", ref, j.ID)
		}
	}
	c.get("/v1/jobs/j7").problem(400, "invalid", `"j7" is the beginning of more than one id: j7jw01 (score), j7k2xz (score), j7k3q9 (transcode)`)
	c.get("/v1/jobs/transcod").problem(404, "not_found", `no job "transcod". Did you mean "transcode" (j7k3q9, pending)? | All jobs: lanjobs ls`)
	c.get("/v1/jobs/j7k3q0").problem(404, "not_found", `Did you mean "transcode" (j7k3q9, pending)?`)
	c.get("/v1/jobs/zebra").problem(404, "not_found", `no job "zebra". | All jobs`)
	c.get("/v1/jobs/"+url.PathEscape("a/b c\n")).problem(404, "not_found", `no job "a/b c\n".`)
	c.get("/v1/jobs/"+strings.Repeat("x", 5000)).problem(404, "not_found", `…"`)
}

func TestJobLists(t *testing.T) {
	c := newCluster(t)
	c.wall = noon.Add(-2 * time.Hour)
	c.submit("name: old\nlabels: {team: media, os: x}\nrun: echo\n") // j7k3q9
	c.wall = noon.Add(-10 * time.Minute)
	c.submit("name: dead\nretry: {attempts: 1}\nlabels: {team: web}\nrun: echo\n") // j7k2xz
	c.fail("n3", "j7k2xz", 0, 0, 1)
	c.submit(hello) // j7jw01
	c.run("n3", "j7jw01", 0, 0)
	for query, want := range map[string]string{
		"":                                  "j7jw01 j7k2xz j7k3q9",
		"state=failed":                      "j7k2xz",
		"state=failed,succeeded":            "j7jw01 j7k2xz",
		"name=hello":                        "j7jw01",
		"queue=default":                     "j7jw01 j7k2xz j7k3q9",
		"queue=other":                       "",
		"dead=1":                            "j7k2xz",
		"since=3600":                        "j7jw01 j7k2xz",
		"since=1h30m":                       "j7jw01 j7k2xz",
		"since=2026-11-29T11:45:00Z":        "j7jw01 j7k2xz",
		"label=team":                        "j7k2xz j7k3q9",
		"label=team%3Dmedia":                "j7k3q9",
		"label=os%3Dx":                      "j7k3q9",
		"label=team!%3Dmedia":               "j7jw01 j7k2xz",
		"label=team+in+(web,media),os!%3Dx": "j7k2xz",
	} {
		if got := ids(c.jobs(query)); got != want {
			t.Errorf("%s gives %q, want %q", query, got, want)
		}
	}
}

func TestJobPages(t *testing.T) {
	c := newCluster(t)
	var want []string
	for i := range 7 {
		c.ids = []task.JobID{task.JobID(fmt.Sprintf("j%06d", i)), "x"}
		want = append([]string{string(c.submit(strings.Replace(hello, "hello", fmt.Sprintf("job-%d", i), 1)))}, want...)
	}
	var got []string
	after, pages := "", 0
	for {
		l := c.jobs("limit=3&after=" + after)
		got = append(got, strings.Fields(ids(l))...)
		pages++
		if l.Next == "" {
			break
		}
		after = l.Next
	}
	if strings.Join(got, " ") != strings.Join(want, " ") || pages != 3 {
		t.Errorf("%d pages: %v", pages, got)
	}
	if l := c.jobs("limit=7"); l.Next != "" || len(l.Items) != 7 {
		t.Errorf("a page that holds all: %d, next %q", len(l.Items), l.Next)
	}
	// The last job of a page is collected before the next page is asked for: the list goes on behind it.
	if l := c.jobs("limit=3&after=0-jgone"); ids(l) != strings.Join(want[:3], " ") {
		t.Errorf("after a collected job: %s", ids(l))
	}
}

func TestStatusShowsUnfinishedAndNewestJobs(t *testing.T) {
	c := newCluster(t)
	c.submit(strings.Replace(hello, "hello", "waits", 1))
	for i := range statusEnded + 5 {
		c.ids = []task.JobID{task.JobID(fmt.Sprintf("j%06d", i)), "x"}
		c.run("n3", c.submit(hello), 0, 0)
	}
	var v task.ClusterView
	c.get("/v1/status").ok(&v)
	if n := len(v.Jobs); n != statusEnded+1 || v.Jobs[n-1].Name != "waits" || v.Jobs[0].ID != "j000014" {
		t.Errorf("%d jobs", n)
	}
}

func TestSpecAsSubmitted(t *testing.T) {
	c := newCluster(t)
	c.submit(hello)
	if a := c.get("/v1/jobs/hello/spec").ok(nil); a.body != hello || a.header.Get("Content-Type") != typeText {
		t.Errorf("%q", a.body)
	}
	var spec task.Spec
	if c.get("/v1/jobs/hello/spec?format=json").ok(&spec); spec.Stages[0].Run != "echo hi" {
		t.Errorf("%+v", spec)
	}
}

func TestCancel(t *testing.T) {
	c := newCluster(t)
	c.submit("name: hello\nshards: 3\nrun: echo\n")
	c.confirm("n3", c.grant("n3", "j7k3q9", 0, 0)...)
	var j task.JobView
	c.ask("DELETE", "/v1/jobs/hello?reason=wrong+file&grace=10", "").ok(&j)
	if j.Reason != "wrong file" || j.Shards.Cancelled != 2 || j.State != task.JobRunning || j.Note != "is being cancelled: 1 shard to stop" {
		t.Errorf("%+v", j)
	}
	if got := c.state.Job("j7k3q9"); got.CancelGrace != 10*task.Second {
		t.Errorf("grace is %d", got.CancelGrace)
	}
	c.ask("DELETE", "/v1/jobs/hello", "").ok(nil)
	c.ask("DELETE", "/v1/jobs/helo", "").problem(404, "not_found", "Did you mean")
}

func TestRetry(t *testing.T) {
	c := newCluster(t)
	c.submit("name: score\nshards: 3\nretry: {attempts: 1}\nrun: echo\n")
	c.ask("POST", "/v1/jobs/score/retry", "").problem(409, "conflict", "nothing to retry")
	c.run("n3", "j7k3q9", 0, 0, 1)
	c.fail("n3", "j7k3q9", 0, 2, 9)
	var j task.JobView
	if c.get("/v1/jobs/score").ok(&j); j.State != task.JobFailed || j.Note != "lanjobs retry j7k3q9 --dead" {
		t.Errorf("%+v", j)
	}
	c.ask("POST", "/v1/jobs/score/retry", `{"stage":"mian"}`).problem(404, "not_found", `no stage "mian". Did you mean "main"? | Its stages: main`)
	c.ask("POST", "/v1/jobs/score/retry", `{"shards":[{"first":0,"last":1}]}`).problem(409, "conflict", "no shard of the kind")
	c.ask("POST", "/v1/jobs/score/retry", `{"shards":[{"first":2,"last":3}]}`).problem(404, "not_found", "j7k3q9/main/3 does not exist: the stage has shards 0 to 2")
	c.ask("POST", "/v1/jobs/score/retry", `{"dead":true}`, transport.HeaderRequestID, "q").ok(&j)
	if j.State != task.JobRunning || j.Shards.Pending != 1 {
		t.Errorf("%+v", j)
	}
	if got := c.commands[len(c.commands)-1].(*fsm.RetryJob); !strings.HasPrefix(string(got.RequestID), "q~") || got.By != "anna" || got.All {
		t.Errorf("%+v", got)
	}
	c.submit(transcode)
	c.ask("POST", "/v1/jobs/transcode/retry", `{"shards":[{"first":0,"last":1}]}`).problem(400, "invalid", "shards of which stage?")
}

func TestShardPagesAndFilters(t *testing.T) {
	c := busy(t)
	shards := func(query string) (out []string, next string) {
		t.Helper()
		var l task.List[task.ShardView]
		c.get("/v1/jobs/transcode/shards?" + query).ok(&l)
		for _, s := range l.Items {
			out = append(out, fmt.Sprintf("%s/%d", s.Stage, s.Shard))
		}
		return out, l.Next
	}
	for query, want := range map[string]string{
		"stage=init":                     "init/0",
		"stage=segments&shards=2-4,7":    "segments/2 segments/3 segments/4 segments/7",
		"state=backoff":                  "segments/4",
		"state=pending":                  "segments/7",
		"state=waiting":                  "merge/0",
		"state=running,assigned":         "segments/3 segments/5 segments/6",
		"state=succeeded&stage=segments": "segments/0 segments/1 segments/2",
		"shards=0":                       "init/0 segments/0 merge/0",
		"stage=segments&shards=99":       "",
	} {
		if got, _ := shards(query); strings.Join(got, " ") != want {
			t.Errorf("%s gives %v", query, got)
		}
	}
	all, _ := shards("")
	var paged []string
	for after, n := "", 0; ; n++ {
		page, next := shards("limit=3&after=" + after)
		paged = append(paged, page...)
		if after = next; next == "" || n > 10 {
			break
		}
	}
	if len(all) != 10 || strings.Join(paged, " ") != strings.Join(all, " ") {
		t.Errorf("all %v, pages %v", all, paged)
	}
	c.get("/v1/jobs/transcode/shards?stage=segmnts").problem(404, "not_found", `Did you mean "segments"?`)
}

// TestALargePageEndsEarly: outputs and tails could make a page of a thousand shards hundreds of megabytes.
func TestALargePageEndsEarly(t *testing.T) {
	c := newCluster(t)
	c.submit("name: big\nshards: 200\nrun: echo\n")
	for k := range 200 {
		tok := c.grant("n1", "j7k3q9", 0, k)
		var cmds []fsm.Command
		for i := range 15 {
			cmds = append(cmds, &fsm.PutOutput{Ref: task.ShardRef{Job: "j7k3q9", Shard: k}, Token: tok[0], Output: kv(fmt.Sprintf("o%d", i), strings.Repeat("x", task.MaxOutputBytes))})
		}
		c.do(0, cmds...)
		c.exit("n1", "j7k3q9", 0, k, tok[0], task.Outcome{End: task.EndExited})
	}
	seen, pages := 0, 0
	for after := ""; ; pages++ {
		var l task.List[task.ShardView]
		a := c.get("/v1/jobs/big/shards?limit=1000&after=" + after).ok(&l)
		if len(a.body) > pageBytes+200<<10 {
			t.Errorf("a page of %d bytes", len(a.body))
		}
		seen += len(l.Items)
		if after = l.Next; after == "" {
			break
		}
	}
	if seen != 200 || pages < 2 {
		t.Errorf("%d shards on %d pages", seen, pages+1)
	}
}

func TestAMillionShardsAreCountedNotListed(t *testing.T) {
	c := newCluster(t)
	c.submit("name: big\nshards: 1000000\nplacement: {require: [gpu=true]}\nrun: echo\n")
	start := time.Now()
	var l task.List[transport.WhyView]
	a := c.get("/v1/jobs/big/why").ok(&l)
	if len(l.Items) != 4 || l.Items[0].Shards != "0-999999" || len(a.body) > 5000 {
		t.Errorf("%s", a.body)
	}
	t.Logf("it took %s", time.Since(start))
	var s task.List[task.ShardView]
	c.get("/v1/jobs/big/shards?state=failed").ok(&s)
	if len(s.Items) != 0 {
		t.Errorf("%d failed", len(s.Items))
	}
}

func TestASkippedStageCountsNothing(t *testing.T) {
	c := newCluster(t)
	c.submit("name: hello\nstages:\n- {name: work, run: x}\n- {name: tell, when: failure, shards: 3, run: x}\n")
	c.run("n3", "j7k3q9", 0, 0)
	var j task.JobView
	c.get("/v1/jobs/hello").ok(&j)
	if j.State != task.JobSucceeded || j.Shards != (task.Counts{Total: 1, Succeeded: 1}) || j.Stages[1].Shards != (task.Counts{Total: 3}) || j.Stages[1].State != stateSkipped {
		t.Errorf("%+v", j)
	}
	var l task.List[task.ShardView]
	if c.get("/v1/jobs/hello/shards?stage=tell&why=1").ok(&l); l.Items[0].State != stateSkipped || l.Items[0].Why != "" {
		t.Errorf("%+v", l.Items[0])
	}
	c.wantWhy("hello/why", "")
}

// TestARareFilterEndsItsPageEarly: a page looks at so many jobs and no more, and the next one goes on behind them.
func TestARareFilterEndsItsPageEarly(t *testing.T) {
	c := newCluster(t)
	ctx, cancel := context.WithCancel(t.Context())
	written := make(chan error, 1)
	go func() { written <- c.audit.Run(ctx) }() // so many events have to go somewhere
	defer func() { cancel(); <-written }()
	rare := c.submit("name: rare\nrun: echo\n")
	spec := []byte(specJSON(t, hello))
	for n := 0; n < maxWalk; {
		var cs []fsm.Command
		for range 5000 {
			n++
			cs = append(cs, &fsm.SubmitJob{RequestID: task.RequestID(fmt.Sprintf("f%d", n)), Job: task.JobID(fmt.Sprintf("jf%d", n)), Spec: spec, Digest: []byte("d")})
		}
		c.do(1, cs...)
	}
	var l task.List[task.JobView]
	c.get("/v1/jobs?name=rare").ok(&l)
	if len(l.Items) != 0 || l.Next == "" {
		t.Fatalf("%d jobs, next %q", len(l.Items), l.Next)
	}
	c.get("/v1/jobs?name=rare&after=" + l.Next).ok(&l)
	if len(l.Items) != 1 || l.Items[0].ID != rare || l.Next != "" {
		t.Errorf("%d jobs, next %q", len(l.Items), l.Next)
	}
}

func TestJobsOfASpanOfTime(t *testing.T) {
	c := newCluster(t)
	for _, name := range []string{"a", "b", "c"} {
		c.submit("name: " + name + "\nrun: echo\n")
		c.lead(10 * time.Minute)
	}
	at := func(d time.Duration) string { return url.QueryEscape(noon.Add(d).Format(time.RFC3339)) }
	for query, want := range map[string]string{"since=55m": "c b", "until=55m": "a", "since=55m&until=45m": "b", "since=" + at(-41*time.Minute): "c", "until=" + at(-time.Hour): "", "": "c b a"} {
		var l task.List[task.JobView]
		c.get("/v1/jobs?" + query).ok(&l)
		var names []string
		for _, j := range l.Items {
			names = append(names, j.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s gives %q, want %q", query, got, want)
		}
	}
	c.get("/v1/jobs?until=later").problem(400, "invalid", "until \"later\" is neither")
}
