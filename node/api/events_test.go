package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/fsm"
	"lanjobs/node/observe"
	"lanjobs/task"
	"lanjobs/transport"
)

func (c *cluster) events(query string) task.List[task.Event] {
	c.t.Helper()
	var l task.List[task.Event]
	c.get("/v1/events?" + query).ok(&l)
	if l.Kind != "EventList" || l.Items == nil {
		c.t.Errorf("list is %+v", l)
	}
	return l
}

func kinds(events []task.Event) string {
	var out []string
	for _, e := range events {
		out = append(out, string(e.Kind))
	}
	return strings.Join(out, " ")
}

func TestEvents(t *testing.T) {
	c := newCluster(t)
	c.submit(hello)
	c.run("n3", "j7k3q9", 0, 0)
	for query, want := range map[string]string{
		"job=hello":                         "job.submit stage.state lease.grant job.state lease.confirm lease.release stage.state job.state",
		"job=j7k3q9&kind=lease":             "lease.grant lease.confirm lease.release",
		"job=hello/main/0":                  "lease.grant lease.confirm lease.release",
		"job=hello&stage=main&kind=lease.*": "lease.grant lease.confirm lease.release",
		"job=hello&shards=1-5":              "",
		"job=gone":                          "",
		"node=nas&kind=lease,node":          "node.join node.register lease.grant lease.confirm lease.release",
		"kind=lease.release&node=n3":        "lease.release",
		"job=hello&tail=2":                  "stage.state job.state",
		"job=hello&limit=2":                 "job.submit stage.state",
		"since=60&job=hello":                "",
	} {
		if got := kinds(c.events(query).Items); got != want {
			t.Errorf("%s gives %q, want %q", query, got, want)
		}
	}
	all := c.events("").Items
	var paged []task.Event
	for after := ""; ; {
		l := c.events("limit=3&after=" + after)
		paged = append(paged, l.Items...)
		if after = l.Next; after == "" {
			break
		}
	}
	if kinds(paged) != kinds(all) || len(all) < 12 {
		t.Errorf("pages give %s", kinds(paged))
	}
	from := all[5].Index
	if l := c.events(fmt.Sprintf("from=%d", from)); l.Items[0].Index != from || l.Index != all[len(all)-1].Index {
		t.Errorf("from %d gives %+v", from, l.Items[0])
	}
}

func TestEventsOfAJobThatWasCollected(t *testing.T) {
	c := newCluster(t)
	c.submit("name: hello\nretain: 1m\nrun: echo\n")
	c.run("n3", "j7k3q9", 0, 0)
	c.lead(11 * time.Minute)
	c.do(0, &fsm.CollectJobs{Jobs: []task.JobID{"j7k3q9"}})
	if got := kinds(c.events("job=j7k3q9&kind=job").Items); got != "job.submit job.state job.state job.collect" {
		t.Errorf("%s", got)
	}
}

// stream is a client that reads lines as they come.
type stream struct {
	header http.Header
	status int
	r      *io.PipeReader
	w      *io.PipeWriter
	lines  chan string
	cancel context.CancelFunc
	done   chan struct{}
}

func (s *stream) Header() http.Header         { return s.header }
func (s *stream) WriteHeader(n int)           { s.status = n }
func (s *stream) Write(b []byte) (int, error) { return s.w.Write(b) }
func (s *stream) Flush()                      {}

func (c *cluster) stream(query string) *stream {
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(WithBy(context.Background(), "anna"))
	s := &stream{header: http.Header{}, r: r, w: w, lines: make(chan string, 1000), cancel: cancel, done: make(chan struct{})}
	req, _ := http.NewRequestWithContext(ctx, "GET", "/v1/events?"+query, nil)
	go func() {
		defer close(s.done)
		defer w.Close()
		c.api.ServeHTTP(s, req)
	}()
	go func() {
		for sc := bufio.NewScanner(r); sc.Scan(); {
			s.lines <- sc.Text()
		}
		close(s.lines)
	}()
	return s
}

// got gives the events that have come so far.
func (s *stream) got(t *testing.T) (events []task.Event, empty int) {
	t.Helper()
	synctest.Wait()
	for {
		select {
		case line := <-s.lines:
			if line == "" {
				empty++
				continue
			}
			var e task.Event
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Errorf("%v in %q", err, line)
			}
			events = append(events, e)
		default:
			return events, empty
		}
	}
}

func (s *stream) end() {
	s.cancel()
	<-s.done
}

