package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"lanjobs/task"
	"lanjobs/transport"
)

// bulk sends lines and reads as many answers.
func (c *cluster) bulk(lines []string, header ...string) []transport.SubmitAnswer {
	c.t.Helper()
	a := c.ask("POST", "/v1/jobs", strings.Join(lines, "\n")+"\n", append(header, "Content-Type", transport.ContentTypeSpecs)...).ok(nil)
	if kind := a.header.Get("Content-Type"); kind != typeLines {
		c.t.Fatalf("answered with %q", kind)
	}
	var out []transport.SubmitAnswer
	for line := range strings.SplitSeq(strings.TrimSuffix(a.body, "\n"), "\n") {
		var one transport.SubmitAnswer
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			c.t.Fatalf("%v in %s", err, line)
		}
		out = append(out, one)
	}
	if len(out) != len(lines) {
		c.t.Fatalf("%d answers to %d lines: %s", len(out), len(lines), a.body)
	}
	return out
}

func specLine(t *testing.T, request, text string) string {
	return fmt.Sprintf(`{"request_id":%q,"spec":%s}`, request, specJSON(t, text))
}

func jobNamed(n int) string { return fmt.Sprintf("name: job-%d\nrun: echo hi\n", n) }

func TestManyJobsInOneRequest(t *testing.T) {
	c := newCluster(t)
	keyed := "name: keyed\nidempotency_key: once\nrun: echo 1\n"
	lines := []string{
		specLine(t, "a1", jobNamed(0)),
		specLine(t, "a2", keyed),
		`{"request_id":"a3","spec":{"name":"x"}}`,
		`{"request_id":"a4","spec":{"name":"x","nonsense":1}}`,
		`{"request_id":"a5"}`,
		`not JSON`,
		``,
		specLine(t, "a b", jobNamed(1)),
		`{"spec":` + specJSON(t, jobNamed(2)) + `}`,
		specLine(t, "a9", "name: train\nplacement: {require: [gpu=true]}\nrun: x\n"),
	}
	got := c.bulk(lines, transport.HeaderRequestID, "q1")
	for i, want := range []string{"job-0", "keyed", "!invalid", "!invalid", "!invalid no spec", "!invalid", "!invalid", "!invalid request_id", "job-2", "train"} {
		a := got[i]
		words, bad := strings.CutPrefix(want, "!")
		code, detail, _ := strings.Cut(words, " ")
		switch {
		case bad && (a.Problem == nil || a.SubmitReply != nil || a.Problem.Code != code || !strings.Contains(a.Problem.Detail, detail)):
			t.Errorf("line %d: %+v, want a problem %s", i, a.Problem, words)
		case !bad && (a.Problem != nil || a.Name != want || a.ID == "" || a.Existed):
			t.Errorf("line %d: %+v %+v, want %s", i, a.SubmitReply, a.Problem, want)
		}
	}
	if !strings.Contains(got[9].Note, "no machine can run it now") {
		t.Errorf("note %q", got[9].Note)
	}
	if j := c.state.Job(got[0].ID); j.Request != "a1" || j.By != "anna" || j.Spec.JSON != specJSON(t, jobNamed(0)) {
		t.Errorf("stored %+v", j)
	}
	if j := c.state.Job(got[8].ID); j.Request != "q1.8" {
		t.Errorf("a line without an id has %q", j.Request)
	}

	// The same again is the same jobs; a conflict with a key is a problem of its line.
	other := specLine(t, "b1", strings.Replace(keyed, "echo 1", "echo 2", 1))
	again := c.bulk(append(lines[:2:2], other, specLine(t, "b2", keyed)), transport.HeaderRequestID, "q2")
	if again[0].ID != got[0].ID || again[0].Existed || again[1].ID != got[1].ID {
		t.Errorf("repeated: %+v %+v", again[0].SubmitReply, again[1].SubmitReply)
	}
	if p := again[2].Problem; p == nil || p.Code != "conflict" || !strings.Contains(p.Detail, string(got[1].ID)) {
		t.Errorf("%+v", p)
	}
	if again[3].ID != got[1].ID || !again[3].Existed {
		t.Errorf("%+v", again[3].SubmitReply)
	}
	if n := c.state.JobSeqs(); n != 4 {
		t.Errorf("%d jobs", n)
	}
}

