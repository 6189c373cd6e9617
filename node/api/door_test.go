package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lanjobs/fsm"
	"lanjobs/transport"
)

// TestRoutesAreThoseOfTheDescription compares the routes and their parameters with the list in transport/api.go.
func TestRoutesAreThoseOfTheDescription(t *testing.T) {
	text, err := os.ReadFile("../../transport/api.go")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^//\t(GET|POST|PATCH|DELETE) +(/[^\s?]+)(?:\?(\S+))?`)
	described := map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		var names []string
		for _, p := range strings.Split(m[3], ",") {
			if name, _, _ := strings.Cut(p, "="); name != "" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		described[m[1]+" "+m[2]] = names
	}
	delete(described, "POST /v1/join") // answered by the transport
	delete(described, "POST /v1/pair") // answered by the transport
	delete(described, "POST /v1/login")
	for _, rt := range newCluster(t).api.routes() {
		want, ok := described[rt.pattern]
		if !ok {
			t.Errorf("%s is not described", rt.pattern)
		}
		delete(described, rt.pattern)
		names := strings.Fields(rt.params)
		slices.Sort(names)
		if rt.pattern == "GET /v1/nodes" || rt.pattern == "GET /v1/tokens" { // short lists take what every list takes
			names = slices.DeleteFunc(names, func(n string) bool { return n == "limit" || n == "after" })
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s takes %v, described are %v", rt.pattern, names, want)
		}
	}
	for pattern := range described {
		t.Errorf("%s is described and does not exist", pattern)
	}
}

func TestNobodyGetsNothing(t *testing.T) {
	c := newCluster(t)
	for _, rt := range c.api.routes() {
		method, path, _ := strings.Cut(rt.pattern, " ")
		path = strings.NewReplacer("{ref}", "x", "{stage}", "main", "{n}", "0", "{k}", "0", "{id}", "t").Replace(path)
		var body io.Reader
		if method == "POST" {
			body = strings.NewReader("{}")
		}
		a := c.serve(httptest.NewRequest(method, path, body))
		if path == "/healthz" || path == "/readyz" {
			a.ok(nil)
			continue
		}
		a.problem(401, "not_allowed", "no credential")
	}
	c.serve(httptest.NewRequest("GET", "/v1/nothing", nil)).problem(401, "not_allowed", "")
	if len(c.commands)+len(c.inits) > 0 || c.left != nil {
		t.Error("something was done")
	}
}

func TestPagesOfOtherSitesChangeNothing(t *testing.T) {
	c := newCluster(t)
	c.ask("POST", "/v1/leave", "{}", "Sec-Fetch-Site", "cross-site").problem(403, "not_allowed", "another site")
	c.ask("POST", "/v1/leave", "{}", "Origin", "https://evil.example").problem(403, "not_allowed", "another site")
	if c.left != nil {
		t.Error("left")
	}
}

func TestPathsAndMethods(t *testing.T) {
	c := newCluster(t)
	c.get("/v1/nothing").problem(404, "not_found", `nothing is at "/v1/nothing"`)
	c.get("/v1/jobs/").problem(404, "not_found", "")
	c.get("//v1//jobs").problem(404, "not_found", "")
	c.get("/v1/jobs/../status").problem(404, "not_found", "")
	c.get("/v1/jobs/%2e%2e/why").problem(404, "not_found", "")
	a := c.ask("PUT", "/v1/jobs", "")
	a.problem(405, "invalid", "knows only GET, HEAD, POST")
	if got := a.header.Get("Allow"); got != "GET, HEAD, POST" {
		t.Errorf("Allow: %s", got)
	}
	c.ask("DELETE", "/v1/status", "").problem(405, "invalid", "only GET, HEAD")
	if a := c.ask("HEAD", "/v1/status", ""); a.status != 200 {
		t.Errorf("HEAD gives %d", a.status)
	}
}