// auditing runs the audit log's writer within a bubble.
func (c *cluster) auditing(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.audit.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestFollowEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.auditing(t)()
		c.submit(hello)
		synctest.Wait()
		fresh, leases, last := c.stream("follow=1"), c.stream("follow=1&kind=lease&from=1"), c.stream("follow=1&tail=1")
		fresh.got(t)
		c.run("n3", "j7k3q9", 0, 0)
		events, _ := fresh.got(t)
		if got := kinds(events); got != "lease.grant job.state lease.confirm lease.release stage.state job.state" {
			t.Errorf("fresh: %s", got)
		}
		if events, _ = leases.got(t); kinds(events) != "lease.grant lease.confirm lease.release" {
			t.Errorf("leases: %s", kinds(events))
		}
		if events, _ = last.got(t); !strings.HasPrefix(kinds(events), "stage.state lease.grant") || len(events) != 7 {
			t.Errorf("tail: %s", kinds(events))
		}
		if fresh.status != 200 || fresh.header.Get("Content-Type") != typeLines || fresh.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%d %v", fresh.status, fresh.header)
		}
		time.Sleep(beat + time.Second)
		if events, empty := fresh.got(t); len(events) > 0 || empty != 1 {
			t.Errorf("%d events, %d signs of life", len(events), empty)
		}
		for _, s := range []*stream{fresh, leases, last} {
			s.end()
		}
		if n := len(c.api.streams); n != 0 {
			t.Errorf("%d streams still counted", n)
		}
	})
}

func TestAStreamEndsWhenItsClientIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.auditing(t)()
		s := c.stream("follow=1")
		s.got(t)
		_ = s.r.Close() // every write fails from now on
		time.Sleep(beat + time.Second)
		select {
		case <-s.done:
		default:
			t.Error("it goes on")
			s.end()
		}
		s.cancel()
	})
}

func TestStreamsAreCounted(t *testing.T) {
	c := newCluster(t)
	for range maxStreams {
		c.api.streams.enter()
	}
	c.get("/v1/events?follow=1").problem(429, "no_leader", "")
	c.get("/v1/events?follow").problem(429, "no_leader", "")
	c.get("/v1/status").ok(nil) // others are not
}

func TestAPlainWorkerStreamsFromTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newCluster(t)
		defer l.auditing(t)()
		f := follower(t, l)
		f.standing, f.api.cfg.Audit = Standing{}, nil
		l.submit(hello)
		synctest.Wait()
		fresh, old := f.stream("follow=1"), f.stream("follow=1&job=hello&from=1")
		events, _ := old.got(t)
		if got := kinds(events); got != "job.submit stage.state" {
			t.Errorf("old: %s", got)
		}
		fresh.got(t)
		forward := f.forward
		set := func(to func(context.Context, *transport.APIRequest) (*transport.APIReply, error)) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.forward = to
		}
		set(nil) // nobody leads for a while
		time.Sleep(3 * time.Second)
		set(forward)
		l.run("n3", "j7k3q9", 0, 0)
		time.Sleep(2 * time.Second)
		for name, s := range map[string]*stream{"fresh": fresh, "old": old} {
			if events, _ := s.got(t); kinds(events) != "lease.grant job.state lease.confirm lease.release stage.state job.state" {
				t.Errorf("%s: %s", name, kinds(events))
			}
			s.end()
		}
		var list task.List[task.Event]
		f.get("/v1/events?job=hello&tail=1").ok(&list)
		if kinds(list.Items) != "job.state" {
			t.Errorf("%s", kinds(list.Items))
		}
	})
}

func TestPositions(t *testing.T) {
	p := observe.Position{Index: 18231, N: 3}
	if got, err := parsePosition(p.String()); err != nil || got != p {
		t.Errorf("%v %v", got, err)
	}
}

func TestKindsOfEventsAreKnown(t *testing.T) {
	c := newCluster(t)
	for _, kind := range []string{"lease", "lease.*", "lease.expire", "lease,node.join", "schedule.fire"} {
		c.get("/v1/events?kind=" + kind).ok(nil)
	}
	c.get("/v1/events?kind=lease.exipre").problem(400, "invalid", `no event is called "lease.exipre". Did you mean "lease.expire"? | Those of lease: lease.grant, lease.confirm`)
	c.get("/v1/events?kind=leese").problem(400, "invalid", `Did you mean "lease"? | One kind, as lease.expire, or all of cluster, leader, node`)
}
