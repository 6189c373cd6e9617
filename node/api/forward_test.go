package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// follower makes a second member whose forwarded requests reach the leader's API as they would over the wire.
func follower(t *testing.T, leads *cluster) *cluster {
	f := newCluster(t)
	f.api.cfg.Self, f.api.cfg.Name = "n3", "nas"
	f.standing = Standing{Leader: "n1", Silence: 20 * time.Millisecond, Copy: true}
	f.forward = func(ctx context.Context, r *transport.APIRequest) (*transport.APIReply, error) {
		return leads.api.ServeForwarded(ctx, r)
	}
	return f
}

func TestAFollowerPassesReadsAndWritesOn(t *testing.T) {
	l := newCluster(t)
	f := follower(t, l)
	l.index += 100 // the leader's state is newer

	var r task.SubmitReply
	a := f.ask("POST", "/v1/jobs", hello, transport.HeaderRequestID, "q1").ok(&r)
	if a.status != 201 || r.ID != "j7k3q9" || l.state.Job(r.ID).By != "anna" || l.state.Job(r.ID).Request != "q1" || len(f.commands) > 0 {
		t.Errorf("%d %+v", a.status, r)
	}
	var j task.JobView
	a = f.get("/v1/jobs/hello").ok(&j)
	if j.ID != r.ID || a.header.Get(transport.HeaderLeader) != "n1" || a.header.Get(transport.HeaderStale) != "" {
		t.Errorf("%+v %v", j, a.header)
	}
	if a.header.Get(transport.HeaderIndex) == "" || a.header.Get("Content-Type") != typeJSON || strings.Contains(a.body, "<") {
		t.Errorf("%v", a.header)
	}
	f.get("/v1/jobs/helo").problem(404, "not_found", `Did you mean "hello" (j7k3q9, pending)?`)
	f.get("/v1/jobs?state=x").problem(400, "invalid", "not known")
	f.ask("POST", "/v1/jobs/hello/retry", `{"dead":true}`).problem(409, "conflict", "nothing to retry")

	var v task.ClusterView
	f.get("/v1/status").ok(&v)
	if v.Self != "n3" || v.SelfName != "nas" || v.LeaderName != "mini-1" || v.Health != healthy {
		t.Errorf("status at a follower: self %s %s, leader %s, %s", v.Self, v.SelfName, v.LeaderName, v.Health)
	}
	var tok transport.TokenView
	l.members[2].Addresses = []string{"192.168.1.7:7420"}
	f.ask("POST", "/v1/tokens", `{}`).ok(&tok)
	if len(tok.Join) != 1 || tok.Join[0] != "lanjobs join 192.168.1.7:7420 --token "+tok.Token {
		t.Errorf("join lines %v", tok.Join)
	}
	f.ask("POST", "/v1/init", `{"cluster":"home"}`).ok(nil)
	if len(f.inits) != 1 || len(l.inits) != 0 {
		t.Error("init was passed on")
	}
}

