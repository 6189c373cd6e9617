package runner

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"lanjobs/task"
)

// endpoint is what one running task talks to (UX 3): HTTP/1.1 on a socket of its own, there as long as it runs. It lives in the
// agent and is opened again at the same place by the next one.
type endpoint struct {
	r      *Runner
	x      task.ExecutionID
	a      *task.Assignment
	rec    *record
	paths  paths
	door   *door
	ctx    context.Context // ends with the endpoint
	cancel context.CancelFunc
	wg     sync.WaitGroup

	saving   sync.Mutex // one checkpoint after the other reaches the disk
	savedSeq uint64

	ranging     sync.Mutex // one request about the range after the other
	rangeUnsure bool       // a cursor may have arrived whose answer did not

	mu       sync.Mutex
	closed   bool
	conns    map[*taskConn]bool
	entered  uint64 // connections so far
	telling  bool   // progress was sent less than a second ago
	progress *string
}

// openEndpoint answers from now on.
func (r *Runner) openEndpoint(a *attempt) (*endpoint, error) {
	ctx, cancel := context.WithCancel(r.ctx)
	e := &endpoint{r: r, x: a.x, a: &a.assignment, rec: a.record, paths: r.paths(a.x), ctx: ctx, cancel: cancel}
	if err := r.doors.open(r, e); err != nil {
		cancel()
		return nil, err
	}
	return e, nil
}

// maxTaskConns is how many connections a task may have at once: more than any needs, and far below the number of files that the node may
// have open. A task that leaves each of its connections open must not take them from everybody else.
const maxTaskConns = 128

// enter notes a connection, unless it comes too late. One too many takes the place of the oldest that rests; if none does it is refused.
func (e *endpoint) enter(c *taskConn) bool {
	e.mu.Lock()
	var oldest *taskConn
	if len(e.conns) >= maxTaskConns {
		oldest = e.resting()
	}
	ok := !e.closed && (len(e.conns) < maxTaskConns || oldest != nil)
	if ok {
		if e.conns == nil {
			e.conns = map[*taskConn]bool{}
		}
		e.entered++
		c.number = e.entered
		e.conns[c] = true
		delete(e.conns, oldest)
	}
	e.mu.Unlock()
	if ok && oldest != nil {
		_ = oldest.Close()
	}
	return ok
}

// resting is the oldest connection between two requests, nil if there is none; mu is held.
func (e *endpoint) resting() (oldest *taskConn) {
	for c := range e.conns {
		if c.idle && (oldest == nil || c.number < oldest.number) {
			oldest = c
		}
	}
	return oldest
}

func (e *endpoint) exit(c *taskConn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.conns, c)
}

// close takes the socket away and ends connections with what they were waiting for.
func (e *endpoint) close() {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return
	}
	e.closed = true
	conns := slices.Collect(maps.Keys(e.conns))
	e.mu.Unlock()
	e.r.doors.take(e, e.r.ctx.Err() != nil)
	e.cancel()
	for _, c := range conns {
		_ = c.Close()
	}
	e.wg.Wait()
}

// serveEndpoint opens a reattached attempt's endpoint again; mu is held.
func (r *Runner) serveEndpoint(a *attempt) {
	e, err := r.openEndpoint(a)
	if err == nil {
		e.ranging.Lock()
		e.rangeUnsure = true // the earlier agent may have ended between a cursor and its answer
		e.ranging.Unlock()
	}
	if err != nil {
		r.log.Error("task endpoint", "execution", a.x, "error", err)
		return // the task's own helper repeats until its deadline, which the guard obeys
	}
	a.endpoint = e
}

// answer is a handler that leaves errors to problem.
type answer func(e *endpoint, w http.ResponseWriter, req *http.Request) error

func wrap(h answer) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		e, ok := req.Context().Value(endpointKey{}).(*endpoint)
		if !ok {
			writeProblem(w, task.ErrNotFound)
			return
		}
		if secret := e.rec.Secret; secret != "" &&
			subtle.ConstantTimeCompare([]byte(req.Header.Get("Authorization")), []byte("Bearer "+secret)) != 1 {
			writeProblem(w, task.NewProblem(task.ErrNotAllowed, "no valid token", "send Authorization: Bearer with LANJOBS_TOKEN"))
			return
		}
		if err := h(e, w, req); err != nil {
			writeProblem(w, err)
		}
	}
}

// asWritten refuses what a mux would answer with a redirect. curl -f takes that for success, and nothing was done.
func asWritten(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if p := req.URL.EscapedPath(); p != "/" && path.Clean(p) != strings.TrimSuffix(p, "/") {
			writeProblem(w, task.NewProblem(task.ErrInvalid, fmt.Sprintf("the path %q has an empty part or dots in it", clip(p)), "a / in a key is %2F, a key of dots cannot be"))
			return
		}
		h.ServeHTTP(w, req)
	})
}

// leased lets a handler through only while the lease holds by the local deadline: what comes later could not be accepted, and
// must not wait for a network to be told so (R11, R13).
func leased(h func(e *endpoint, b Backend, w http.ResponseWriter, req *http.Request) error) http.HandlerFunc {
	return wrap(func(e *endpoint, w http.ResponseWriter, req *http.Request) error {
		b := e.r.backend
		if d, ok := b.Lease(e.x); !ok || e.r.clock.Boot() >= d.End {
			return task.ErrStaleToken
		}
		return h(e, b, w, req)
	})
}

// leaseLost is the code that tasks know for task.ErrStaleToken (UX 3).
const leaseLost = "lease_lost"

func writeProblem(w http.ResponseWriter, err error) {
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		err = task.NewProblem(task.ErrTooLarge, "the body is larger than allowed", "store the data elsewhere and send its name")
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = task.NewProblem(task.ErrNoLeader, "no answer in time", "repeat the request")
	}
	p := *task.Explain(err)
	status := statusOf(p.Code)
	if p.Code == task.Explain(task.ErrStaleToken).Code {
		p.Code = leaseLost
		p.Hint = "stop now: another execution may own this shard"
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(p) // whoever asked is gone if this fails
}

// statusOf: 409 says one thing only, since scripts stop at it; a changed version is 412.
func statusOf(code string) int {
	switch code {
	case "stale_token":
		return http.StatusConflict
	case "conflict":
		return http.StatusPreconditionFailed
	case "not_found":
		return http.StatusNotFound
	case "invalid":
		return http.StatusBadRequest
	case "not_allowed":
		return http.StatusForbidden
	case "too_large":
		return http.StatusRequestEntityTooLarge
	case "no_leader":
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func writeJSON(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(v)
}

func writeText(w http.ResponseWriter, text string) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := io.WriteString(w, text)
	return err
}

func readBody(w http.ResponseWriter, req *http.Request, limit int64) ([]byte, error) {
	return io.ReadAll(http.MaxBytesReader(w, req.Body, limit))
}