// Whoever uses a request's id again for other work hears of it: as a repeat of the first it would be acknowledged and lost.
func TestARequestIDIsForOneRequest(t *testing.T) {
	c := newCluster(t)
	const words = `the request id "x" was used 1h ago by j7k3q9 (job-1) with a different file; nothing was submitted. | Other work needs another id.`
	got := c.bulk([]string{specLine(t, "x", jobNamed(1)), specLine(t, "x", jobNamed(2)), specLine(t, "x", jobNamed(1))})
	if got[0].Problem != nil || got[1].Problem == nil || got[1].Problem.Error() != strings.Split(words, " | ")[0] || got[2].Problem != nil || got[2].ID != got[0].ID {
		t.Errorf("%+v", got)
	}
	id := []string{transport.HeaderRequestID, "x"}
	c.ask("POST", "/v1/jobs", jobNamed(2), id...).problem(409, "conflict", words)
	for _, act := range []string{"pause", "resume", "pause"} { // the last is a repeat of the first, and answered as it is now
		c.ask("POST", "/v1/queues/default/"+act, "", id...).ok(nil)
		c.ask("POST", "/v1/jobs/job-1/"+act, "", id...).ok(nil)
	}
	if c.state.Queue("default").Paused || c.state.Job("j7k3q9").Paused {
		t.Error("resume was not done")
	}
	for _, name := range []string{"nightly", "weekly"} {
		c.ask("POST", "/v1/jobs", strings.Replace(nightly, "nightly", name, 1), id...).ok(nil)
		if c.state.Schedule(name) == nil {
			t.Errorf("%s was acknowledged and is not there", name)
		}
	}
	long := transport.HeaderRequestID
	for _, act := range []string{"pause", "resume"} {
		c.ask("POST", "/v1/queues/default/"+act, "", long, strings.Repeat("x", task.MaxRequestID)).ok(nil)
	}
	if c.state.Queue("default").Paused {
		t.Error("resume under a long id was not done")
	}
}

func TestLimitsOfManyJobs(t *testing.T) {
	c := newCluster(t)
	line := specLine(t, "", jobNamed(1))
	kind := []string{"Content-Type", transport.ContentTypeSpecs}
	c.ask("POST", "/v1/jobs", strings.Repeat(line+"\n", transport.MaxSubmitLines+1), kind...).problem(413, "too_large", "1001 jobs, at most 1000")
	c.ask("POST", "/v1/jobs", strings.Repeat(" ", transport.MaxSubmitBytes+1), kind...).problem(413, "too_large", "16384 KiB")
	c.ask("POST", "/v1/jobs?dry_run=1", line, kind...).problem(400, "invalid", "dry_run")
	c.ask("POST", "/v1/jobs", line, append(kind, "Idempotency-Key", "k")...).problem(400, "invalid", "Idempotency-Key")
	c.ask("POST", "/v1/jobs", "", kind...).problem(400, "invalid", "no job")
	if len(c.commands) > 0 {
		t.Error("something was proposed")
	}
	large := strings.Replace(line, `"name":"job-1"`, `"name":"job-1","description":"`+strings.Repeat("x", task.MaxSpecBytes)+`"`, 1)
	got := c.bulk([]string{large, line})
	if p := got[0].Problem; p == nil || p.Code != "too_large" || got[1].Problem != nil {
		t.Errorf("%+v %+v", p, got[1].Problem)
	}
}

// TestManyJobsWhoseFateIsUnknown: what is in the ledger already is not proposed again, the rest until it is known.
func TestManyJobsWhoseFateIsUnknown(t *testing.T) {
	c := newCluster(t)
	var lines []string
	for i := range 10 {
		lines = append(lines, specLine(t, fmt.Sprintf("r%d", i), jobNamed(i)))
	}
	c.refuse, c.lose = 2, 3
	got := c.bulk(lines)
	for i, a := range got {
		if a.Problem != nil || a.Existed || a.Name != fmt.Sprintf("job-%d", i) {
			t.Errorf("line %d: %+v %+v", i, a.SubmitReply, a.Problem)
		}
	}
	if n := c.state.JobSeqs(); n != 10 {
		t.Errorf("%d jobs", n)
	}
	if n := len(c.commands); n != 15 {
		t.Errorf("%d proposals, want 10 and those 5 again whose fate was unknown", n)
	}
	if err := c.state.Check(); err != nil {
		t.Error(err)
	}
}

