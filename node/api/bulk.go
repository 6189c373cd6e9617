package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// isBulk tells whether a body holds many jobs, one a line.
func isBulk(r *http.Request) bool {
	return mediaType(r.Header.Get("Content-Type")) == transport.ContentTypeSpecs
}

// readLines makes submissions of the lines of a body. A line that is no job is answered with its problem and holds no other up;
// only a body that is no such list is refused as a whole.
func readLines(q *request) error {
	switch {
	case q.http.Header.Get("Idempotency-Key") != "":
		return invalid("the header Idempotency-Key is for one job; here each has its own idempotency_key", "")
	case q.query.Has("dry_run"):
		return invalid("dry_run is for one job", "")
	}
	body := bytes.TrimSuffix(q.body, []byte("\n"))
	if n := bytes.Count(body, []byte("\n")) + 1; n > transport.MaxSubmitLines {
		return task.NewProblem(task.ErrTooLarge, fmt.Sprintf("the body has %d jobs, at most %d are allowed", n, transport.MaxSubmitLines), "Send the rest in a request of its own.")
	}
	lines := lineReader{now: q.arrived, same: map[string]*submission{}}
	for line := range bytes.SplitSeq(body, []byte("\n")) {
		s := lines.read(line)
		if s.id == "" && s.problem == nil {
			s.id = q.id + task.RequestID("."+strconv.Itoa(len(q.lines)))
		}
		switch {
		case s.problem != nil:
		case s.id.Valid():
			s.requestedAs(s.id)
		default:
			s.problem = task.Explain(invalid(fmt.Sprintf("request_id is up to %d letters, digits and signs", task.MaxRequestID), ""))
		}
		q.lines = append(q.lines, s)
	}
	return nil
}

// lineReader makes submissions of lines. Many jobs are the same but for their request.
type lineReader struct {
	now  time.Time
	same map[string]*submission // by the text of their spec
	tail []byte                 // how the last line ended which had its spec at its end, from the comma on
	last *submission            // what became of that spec
}

func (r *lineReader) read(line []byte) *submission {
	refused := func(err error) *submission { return &submission{problem: task.Explain(err)} }
	if id, ok := r.readHead(line); ok {
		s := *r.last
		s.id = id
		return &s
	}
	var l transport.SubmitLine
	if err := decodeJSON(line, &l); err != nil {
		return refused(err)
	}
	if len(l.Spec) == 0 {
		return refused(invalid("there is no spec in this line", ""))
	}
	known := r.same[string(l.Spec)]
	if known == nil {
		spec, err := decodeSpec(l.Spec)
		if err != nil {
			return refused(err)
		}
		if known, err = newSubmission(spec, r.now); err != nil {
			return refused(err)
		}
		r.same[string(l.Spec)] = known
	}
	if tail := ",\"spec\":" + string(l.Spec) + "}"; bytes.HasSuffix(line, []byte(tail)) {
		r.tail, r.last = []byte(tail), known
	}
	s := *known
	s.id = l.RequestID
	return &s
}

// readHead reads a line that ends as the last one did, without reading the spec again: if what stands before the comma is an
// object with a member once it is closed there, and has no spec yet, then the line is that object with this spec.
func (r *lineReader) readHead(line []byte) (task.RequestID, bool) {
	head, ok := bytes.CutSuffix(line, r.tail)
	if !ok || r.last == nil {
		return "", false
	}
	var l transport.SubmitLine
	err := decodeJSON(append(head[:len(head):len(head)], '}'), &l)
	return l.RequestID, err == nil && l.RequestID != "" && len(l.Spec) == 0
}

// submitLines answers a POST /v1/jobs of many jobs. All are proposed together, so that they share log entries. While the fate of
// one is unknown the whole is repeated, but for those that are known to be in the ledger.
func (a *API) submitLines(ctx context.Context, q *request) (*reply, error) {
	var open []*submission
	var jobs []fsm.SubmitJob
	a.look(q, func(v *view) {
		for _, s := range q.lines {
			if s.problem == nil && s.spec.Schedule != nil {
				if err := v.wakesWhom(s.spec); err != nil {
					s.problem = task.Explain(err)
				}
			}
		}
	})
	for _, s := range q.lines {
		if !s.done && s.problem == nil {
			open, jobs = append(open, s), append(jobs, fsm.SubmitJob{RequestID: s.id, Spec: s.data, Digest: s.sum, By: q.by})
		}
	}
	results, errs := a.cfg.Leader.SubmitAll(ctx, jobs)
	var unknown error
	for i, s := range open {
		switch err := errs[i]; {
		case err == nil:
			s.result, s.done = results[i], true
		case errors.Is(err, task.ErrNoLeader):
			unknown = err
		default:
			s.problem = task.Explain(err)
		}
	}
	if unknown != nil {
		return nil, unknown
	}
	answers := make([]transport.SubmitAnswer, len(q.lines))
	a.look(q, func(v *view) {
		for i, s := range q.lines {
			if out, err := v.submitted(s); err != nil {
				answers[i].Problem = task.Explain(err)
			} else {
				answers[i].SubmitReply = out
			}
		}
	})
	var body bytes.Buffer
	lines := json.NewEncoder(&body)
	for i := range answers {
		if err := lines.Encode(&answers[i]); err != nil {
			return nil, err
		}
	}
	return (&reply{status: http.StatusOK, body: body.Bytes()}).set("Content-Type", typeLines), nil
}