func TestParameters(t *testing.T) {
	c := newCluster(t)
	c.submit("name: hello\nrun: echo\n")
	for path, words := range map[string]string{
		"/v1/jobs?stat=running":                                     `the parameter "stat" is not known here | Did you mean "state"?`,
		"/v1/jobs?zzzzzzz=1":                                        "Known here: state, queue, name",
		"/v1/jobs?state=runing":                                     `state "runing" is not known | one of pending`,
		"/v1/jobs?limit=-1":                                         `limit "-1" is not a number`,
		"/v1/jobs?limit=x":                                          `limit "x" is not a number`,
		"/v1/jobs?dead=maybe":                                       `dead "maybe" is neither 1 nor 0`,
		"/v1/jobs?after=7":                                          "what the page before gave",
		"/v1/jobs?since=yesterday":                                  "neither a time nor a length",
		"/v1/jobs?label=a=b=c":                                      "is not a condition",
		"/v1/jobs?limit=1&limit=2":                                  "limit is given twice",
		"/v1/jobs?dead&dead=0":                                      "dead is given twice",
		"/v1/jobs?state=":                                           "state is empty | leave it out",
		"/v1/jobs?since":                                            "since is empty",
		"/v1/events?job=":                                           "job is empty",
		"/v1/events?node&follow":                                    "node is empty",
		"/v1/jobs?x=%zz":                                            "the query cannot be read",
		"/v1/jobs?consistency=strong":                               "consistency",
		"/v1/jobs/hello/spec?format=xml":                            "format",
		"/v1/jobs/hello/shards?shards=1-x":                          `shards "1-x"`,
		"/v1/jobs/hello/shards?state=dead":                          `state "dead" is not known`,
		"/v1/jobs/hello/shards?after=x":                             "what the page before gave",
		"/v1/jobs/hello/shards/main/x/attempts/0/log":               `shard "x" is not a number`,
		"/v1/jobs/hello/shards/main/0/attempts/-1/log":              `attempt "-1" is not a number`,
		"/v1/jobs/hello/shards/main/0/attempts/0/log?stream=in":     `stream "in"`,
		"/v1/jobs/hello/shards/main/0/attempts/0/log?from=-5":       `from "-5"`,
		"/v1/jobs/hello/shards/main/0/attempts/0/log?hold=1h":       "hold",
		"/v1/jobs/hello/shards/main/0/attempts/0/log?tail=3&from=9": "exclude each other",
		"/v1/events?from=x":                                         `from "x"`,
		"/v1/events?after=x":                                        "what the page before gave",
		"/v1/events?job=//":                                         "is not JOB",
		"/v1/events?shards=b":                                       `shards "b"`,
		"/v1/events?follow=perhaps":                                 "follow",
	} {
		c.get(path).problem(400, "invalid", words)
	}
	c.ask("DELETE", "/v1/jobs/hello?grace=-1", "").problem(400, "invalid", "grace")
	c.ask("DELETE", "/v1/jobs/hello?reason=a%0Ab", "").problem(400, "invalid", "one line")
	if c.state.Job("j7k3q9").Cancelling {
		t.Error("cancelled")
	}
}

