package api

import (
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strings"

	"lanjobs/task"
)

// open are the paths that answer anybody: they tell nothing but that the process lives.
var open = []string{"/healthz", "/readyz"}

// ServeHTTP answers a client of this member.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'") // no answer is a page (C52)
	h.Set("Cache-Control", "no-store")
	if err := a.admit(r); err != nil {
		problemReply(err).send(w)
		return
	}
	a.enter(w, r)
}

// admit decides who may ask at all.
func (a *API) admit(r *http.Request) error {
	if slices.Contains(open, r.URL.Path) {
		return nil
	}
	if !callerOf(r.Context()).known() {
		return &statusError{http.StatusUnauthorized, task.NewProblem(task.ErrNotAllowed, "no credential came with this request",
			"Use the socket of the node here as its owner, or log in: lanjobs login MACHINE")}
	}
	if err := a.origins.Check(r); err != nil {
		return &statusError{http.StatusForbidden, task.NewProblem(task.ErrNotAllowed, "a page of another site may not ask for changes here", "")}
	}
	return nil
}

// enter finds the route. The mux would answer an unclean path with a redirect and a page; no client of ours sends one.
func (a *API) enter(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			a.log.Error("API request failed", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			problemReply(task.NewProblem(errInternal, "this request met a fault of lanjobs itself; the log of "+a.cfg.Name+" has it", "")).send(w)
		}
	}()
	if p := r.URL.Path; !strings.HasPrefix(p, "/") || path.Clean(p) != p {
		problemReply(nothingAt(p)).send(w)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// nothingHere tells a path that does not exist from a method that it does not have.
func (a *API) nothingHere(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	probe := r.Clone(r.Context())
	for _, m := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		probe.Method = m
		if _, pattern := a.mux.Handler(probe); pattern != "/" && pattern != "" {
			allowed = append(allowed, m)
		}
	}
	if len(allowed) == 0 {
		problemReply(nothingAt(r.URL.Path)).send(w)
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	problemReply(&statusError{http.StatusMethodNotAllowed, task.NewProblem(task.ErrInvalid,
		shown(r.URL.Path)+" knows only "+strings.Join(allowed, ", "), "")}).send(w)
}

func nothingAt(path string) error {
	return task.NewProblem(task.ErrNotFound, "nothing is at "+shown(path), "")
}
