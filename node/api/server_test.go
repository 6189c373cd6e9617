package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
)

// server puts the API behind a real HTTP server, with the identity that the unix socket gives.
func (c *cluster) server() *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.api.ServeHTTP(w, r.WithContext(WithBy(r.Context(), "anna")))
	}))
	c.t.Cleanup(s.Close)
	return s
}

func TestOverARealServer(t *testing.T) {
	c := newCluster(t)
	ctx, cancel := context.WithCancel(t.Context())
	written := make(chan error, 1)
	go func() { written <- c.audit.Run(ctx) }()
	s := c.server()
	follow, err := http.Get(s.URL + "/v1/events?follow=1&kind=job")
	if err != nil {
		t.Fatal(err)
	}
	defer follow.Body.Close()
	post, err := http.Post(s.URL+"/v1/jobs", "application/yaml", strings.NewReader(hello))
	if err != nil {
		t.Fatal(err)
	}
	var r task.SubmitReply
	if err := json.NewDecoder(post.Body).Decode(&r); err != nil || post.StatusCode != 201 {
		t.Fatalf("%d %v", post.StatusCode, err)
	}
	post.Body.Close()
	lines := bufio.NewScanner(follow.Body)
	for lines.Scan() {
		if lines.Text() == "" {
			continue
		}
		var e task.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Job != r.ID || e.Kind != task.EventJobSubmit {
			t.Errorf("%s: %v", lines.Text(), err)
		}
		break // it came while the stream is open: nothing is held back
	}
	large, err := http.Post(s.URL+"/v1/jobs", "application/yaml", strings.NewReader(strings.Repeat("#", maxJobBody+1)))
	if err != nil {
		t.Fatal(err)
	}
	large.Body.Close()
	if large.StatusCode != 413 {
		t.Errorf("a body that is too large gives %d", large.StatusCode)
	}
	follow.Body.Close()
	for deadline := time.Now().Add(2 * time.Minute); len(c.api.streams) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the stream goes on without its client")
		}
	}
	cancel()
	if err := <-written; err != nil {
		t.Error(err)
	}
}

// TestEverythingAtOnce reads every view while jobs are submitted, run and cancelled; run it with -race.
func TestEverythingAtOnce(t *testing.T) {
	c := newCluster(t)
	c.submit("name: work\nshards: 50\nparallelism: 2\nretry: {attempts: 2, initial: 0, jitter: 0%}\nrun: echo\n")
	stop := make(chan struct{})
	var all sync.WaitGroup
	loop := func(f func(n int)) {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					f(n)
				}
			}
		})
	}
	paths := []string{"/v1/status", "/v1/jobs", "/v1/jobs/work", "/v1/jobs/work/shards?attempts=1&why=1", "/v1/jobs/work/why", "/v1/nodes", "/v1/events?tail=20", "/v1/tokens", "/v1/jobs/j?limit=3"}
	for i := range 3 {
		loop(func(n int) {
			path := paths[(n+i)%len(paths)]
			if a := c.get(path); a.status >= 500 {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		})
	}
	loop(func(n int) {
		time.Sleep(time.Millisecond)
		if n >= 150 { // more of them would only make every view slower, and the slower machine has the more of them
			return
		}
		body := strings.Replace(hello, "hello", fmt.Sprintf("job-%d", n), 1)
		if a := c.ask("POST", "/v1/jobs", body); a.status != 201 {
			t.Errorf("submit: %d %s", a.status, a.body)
		}
		c.ask("DELETE", fmt.Sprintf("/v1/jobs/job-%d", n), "").ok(nil)
	})
	for n := range 150 {
		k := n % 50
		res := c.apply(100, &fsm.Grant{Node: "n3", Incarnation: 1, Job: "j7k3q9", Shards: []int{k}})
		if res[0].Err == nil && res[0].Tokens[0] != 0 {
			c.apply(1, &fsm.Renew{Node: "n3", Incarnation: 1, Tokens: res[0].Tokens},
				&fsm.Report{Node: "n3", Reports: []task.Report{{Job: "j7k3q9", Shard: k, Token: res[0].Tokens[0], Outcome: task.Outcome{End: task.EndExited, ExitCode: n % 3}}}})
		}
		time.Sleep(time.Millisecond)
	}
	close(stop)
	all.Wait()
	if err := c.state.Check(); err != nil {
		t.Error(err)
	}
}