func TestManyJobsThroughAFollower(t *testing.T) {
	l := newCluster(t)
	f := follower(t, l)
	got := f.bulk([]string{specLine(t, "r1", jobNamed(1)), "{}", specLine(t, "r2", jobNamed(2))})
	if got[0].Name != "job-1" || got[1].Problem == nil || got[2].Name != "job-2" || l.state.JobSeqs() != 2 || len(f.commands) > 0 {
		t.Errorf("%+v", got)
	}
}

// TestTheDigestIsThatOfTheSpecWithoutItsSource holds both ways of making it together.
func TestTheDigestIsThatOfTheSpecWithoutItsSource(t *testing.T) {
	var with, without task.Spec
	if err := json.Unmarshal([]byte(specJSON(t, hello)), &with); err != nil {
		t.Fatal(err)
	}
	without = with
	without.Source = ""
	if with.Source == "" {
		t.Fatal("the source is not in the spec")
	}
	a, err1 := digest(&with)
	b, err2 := digest(&without)
	if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
		t.Errorf("%x %x %v %v", a, b, err1, err2)
	}
}

// BenchmarkManyJobs is what a request of 1000 different small jobs costs beside the log: decode, check, encode, apply.
func BenchmarkManyJobs(b *testing.B) {
	for _, different := range []bool{true, false} {
		b.Run(fmt.Sprintf("different=%v", different), func(b *testing.B) {
			t := &testing.T{}
			var lines []string
			for i := range transport.MaxSubmitLines {
				lines = append(lines, specLine(t, fmt.Sprint("r", i), jobNamed(map[bool]int{true: i}[different])))
			}
			body := []byte(strings.Join(lines, "\n"))
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				q := &request{id: "q", body: body}
				lines := lineReader{same: map[string]*submission{}}
				for line := range bytes.SplitSeq(q.body, []byte("\n")) {
					if s := lines.read(line); s.problem != nil {
						b.Fatal(s.problem)
					}
				}
			}
		})
	}
}

// TestALineIsReadTheSameAfterAnother: what is known of the last line saves work and changes nothing.
func TestALineIsReadTheSameAfterAnother(t *testing.T) {
	spec, other := specJSON(t, jobNamed(1)), specJSON(t, jobNamed(2))
	tail := `,"spec":` + spec + `}`
	lines := []string{
		`{"request_id":"a"` + tail, `{"request_id":"b"` + tail, ` { "request_id" : "c" ` + tail, `{"request_id":"d","spec":` + other + tail,
		`{` + tail, `{ ` + tail, tail, `{"request_id":"e",` + tail, `{"request_id":null` + tail, `{"request_id":""` + tail, `{"request_id":"f","x":1` + tail,
		`{"request_id":"g"} {"request_id":"h"` + tail, `{"x":"` + tail, `{"request_id":"i` + tail, `{"request_id":"j"}` + tail, `["k"` + tail, `{"request_id":7` + tail,
		`{"request_id":"l","spec":` + other + `}`, `{"request_id":"m"` + tail + `}`, `{"request_id":"n"` + tail + ` `,
	}
	fresh := func() *lineReader { return &lineReader{same: map[string]*submission{}} }
	said := func(s *submission) string {
		if s.problem != nil {
			return "refused: " + s.problem.Error()
		}
		return fmt.Sprintf("%s %s", s.id, s.data)
	}
	for _, line := range lines {
		after := fresh()
		if s := after.read([]byte(`{"request_id":"first"` + tail)); s.problem != nil || after.last == nil {
			t.Fatalf("%+v", s.problem)
		}
		if got, want := said(after.read([]byte(line))), said(fresh().read([]byte(line))); got != want {
			t.Errorf("%s\nis %s\nand alone %s", line, got, want)
		}
	}
}