func TestForwardedRequestsGoNoFurther(t *testing.T) {
	f := newCluster(t)
	f.standing = Standing{Leader: "n2", Copy: true}
	f.forward = func(context.Context, *transport.APIRequest) (*transport.APIReply, error) {
		t.Error("passed on")
		return nil, nil
	}
	for _, r := range []*transport.APIRequest{
		{HTTPMethod: "GET", Path: "/v1/jobs", By: "anna", Hops: 1},
		{HTTPMethod: "POST", Path: "/v1/jobs", Body: []byte(hello), By: "anna", Hops: 1},
	} {
		if _, err := f.api.ServeForwarded(t.Context(), r); !errors.Is(err, task.ErrNoLeader) {
			t.Errorf("%s %s: %v", r.HTTPMethod, r.Path, err)
		}
	}
	f.standing = Standing{Leads: true, Copy: true}
	for _, r := range []*transport.APIRequest{
		{HTTPMethod: "GET", Path: "/v1/jobs"}, {HTTPMethod: "GET", Path: "/healthz", By: "anna"}, {HTTPMethod: "GET", Path: "http://x/v1/jobs", By: "anna"},
		{HTTPMethod: "GET", Path: "", By: "anna"}, {HTTPMethod: "G T", Path: "/v1/jobs", By: "anna"},
	} {
		if _, err := f.api.ServeForwarded(t.Context(), r); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	for path, status := range map[string]int{"/v1/events?follow=1": 400, "/v1/nothing": 404, "/v1/leave": 405} {
		rep, err := f.api.ServeForwarded(t.Context(), &transport.APIRequest{HTTPMethod: "GET", Path: path, By: "anna"})
		if err != nil || rep.Status != status {
			t.Errorf("%s: %+v %v", path, rep, err)
		}
	}
	rep, err := f.api.ServeForwarded(t.Context(), &transport.APIRequest{HTTPMethod: "POST", Path: "/v1/leave", By: "anna"})
	if err != nil || rep.Status != 400 || f.left != nil {
		t.Errorf("leave was passed on: %+v %v", rep, err)
	}
}

func TestReadsWithoutALeaderSayHowOldTheyAre(t *testing.T) {
	c := newCluster(t)
	c.submit(hello)
	c.standing = Standing{Silence: 12 * time.Second, Copy: true}
	c.members[1].Away, c.members[2].Away = 12*time.Minute, 3*time.Minute

	a := c.get("/v1/jobs/hello").ok(nil)
	if got := a.header.Get(transport.HeaderStale); got != "12.000" {
		t.Errorf("stale for %q", got)
	}
	const words = "the cluster cannot take changes: 1 of 3 voters answers, 2 are needed (mini-2 silent 12m, asleep?; nas silent 3m). | " +
		"Wake one of the two. Both lost for good: lanjobs help lost-quorum"
	p := c.get("/v1/jobs/other").problem(503, "no_leader", words) // it may exist all the same
	if !p.Retryable {
		t.Error("not retryable")
	}
	var v task.ClusterView
	c.get("/v1/status").ok(&v)
	if v.Health != noLeader || v.StaleSeconds != 12 || v.Leader != "" || v.Nodes[1].State != nodeSilent || v.Nodes[0].Role != string(RoleVoter) {
		t.Errorf("%+v", v)
	}
	// A plain worker has nothing to show.
	c.standing.Copy = false
	c.get("/v1/jobs/hello").problem(503, "no_leader", "cannot take changes")
}

func TestStaleByChoiceIsNotWithoutALeader(t *testing.T) {
	l := newCluster(t)
	f := follower(t, l)
	f.forward = nil
	var v task.ClusterView
	a := f.get("/v1/status?consistency=stale").ok(&v)
	if a.header.Get(transport.HeaderStale) != "0.020" || v.Health != healthy || v.Leader != "n1" || v.StaleSeconds != 0 {
		t.Errorf("%v %+v", a.header, v)
	}
	if l.get("/v1/status?consistency=stale").ok(nil).header.Get(transport.HeaderStale) != "" {
		t.Error("the leader's own state is not stale")
	}
}

func TestWritesWaitForALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.members[1].Away, c.members[2].Away = time.Minute, time.Minute
		c.standing = Standing{Copy: true}
		start := time.Now()
		a := c.ask("POST", "/v1/jobs", hello)
		a.problem(503, "no_leader", "cannot take changes: 1 of 3 voters answers")
		if d := time.Since(start); d != defaultWait {
			t.Errorf("waited %s", d)
		}
		if a.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		start = time.Now()
		c.ask("POST", "/v1/jobs", hello, transport.HeaderWait, "1.5").problem(503, "no_leader", "")
		if d := time.Since(start); d != 1500*time.Millisecond {
			t.Errorf("waited %s", d)
		}
		c.ask("POST", "/v1/jobs", hello, transport.HeaderWait, "0").problem(503, "no_leader", "")

		// One is elected after 3 s: the write goes through, once.
		go func() {
			time.Sleep(3 * time.Second)
			c.mu.Lock()
			c.standing = Standing{Leads: true, Copy: true}
			c.mu.Unlock()
		}()
		var r task.SubmitReply
		c.ask("POST", "/v1/jobs", hello).ok(&r)
		if r.ID == "" || c.state.JobSeqs() != 1 {
			t.Errorf("%+v, %d jobs", r, c.state.JobSeqs())
		}
	})
}

func TestALeaderThatDoesNotAnswerIsLeftForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newCluster(t)
		f := follower(t, l)
		tries := 0
		f.forward = func(ctx context.Context, r *transport.APIRequest) (*transport.APIReply, error) {
			if tries++; tries == 1 {
				<-ctx.Done() // frozen
				return nil, context.Cause(ctx)
			}
			return l.api.ServeForwarded(ctx, r)
		}
		start := time.Now()
		f.ask("POST", "/v1/jobs", hello).ok(nil)
		if d := time.Since(start); d < forwardWait || d > forwardWait+time.Second || tries != 2 {
			t.Errorf("%d tries, %s", tries, d)
		}
		// A read does not wait for another one: it is answered from the copy.
		tries = 0
		f.submit(hello)
		if a := f.get("/v1/jobs/hello").ok(nil); a.header.Get(transport.HeaderStale) == "" {
			t.Error("not told that it is old")
		}
	})
}

