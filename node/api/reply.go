package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"lanjobs/task"
)

// reply is a complete answer, built before any of it is sent.
type reply struct {
	status int
	header map[string]string
	body   []byte
}

const (
	typeJSON    = "application/json"
	typeProblem = "application/problem+json"
	typeText    = "text/plain; charset=utf-8"
	typeLines   = "application/x-ndjson"
)

func (r *reply) set(name, value string) *reply {
	if r.header == nil {
		r.header = map[string]string{}
	}
	r.header[name] = value
	return r
}

func (r *reply) send(w http.ResponseWriter) {
	for name, value := range r.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body) // a caller who has gone is not told
}

// jsonReply writes a view. encoding/json makes "<" and its kin harmless, wherever the text ends up (C52).
func jsonReply(status int, v any) (*reply, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return (&reply{status: status, body: append(body, '\n')}).set("Content-Type", typeJSON), nil
}

func ok(v any) (*reply, error) { return jsonReply(http.StatusOK, v) }

func textReply(body []byte) *reply {
	return (&reply{status: http.StatusOK, body: body}).set("Content-Type", typeText)
}

// errInternal is a fault of lanjobs itself.
var errInternal = errors.New("internal error")

// statusError gives a problem a status of its own.
type statusError struct {
	status int
	*task.Problem
}

func (e *statusError) Unwrap() error { return e.Problem }

// statuses of the problems' codes.
var statuses = map[string]int{
	"invalid": http.StatusBadRequest, "not_allowed": http.StatusForbidden, "not_found": http.StatusNotFound,
	"conflict": http.StatusConflict, "stale_token": http.StatusConflict, "too_large": http.StatusRequestEntityTooLarge,
	"no_leader": http.StatusServiceUnavailable, "internal": http.StatusInternalServerError,
}

// problemReply is an error as its caller gets it (RFC 9457).
func problemReply(err error) *reply {
	var view any
	p := task.Explain(err)
	view = p
	if l, isLog := errors.AsType[*logError](err); isLog {
		view = l.view
	}
	status := statuses[p.Code]
	if s, own := errors.AsType[*statusError](err); own {
		status = s.status
	}
	if errors.Is(err, context.Canceled) {
		status = 499 // the caller has gone; nobody reads it
	}
	body, err := json.Marshal(view)
	if err != nil || status == 0 {
		status = http.StatusInternalServerError
	}
	r := (&reply{status: status, body: append(body, '\n')}).set("Content-Type", typeProblem)
	if p.Retryable || status == http.StatusTooManyRequests {
		r.set("Retry-After", strconv.Itoa(1))
	}
	return r
}

// invalid is a fault of the request itself.
func invalid(detail, hint string) error { return task.NewProblem(task.ErrInvalid, detail, hint) }