func TestBodies(t *testing.T) {
	c := newCluster(t)
	c.submit("name: hello\nrun: echo\n")
	for _, x := range []struct{ method, path, body, words string }{
		{"POST", "/v1/jobs/hello/retry", `{`, "cannot be read"},
		{"POST", "/v1/jobs/hello/retry", `{"dead":"x"}`, "cannot be read"},
		{"POST", "/v1/jobs/hello/retry", `{"ded":true}`, `unknown field "ded"`},
		{"POST", "/v1/jobs/hello/retry", `{} {}`, "something follows"},
		{"POST", "/v1/jobs/hello/retry", `{}}`, "something follows"},
		{"POST", "/v1/jobs/hello/retry", `{"All":true}`, `unknown field "All" | Did you mean "all"?`},
		{"POST", "/v1/jobs/hello/retry", `{"all":true,"all":false}`, "all is given twice"},
		{"POST", "/v1/jobs/hello/retry", `{"all":true,"\u0061ll":false}`, "all is given twice"},
		{"POST", "/v1/jobs/hello/retry", `{"shards":[{"first":1,"last":2,"first":0}]}`, "first is given twice"},
		{"POST", "/v1/jobs/hello/retry", `{"shards":[null]}`, "shards has null in its list"},
		{"POST", "/v1/jobs/hello/retry", "{\"stage\":\"a\xff\"}", "not UTF-8"},
		{"POST", "/v1/jobs/hello/retry", `{"stage":"a\ud800"}`, "stage has half a character"},
		{"POST", "/v1/jobs/hello/retry", `{"stage":"\ud800\u0041"}`, "stage has half a character"},
		{"POST", "/v1/jobs/hello/retry", " null\n", "it is null, not an object"},
		{"POST", "/v1/jobs/hello/retry", `[]`, "the body is a list, not an object"},
		{"POST", "/v1/jobs/hello/retry", "{\n  \"all\": tru\n}", "2:13: invalid character"},
		{"POST", "/v1/jobs/hello/priority", `{"priority":"7"}`, "priority is a text, not a whole number"},
		{"POST", "/v1/jobs/hello/priority", `{"priority":1e400}`, `priority is 1e400, not a whole number`},
		{"POST", "/v1/jobs/hello/retry", `{"all":true,"dead":true}`, "exclude each other"},
		{"POST", "/v1/jobs/hello/retry", `{"shards":[{"first":3,"last":1}]}`, "not a range"},
		{"POST", "/v1/nodes/nas/drain", `{"deadline_seconds":-1}`, "deadline_seconds"},
		{"POST", "/v1/nodes/nas/drain", `{"deadline_seconds":1e300}`, "deadline_seconds"},
		{"POST", "/v1/nodes/nas/drain", `{"reason":"` + strings.Repeat("x", 600) + `"}`, "one line"},
		{"POST", "/v1/nodes/nas/label", `{}`, "0 labels"},
		{"POST", "/v1/nodes/nas/label", `{"set":[{"name":"a","value":"1"},{"name":"a"}]}`, `label "a" is given twice`},
		{"POST", "/v1/nodes/nas/label", `{"set":[{"name":"os","value":"x"}]}`, "set by lanjobs itself"},
		{"POST", "/v1/nodes/nas/label", `{"set":[{"name":"a b","value":"x"}]}`, "not allowed"},
		{"POST", "/v1/nodes/nas/label", `{"set":[{"name":"gpu!","value":"x"}]}`, "not allowed"},
		{"POST", "/v1/nodes/nas/label", `{"set":[{"name":"gpu","value":" x"}]}`, "not allowed"},
		{"POST", "/v1/nodes/nas/label", `{"set":[{"name":"","value":"x"}]}`, "not allowed"},
		{"POST", "/v1/nodes/nas/label", `{"set":[{"name":"a","value":"in (b)"}]}`, "not allowed"},
		{"POST", "/v1/tokens", `{"ttl_seconds":1}`, "ttl_seconds"},
		{"POST", "/v1/tokens", `{"ttl_seconds":8553600}`, "not 8553600 s"},
		{"POST", "/v1/tokens", `{"uses":-1}`, "uses"},
		{"POST", "/v1/tokens", `{"uses":101}`, "uses"},
		{"POST", "/v1/init", `{"cluster":"Home!"}`, "cluster name"},
		{"POST", "/v1/init", `{"cluster":"home","listen":"nowhere"}`, "ADDR:PORT"},
		{"DELETE", "/v1/nodes/nas", `{}`, "takes no body"},
	} {
		c.ask(x.method, x.path, x.body).problem(400, "invalid", x.words)
	}
	c.ask("POST", "/v1/jobs/hello/retry", `{"stage":"\\ud800 \ud83d\ude00 \ufffd"}`).problem(404, "not_found", `no stage "\\ud800 😀 �"`)
	c.ask("POST", "/v1/tokens", `{}`, "Content-Type", "text/html").problem(400, "invalid", "type")
	c.ask("POST", "/v1/tokens", strings.Repeat(" ", maxBody+1)).problem(413, "too_large", "64 KiB")
	c.ask("POST", "/v1/jobs", strings.Repeat(" ", maxJobBody+1), "Content-Type", transport.ContentTypeSpec).problem(413, "too_large", "KiB")
	if len(c.commands) > 0 {
		t.Errorf("proposed %T", c.commands[0])
	}
}

