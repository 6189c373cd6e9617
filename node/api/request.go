package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// request is what a client asks, read in full and within its limits.
type request struct {
	http      *http.Request
	query     url.Values
	body      []byte
	caller    Caller
	by        string         // caller.By
	id        task.RequestID // of a write
	wait      time.Duration  // how long a write may wait for a leader
	hold      time.Duration  // how long a log request may wait for output
	stale     bool           // this member's copy will do
	silence   time.Duration  // answered from this member's copy: since it heard of a leader
	orphan    bool           // and there is none now
	via       task.NodeID    // the member that the client talks to
	arrived   time.Time      // by this machine's wall clock
	forwarded bool
	lines     []*submission // of a submit, once they were checked
}

// accept reads a request and refuses what is malformed.
func (a *API) accept(w http.ResponseWriter, r *http.Request, rt route) (*request, error) {
	caller := callerOf(r.Context())
	q := &request{http: r, caller: caller, by: caller.By, via: a.cfg.Self, arrived: a.clock.Wall(), wait: defaultWait}
	if f, passed := r.Context().Value(forwardedKey{}).(forwarded); passed {
		q.forwarded, q.via = true, f.via
	}
	var err error
	if q.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return nil, invalid("the query cannot be read: "+err.Error(), "")
	}
	if err := q.onlyKnown(rt.params); err != nil {
		return nil, err
	}
	if err := q.oneOfEach(); err != nil {
		return nil, err
	}
	switch c := q.query.Get("consistency"); c {
	case "", "default":
	case "stale":
		q.stale = true
	default:
		return nil, invalid("consistency "+shown(c)+" is not known", "write default or stale")
	}
	if rt.where == commit || rt.where == here && r.Method != http.MethodGet && r.Method != http.MethodHead {
		if err := q.writeHeaders(a); err != nil {
			return nil, err
		}
	}
	if rt.long {
		if q.hold, err = q.duration("hold", maxHold); err != nil {
			return nil, err
		}
	}
	if q.body, err = a.readBody(w, r, rt.bodyLimit(r)); err != nil {
		return nil, err
	}
	if rt.where == commit && rt.body != maxJobBody {
		q.id = q.id.Of([]byte(r.Method+" "+r.URL.RequestURI()+"\n"), q.body)
	}
	if rt.check != nil {
		return q, rt.check(q)
	}
	return q, nil
}

// mayBeEmpty are flags, whose name alone is yes, and what a script has before the first page.
var mayBeEmpty = []string{"dry_run", "dead", "attempts", "why", "all", "force", "follow", "after"}

// onlyKnown refuses parameters that have no effect: a filter with a slip in its name, or with a variable that a script has not
// set, would show everything.
func (q *request) onlyKnown(params string) error {
	known := append(strings.Fields(params), "consistency")
	for name, values := range q.query {
		switch {
		case !slices.Contains(known, name):
		case len(values) > 1:
			return invalid(name+" is given twice", "")
		case values[0] == "" && !slices.Contains(mayBeEmpty, name):
			return invalid(name+" is empty", "leave it out, or give it a value")
		default:
			continue
		}
		hint := "Known here: " + strings.Join(known, ", ")
		if near := task.Nearest(known, name); near != "" {
			hint = fmt.Sprintf("Did you mean %q?", near)
		}
		return invalid("the parameter "+shown(name)+" is not known here", hint)
	}
	return nil
}

// oneOfEach refuses headers of which only one would count, and what would be read as something else.
func (q *request) oneOfEach() error {
	h := q.http.Header
	for _, name := range append(passed, transport.HeaderWait) {
		values := h.Values(name)
		if len(values) > 1 {
			return invalid("the header "+name+" is given twice", "")
		}
		if len(values) == 1 && values[0] == "" && name != "Content-Type" {
			return invalid("the header "+name+" is empty", "leave it out, or give it a value")
		}
	}
	if c := h.Get("Content-Encoding"); c != "" && c != "identity" {
		return invalid("the body comes as "+shown(c)+"; bodies are taken as they are", "send it without Content-Encoding")
	}
	return nil
}

// conditions are headers that a change depends on.
var conditions = []string{"If-Match", "If-None-Match", "If-Unmodified-Since"}

// writeHeaders reads what a write carries beside its body.
func (q *request) writeHeaders(a *API) error {
	h := q.http.Header
	for _, name := range conditions {
		for _, m := range h.Values(name) {
			if name != "If-Match" || m != "" && m != "*" {
				return &statusError{http.StatusPreconditionFailed, task.NewProblem(task.ErrConflict, "changes under a condition ("+name+") are not built yet; nothing was changed", "")}
			}
		}
	}
	q.id = task.RequestID(h.Get(transport.HeaderRequestID))
	switch {
	case q.id == "":
		q.id = a.cfg.NewID()
		h.Set(transport.HeaderRequestID, string(q.id)) // the same when it is forwarded
	case !q.id.Valid():
		return invalid(fmt.Sprintf("%s is up to %d letters, digits and signs", transport.HeaderRequestID, task.MaxRequestID), "")
	}
	if text := h.Get(transport.HeaderWait); text != "" {
		wait, ok := lengthOf(text)
		if !ok || wait > maxWait {
			return invalid(fmt.Sprintf("%s %s is not from 0 to %d seconds", transport.HeaderWait, shown(text), int(maxWait.Seconds())), "")
		}
		q.wait = wait
	}
	return nil
}

// soon as a deadline makes a read that waits return at once.
var soon = time.Unix(1, 0)

// maxTrusted is how much room is made for a body because a client says that it will come.
const maxTrusted = 256 << 10

// readBody takes at most limit bytes, and for at most bodyWait: a client that sends one byte a minute would keep others out.
func (a *API) readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	ctx, cancel := transport.WithTimeout(r.Context(), a.cfg.Clock, bodyWait)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = http.NewResponseController(w).SetReadDeadline(soon) })
	defer stop()
	var into bytes.Buffer
	into.Grow(int(min(max(r.ContentLength, 0), limit, maxTrusted)) + bytes.MinRead)
	_, err := into.ReadFrom(http.MaxBytesReader(w, r.Body, max(limit, 1)))
	body := into.Bytes()
	if err != nil && context.Cause(ctx) == context.DeadlineExceeded {
		return nil, &statusError{http.StatusRequestTimeout, task.NewProblem(task.ErrInvalid, fmt.Sprintf("the body did not come within %s", bodyWait), "")}
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large || err == nil && int64(len(body)) > limit {
		if limit == 0 {
			return nil, invalid("this request takes no body", "")
		}
		return nil, task.NewProblem(task.ErrTooLarge, fmt.Sprintf("the body is larger than %d KiB", limit>>10), "")
	}
	if err != nil {
		return nil, invalid("the body cannot be read: "+err.Error(), "")
	}
	return body, nil
}

// value gives a part of the path.
func (q *request) value(name string) string { return q.http.PathValue(name) }
