package worker

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"lanjobs/task"
	"lanjobs/transport"
)

// errBadSpec: what the leader sent as a spec is none.
var errBadSpec = errors.New("unreadable spec")

// specs caches the specs of jobs: all shards of a job, and jobs of the same file, share one; it never changes, and a start
// must not cost a round trip. Bounded by number and by the size of the JSON; the longest unused goes first.
type specs struct {
	mu    sync.Mutex
	byKey map[string]*specEntry // guarded by mu, like all below
	used  *list.List            // of *specEntry, newest first; only those that are here
	bytes int
}

// specKey is what the spec of an assignment is known by: its digest, or the job if the leader has not said it.
func specKey(a *task.Assignment) string {
	if a.SpecDigest != "" {
		return a.SpecDigest
	}
	return string(a.Job)
}

// specEntry is a spec, or the fetch of it that all who want it wait for.
type specEntry struct {
	key  string
	done chan struct{} // closed when the fields below are set
	spec *task.Spec
	size int
	err  error
	at   *list.Element
}

func newSpecs() *specs { return &specs{byKey: map[string]*specEntry{}, used: list.New()} }

// known gives the spec of an assignment if it is here and has its stage, nil else.
func (s *specs) known(a *task.Assignment) *task.Spec {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byKey[specKey(a)]
	if e == nil || e.at == nil || a.Stage < 0 || a.Stage >= len(e.spec.Stages) {
		return nil
	}
	if s.used.Front() != e.at {
		s.used.MoveToFront(e.at)
	}
	return e.spec
}

// get gives the spec of an assignment, fetching it once however many ask. A failed fetch is not kept.
func (s *specs) get(ctx context.Context, a *task.Assignment, fetch func(context.Context, task.JobID) (*task.Spec, int, error)) (*task.Spec, error) {
	key := specKey(a)
	s.mu.Lock()
	if e := s.byKey[key]; e != nil {
		if e.at != nil {
			s.used.MoveToFront(e.at)
		}
		s.mu.Unlock()
		select {
		case <-e.done:
			return e.spec, e.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	e := &specEntry{key: key, done: make(chan struct{})}
	s.byKey[key] = e
	s.mu.Unlock()

	e.spec, e.size, e.err = fetch(ctx, a.Job)
	close(e.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.err != nil {
		delete(s.byKey, key)
		return nil, e.err
	}
	s.keep(e)
	return e.spec, nil
}

// put takes a spec that came with assignments; one that cannot be read is left to be fetched, and its error told, when needed.
func (s *specs) put(digest, text string) {
	spec := new(task.Spec)
	if digest == "" || json.Unmarshal([]byte(text), spec) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey[digest] != nil {
		return
	}
	e := &specEntry{key: digest, done: make(chan struct{}), spec: spec, size: len(text)}
	close(e.done)
	s.byKey[digest] = e
	s.keep(e)
}

// keep counts an entry that is here, and drops the longest unused ones above the bounds. Callers hold mu.
func (s *specs) keep(e *specEntry) {
	e.at = s.used.PushFront(e)
	s.bytes += e.size
	for s.used.Len() > 1 && (s.used.Len() > maxSpecs || s.bytes > maxSpecBytes) {
		old := s.used.Remove(s.used.Back()).(*specEntry)
		s.bytes -= old.size
		delete(s.byKey, old.key)
	}
}

// fetchSpec asks the leader for a spec.
func (w *Worker) fetchSpec(ctx context.Context, job task.JobID) (*task.Spec, int, error) {
	var reply transport.SpecReply
	err := w.within(ctx, specTime, func(ctx context.Context) error {
		return w.cfg.Control.Do(ctx, transport.MethodSpec, &transport.SpecRequest{Job: job}, &reply)
	})
	if err != nil {
		return nil, 0, fmt.Errorf("fetch spec: %w", err)
	}
	spec := new(task.Spec)
	if err := json.Unmarshal(reply.JSON, spec); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errBadSpec, err)
	}
	return spec, len(reply.JSON), nil
}