// Every body is read: what nobody reads would be acknowledged and not done.
func TestEveryBodyIsRead(t *testing.T) {
	c := newCluster(t)
	c.api.cfg.Pairing = &desk{}
	c.submit("name: hello\nrun: echo\n")
	for _, r := range c.api.routes() {
		method, path, _ := strings.Cut(r.pattern, " ")
		if r.body == maxBody {
			path = strings.NewReplacer("/jobs/{ref}", "/jobs/hello", "/nodes/{ref}", "/nodes/nas", "{ref}", "default", "{id}", "x").Replace(path)
			c.ask(method, path, `{"zzzzz":1}`).problem(400, "invalid", `unknown field "zzzzz"`)
		}
	}
	if len(c.commands) > 0 {
		t.Errorf("proposed %T", c.commands[0])
	}
}

func TestWriteHeaders(t *testing.T) {
	c := newCluster(t)
	c.submit("name: hello\nrun: echo\n")
	c.ask("DELETE", "/v1/jobs/hello", "", "If-Match", `"7"`).problem(412, "conflict", "If-Match")
	c.ask("DELETE", "/v1/jobs/hello", "", transport.HeaderRequestID, strings.Repeat("x", 129)).problem(400, "invalid", transport.HeaderRequestID)
	c.ask("DELETE", "/v1/jobs/hello", "", transport.HeaderRequestID, "a b").problem(400, "invalid", transport.HeaderRequestID)
	c.ask("DELETE", "/v1/jobs/hello", "", transport.HeaderWait, "61").problem(400, "invalid", "60 seconds")
	c.ask("DELETE", "/v1/jobs/hello", "", transport.HeaderWait, "-1").problem(400, "invalid", "60 seconds")
	for _, name := range []string{transport.HeaderRequestID, transport.HeaderWait, "Idempotency-Key"} {
		c.ask("DELETE", "/v1/jobs/hello", "", name, "").problem(400, "invalid", name+" is empty")
		twice := httptest.NewRequestWithContext(WithBy(t.Context(), "anna"), "DELETE", "/v1/jobs/hello", nil)
		twice.Header.Add(name, "1")
		twice.Header.Add(name, "2")
		c.serve(twice).problem(400, "invalid", name+" is given twice")
	}
	c.ask("DELETE", "/v1/jobs/hello", "", "If-None-Match", "*").problem(412, "conflict", "If-None-Match")
	c.ask("DELETE", "/v1/jobs/hello", "", "If-Unmodified-Since", "Sun, 29 Nov 2026 12:00:00 GMT").problem(412, "conflict", "If-Unmodified-Since")
	c.ask("POST", "/v1/jobs", hello, "Content-Encoding", "gzip").problem(400, "invalid", "without Content-Encoding")
	c.ask("DELETE", "/v1/jobs/hello", "", transport.HeaderRequestID, "mine", "If-Match", "*").ok(nil)
	c.ask("DELETE", "/v1/jobs/hello", "").ok(nil)
	for i, want := range []string{"mine", "made-"} {
		if got := c.commands[i].(*fsm.CancelJob); !strings.HasPrefix(string(got.RequestID), want) || got.By != "anna" {
			t.Errorf("command %d is %+v", i, got)
		}
	}
}

