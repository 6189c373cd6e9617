package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
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
	if rt.check != nil {
		return q, rt.check(q)
	}
	return q, nil
}

// onlyKnown refuses parameters that have no effect: a filter with a slip in its name would show everything.
func (q *request) onlyKnown(params string) error {
	known := append(strings.Fields(params), "consistency")
	for name := range q.query {
		if slices.Contains(known, name) {
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

// writeHeaders reads what a write carries beside its body.
func (q *request) writeHeaders(a *API) error {
	h := q.http.Header
	if m := h.Get("If-Match"); m != "" && m != "*" {
		return &statusError{http.StatusPreconditionFailed, task.NewProblem(task.ErrConflict, "changes under a condition (If-Match) are not built yet; nothing was changed", "")}
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

// decode reads a JSON body. An unknown field is refused: it asks for something that would not be done. No body is the zero value.
func (q *request) decode(v any) error {
	if len(bytes.TrimSpace(q.body)) == 0 {
		return nil
	}
	if kind, _, _ := mime.ParseMediaType(q.http.Header.Get("Content-Type")); kind != typeJSON && kind != "" {
		return invalid("the body's type is "+shown(kind)+", not "+typeJSON, "")
	}
	return decodeJSON(q.body, v)
}

func decodeJSON(body []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if _, more := d.Token(); err == nil && more != io.EOF {
		err = errors.New("something follows the JSON value")
	}
	if err != nil {
		return invalid("the body cannot be read: "+strings.TrimPrefix(err.Error(), "json: "), "A field that is unknown here may need a newer version of lanjobs on the leader.")
	}
	return nil
}

// value gives a part of the path.
func (q *request) value(name string) string { return q.http.PathValue(name) }
