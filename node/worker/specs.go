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

// specs caches the specs of jobs: a job's shards share one, it never changes, and a start must not cost a round trip.
// Bounded by number and by the size of the JSON; the longest unused goes first.
type specs struct {
	mu    sync.Mutex
	byJob map[task.JobID]*specEntry // guarded by mu, like all below
	used  *list.List                // of *specEntry, newest first; only those that are here
	bytes int
}

// specEntry is a spec, or the fetch of it that all who want it wait for.
type specEntry struct {
	job  task.JobID
	done chan struct{} // closed when the fields below are set
	spec *task.Spec
	size int
	err  error
	at   *list.Element
}

func newSpecs() *specs { return &specs{byJob: map[task.JobID]*specEntry{}, used: list.New()} }

// get gives the spec of a job, fetching it once however many ask. A failed fetch is not kept.
func (s *specs) get(ctx context.Context, job task.JobID, fetch func(context.Context, task.JobID) (*task.Spec, int, error)) (*task.Spec, error) {
	s.mu.Lock()
	if e := s.byJob[job]; e != nil {
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
	e := &specEntry{job: job, done: make(chan struct{})}
	s.byJob[job] = e
	s.mu.Unlock()

	e.spec, e.size, e.err = fetch(ctx, job)
	close(e.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.err != nil {
		delete(s.byJob, job)
		return nil, e.err
	}
	e.at = s.used.PushFront(e)
	s.bytes += e.size
	for s.used.Len() > 1 && (s.used.Len() > maxSpecs || s.bytes > maxSpecBytes) {
		old := s.used.Remove(s.used.Back()).(*specEntry)
		s.bytes -= old.size
		delete(s.byJob, old.job)
	}
	return e.spec, nil
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