// FuzzRequests sends anything at all: the answer is JSON or plain text, and never a fault of our own.
func FuzzRequests(f *testing.F) {
	for _, rt := range (&API{}).routes() {
		method, path, _ := strings.Cut(rt.pattern, " ")
		path = strings.NewReplacer("{ref}", "transcode", "{stage}", "segments", "{n}", "3", "{k}", "1", "{id}", "t1").Replace(path)
		f.Add(method, path, "", "{}", "")
		for _, p := range strings.Fields(rt.params) {
			if p != "follow" {
				f.Add(method, path, p+"=1", "", "application/json")
			}
		}
	}
	f.Add("POST", "/v1/jobs", "dry_run=1", hello, "application/yaml")
	f.Add("POST", "/v1/jobs", "", `{"name":"x"}`, "application/vnd.lanjobs.spec+json")
	f.Add("POST", "/v1/jobs", "", `{"request_id":"a","spec":{"name":"x"}}`+"\n\n{}", "application/vnd.lanjobs.specs+x-ndjson")
	f.Add("GET", "/v1/jobs/transcode/shards", "shards=0-9223372036854775807&limit=99999999999", "", "")
	f.Add("GET", "/v1/jobs/%00", "label=a in (b,c),d!=e", "", "")
	f.Fuzz(func(t *testing.T, method, path, query, body, kind string) {
		if strings.Contains(query, "follow") {
			return // it would go on
		}
		r, err := http.NewRequestWithContext(WithBy(t.Context(), "anna"), method, "http://lanjobs/", strings.NewReader(body))
		if err != nil {
			return
		}
		r.URL.Path, r.URL.RawQuery = path, query
		r.Header.Set("Content-Type", kind)
		r.Header.Set("Lanjobs-Wait-Seconds", "0")
		c := busy(t)
		w := httptest.NewRecorder()
		c.api.ServeHTTP(w, r)
		if w.Code >= 500 && w.Code != 503 {
			t.Errorf("%s %s?%s gives %d %s", method, path, query, w.Code, w.Body)
		}
		known := []string{typeJSON, typeProblem, typeText, typeLines}
		if !slices.Contains(known, w.Header().Get("Content-Type")) {
			t.Errorf("%s %s?%s gives %q", method, path, query, w.Header().Get("Content-Type"))
		}
		if err := c.state.Check(); err != nil {
			t.Error(err)
		}
	})
}

func TestRanges(t *testing.T) {
	rs := inOrder([]task.Range{{First: 7, Last: 9}, {First: 0, Last: 3}, {First: 2, Last: 4}, {First: 8, Last: 8}})
	if fmt.Sprint(rs) != "[{0 4} {7 9}]" {
		t.Errorf("%v", rs)
	}
	for k, want := range map[int]bool{0: true, 4: true, 5: false, 6: false, 7: true, 9: true, 10: false} {
		if within(rs, k) != want {
			t.Errorf("%d: %v", k, !want)
		}
	}
	if !within(nil, 5) {
		t.Error("no ranges mean all")
	}
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "0s", 18 * time.Second: "18s", 4*time.Minute + 10*time.Second: "4m10s", 4 * time.Minute: "4m",
		12*time.Minute + 5*time.Second: "12m", 3*time.Hour + 20*time.Minute: "3h", 50 * time.Hour: "2d"} {
		if got := short(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
	for _, x := range []struct{ word, want string }{{"transcod", "transcode"}, {"trancsode", "transcode"}, {"scor", "score"}, {"xyz", ""}, {"nas", "nas"}, {"nsa", "nas"}, {strings.Repeat("x", 70), ""}} {
		if got := task.Nearest([]string{"transcode", "score", "nas"}, x.word); got != x.want {
			t.Errorf("%s is near %q", x.word, got)
		}
	}
}