// TestHostileTextStaysText puts markup everywhere that a text may come from outside (C52).
func TestHostileTextStaysText(t *testing.T) {
	const evil = `<script>alert(1)</script><img src=x onerror=alert(2)>"></td>{{7*7}}` + "\x1b[31m"
	c := newCluster(t)
	c.submit("name: hello\ndescription: \"<b>x</b>\"\nlabels: {team: \"<i>\"}\nrun: \"echo '<script>alert(1)</script>'\"\n")
	tok := c.grant("n3", "j7k3q9", 0, 0)
	c.confirm("n3", tok...)
	c.do(0, &fsm.PutOutput{Ref: outputRef("j7k3q9"), Token: tok[0], Output: kv(evil, evil)})
	c.progress[tok[0]] = evil
	c.call = func(_ context.Context, _ nodeID, _ transport.Method, _, reply any) error {
		*reply.(*transport.LogReply) = transport.LogReply{Data: []byte(evil), Next: 5}
		return nil
	}
	c.do(0, &fsm.CancelJob{Job: "j7k3q9", Reason: evil, By: evil})
	for _, path := range []string{"/v1/status", "/v1/jobs", "/v1/jobs/hello", "/v1/jobs/hello/shards?attempts=1&why=1", "/v1/jobs/hello/why", "/v1/nodes",
		"/v1/events", "/v1/jobs/" + "%3Cscript%3E", "/v1/nodes/%3Cscript%3E", "/v1/jobs?%3Cscript%3E=1", "/%3Cscript%3E", "/v1/jobs/hello/shards/%3Cscript%3E/0/attempts/0/log"} {
		a := c.get(path)
		if strings.ContainsAny(a.body, "<>\x1b") {
			t.Errorf("%s answers with markup: %s", path, a.body)
		}
		if !json.Valid([]byte(a.body)) || !strings.Contains(a.header.Get("Content-Type"), "json") {
			t.Errorf("%s answers %s: %s", path, a.header.Get("Content-Type"), a.body)
		}
	}
	for _, path := range []string{"/v1/jobs/hello/spec", "/v1/jobs/hello/shards/main/0/attempts/0/log"} {
		if a := c.get(path); a.status != 200 || a.header.Get("Content-Type") != typeText {
			t.Errorf("%s answers %d %s", path, a.status, a.header.Get("Content-Type"))
		}
	}
}

func TestAPanicIsOneAnswer(t *testing.T) {
	c := newCluster(t)
	c.call = func(context.Context, nodeID, transport.Method, any, any) error { panic("boom") }
	c.submit("name: hello\nrun: echo\n")
	c.grant("n3", "j7k3q9", 0, 0)
	c.get("/v1/jobs/hello/shards/main/0/attempts/0/log").problem(500, "internal", "fault of lanjobs itself")
	if !strings.Contains(c.log.String(), "boom") {
		t.Errorf("log is %s", c.log)
	}
	c.get("/v1/status").ok(nil)
	if n := len(c.api.requests) + len(c.api.streams); n != 0 {
		t.Errorf("%d requests still counted", n)
	}
}

func TestTooManyAtOnce(t *testing.T) {
	c := newCluster(t)
	for range maxRequests {
		c.api.requests.enter()
	}
	a := c.get("/v1/status")
	a.problem(429, "no_leader", "come again")
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	c.api.requests.leave()
	c.get("/v1/status").ok(nil)
}

func TestHealth(t *testing.T) {
	c := bare(t)
	c.get("/healthz").ok(nil)
	for _, x := range []struct {
		st   Standing
		want int
	}{{Standing{Leads: true}, 200}, {Standing{Leader: "n2"}, 200}, {Standing{}, 503}} {
		c.standing = x.st
		if a := c.get("/readyz"); a.status != x.want || a.header.Get("Content-Type") != typeText {
			t.Errorf("%+v: %d %s", x.st, a.status, a.body)
		}
		c.get("/healthz").ok(nil)
	}
}

func TestConfigFaults(t *testing.T) {
	_, err := New(Config{})
	for _, what := range []string{"Self", "Clock", "Log", "Ledger", "Leader", "Peers", "Machine", "NewID"} {
		if err == nil || !strings.Contains(err.Error(), what+" is missing") {
			t.Errorf("%s is not told: %v", what, err)
		}
	}
}

func TestEveryProblemHasAStatus(t *testing.T) {
	for code, status := range statuses {
		if http.StatusText(status) == "" {
			t.Errorf("%s: %d", code, status)
		}
	}
	if rep := problemReply(fmt.Errorf("read: %w", context.Canceled)); rep.status != 499 {
		t.Errorf("a caller who left gets %d", rep.status)
	}
	if rep := problemReply(fmt.Errorf("odd")); rep.status != 500 {
		t.Errorf("an unknown error gives %d", rep.status)
	}
}