func TestAWriteWhoseFateIsUnknownIsRepeatedAtTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newCluster(t)
		f := follower(t, l)
		l.lose = 2
		var r task.SubmitReply
		f.ask("POST", "/v1/jobs", hello).ok(&r)
		if l.state.JobSeqs() != 1 || r.Existed || len(l.commands) != 3 {
			t.Errorf("%d jobs, %+v, %d proposals", l.state.JobSeqs(), r, len(l.commands))
		}
		l.lose = 1
		f.ask("DELETE", "/v1/nodes/pc-win", "").ok(nil) // removed already at the second try
		l.lose = 1
		var tok transport.TokenView
		f.ask("POST", "/v1/tokens", `{"uses":3}`).ok(&tok)
		if ts := l.state.JoinTokens(); len(ts) != 1 || ts[0].ID != tok.ID {
			t.Errorf("tokens %+v", ts)
		}
		parsed, err := transport.ParseJoinToken(tok.Token)
		if err != nil || !bytes.Equal(transport.HashSecret(parsed.Secret), l.state.JoinTokens()[0].Hash) {
			t.Errorf("the token in the answer is not the one that lets in: %v", err)
		}
	})
}

func TestAClientThatLeavesEndsItsWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.standing = Standing{Copy: true}
		ctx, cancel := context.WithCancel(WithBy(t.Context(), "anna"))
		go func() { time.Sleep(time.Second); cancel() }()
		r, _ := http.NewRequestWithContext(ctx, "POST", "/v1/jobs", strings.NewReader(hello))
		start := time.Now()
		if a := c.serve(r); a.status != 499 || time.Since(start) != time.Second {
			t.Errorf("%d after %s", a.status, time.Since(start))
		}
	})
}

func TestAnAnswerThatIsNone(t *testing.T) {
	l := newCluster(t)
	f := follower(t, l)
	for _, rep := range []*transport.APIReply{nil, {}, {Status: 99}, {Status: 1000}} {
		f.forward = func(context.Context, *transport.APIRequest) (*transport.APIReply, error) { return rep, nil }
		f.get("/v1/jobs").problem(500, "internal", "cannot be read")
	}
	f.forward = func(context.Context, *transport.APIRequest) (*transport.APIReply, error) {
		return nil, task.NewProblem(task.ErrTooLarge, "a message of 99 bytes is more than 9 bytes.", "")
	}
	f.get("/v1/jobs").problem(413, "too_large", "a message")
}

func TestNoLeaderSentences(t *testing.T) {
	min := time.Minute
	for _, x := range []struct {
		name     string
		away     []time.Duration // of the voters
		lease    bool
		sentence string
		advice   string
	}{
		{"election", []time.Duration{0, 0, min}, true, "nobody leads at the moment, although 2 of 3 voters answer: a leader is being chosen.", "Try again in a few seconds."},
		{"two of two", []time.Duration{0, min}, false, "the cluster cannot take changes: 1 of 2 voters answers, 2 are needed (mini-2 silent 1m, asleep?).", "Wake it. Lost for good: lanjobs help lost-quorum"},
		{"with leases", []time.Duration{0, min, min}, true, "1 of 3 voters answers, 2 are needed (mini-2 silent 1m, asleep?; nas silent 1m).", "Running tasks go on until their leases end (longest: 30s). Wake one of the two."},
		{"three of four", []time.Duration{0, min, min, min}, false, "1 of 4 voters answers, 3 are needed", "Wake 2 of them. Lost for good"},
		{"nobody known", nil, false, "no member that can lead answers.", "Try again"},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newCluster(t)
			c.standing = Standing{}
			for i := range c.members {
				c.members[i].Role = RoleWorker
			}
			for i, away := range x.away {
				c.members[i].Role, c.members[i].Away = RoleVoter, away
			}
			if x.lease {
				c.submit(hello)
				c.grant("n3", "j7k3q9", 0, 0)
			}
			a := c.get("/v1/jobs")
			a.problem(503, "no_leader", x.sentence)
			a.problem(503, "no_leader", x.advice)
		})
	}
}

func TestForwardedHeadersAreOnlyThoseThatMatter(t *testing.T) {
	l := newCluster(t)
	f := follower(t, l)
	var got *transport.APIRequest
	f.forward = func(_ context.Context, r *transport.APIRequest) (*transport.APIReply, error) {
		got = r
		return &transport.APIReply{Status: 200, Body: []byte("{}")}, nil
	}
	f.ask("POST", "/v1/jobs?dry_run=1", hello, "Cookie", "secret", headerVia, "n9", "Idempotency-Key", "k", "Content-Type", "application/yaml").ok(nil)
	if got.Header["Cookie"] != "" || got.Header[headerVia] != "n3" || got.Header["Idempotency-Key"] != "k" || got.Header["Content-Type"] != "application/yaml" ||
		got.Header[transport.HeaderRequestID] == "" || got.Hops != 1 || got.By != "anna" || got.Path != "/v1/jobs?dry_run=1" || string(got.Body) != hello {
		data, _ := json.Marshal(got)
		t.Errorf("forwarded %s", data)
	}
}
