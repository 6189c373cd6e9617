package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"lanjobs/task"
)

// maxStreams bounds the attempts whose output is read at once; more wait for one of them to end.
const maxStreams = 256

// logGrace is how long the last output may take after the job has ended.
const logGrace = 5 * time.Second

// logStream copies the output of all attempts of jobs while they begin. It is a display: grants tell it what to copy.
type logStream struct {
	outs   []streamOut
	prefix bool
	only   func(task.Event, shardKey) bool // nil = every attempt
	tail   int
	warn   func(string)
	fail   func(error) // our own output cannot be written: the command is over

	clock  task.Clock
	copy   func(attempt, *streamOut) error
	ended  <-chan struct{} // the command is over
	cancel func()          // ends all copies

	mu     sync.Mutex
	queue  []attempt // bounded by the shards of the job
	active int
	taken  map[string]bool // executions whose output is copied, by stream: a grant of several shards does not number attempts
	copies sync.WaitGroup
	over   atomic.Bool // the jobs have ended: what is not there will not come
	warned atomic.Bool
}

// streamOut is where one stream of the attempts goes.
type streamOut struct {
	stream string
	sink   *sink
}

func newLogStream(ctx context.Context, cl *client, outs []streamOut) *logStream {
	ctx, cancel := context.WithCancel(ctx)
	s := &logStream{outs: outs, clock: cl.clock, ended: ctx.Done(), cancel: cancel, taken: map[string]bool{}}
	s.copy = func(a attempt, o *streamOut) error {
		src := &source{sink: o.sink}
		if s.prefix {
			src.prefix = a.name() + " | "
		}
		l := &logCopy{cl: cl, attempt: a, stream: o.stream, tail: s.tail, follow: true,
			claim: func(x string) bool { return s.claim(o.stream, x) }, patience: func() bool { return !s.over.Load() }, trouble: func(err error) { s.complain(a, err) }}
		err := l.to(ctx, src)
		if closeErr := src.Close(); err == nil {
			err = closeErr
		}
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	return s
}

func (s *logStream) update([]task.JobView) {}
func (s *logStream) trouble(string)        {}

func (s *logStream) event(e task.Event) {
	if e.Kind != task.EventLeaseGrant {
		return
	}
	for _, k := range shardsOf(e) {
		if s.only == nil || s.only(e, k) {
			s.add(attempt{e.Job, e.Stage, k.shard, e.Attempt})
		}
	}
}

// add copies an attempt as soon as there is room.
func (s *logStream) add(a attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, a)
	if s.active < maxStreams {
		s.active++
		s.copies.Go(s.work)
	}
}

func (s *logStream) claim(stream, execution string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := stream + " " + execution
	if execution == "" || !s.taken[key] {
		s.taken[key] = true
		return true
	}
	return false
}

func (s *logStream) work() {
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.active--
			s.mu.Unlock()
			return
		}
		a := s.queue[0]
		s.queue = s.queue[1:]
		s.mu.Unlock()
		var streams sync.WaitGroup
		for i := range s.outs {
			streams.Go(func() { s.note(a, s.copy(a, &s.outs[i])) })
		}
		streams.Wait()
	}
}

// note tells of a copy that failed. An attempt that never began has no output: no fault.
func (s *logStream) note(a attempt, err error) {
	var own *writeError
	switch {
	case err == nil || errors.Is(err, task.ErrNotFound):
	case errors.As(err, &own):
		s.fail(err)
	default:
		s.complain(a, err)
	}
}

// complain tells once that output is missing.
func (s *logStream) complain(a attempt, err error) {
	if s.warned.CompareAndSwap(false, true) {
		s.warn(fmt.Sprintf("lanjobs: the output of %s cannot be read now: %s", a.name(), sentence(task.Explain(err).Detail)))
	}
}

// close waits for the last output.
func (s *logStream) close() {
	s.over.Store(true)
	defer s.cancel()
	done := make(chan struct{})
	go func() { s.copies.Wait(); close(done) }()
	select {
	case <-done:
		return
	case <-s.ended:
	case <-s.clock.After(logGrace):
		s.warn("lanjobs: some output did not arrive in time; see lanjobs logs.")
		s.cancel()
	}
	<-done
}

// both is two displays as one.
type both struct{ a, b display }

func (d both) update(jobs []task.JobView) { d.a.update(jobs); d.b.update(jobs) }
func (d both) event(e task.Event)         { d.a.event(e); d.b.event(e) }
func (d both) trouble(text string)        { d.a.trouble(text); d.b.trouble(text) }
func (d both) close()                     { d.a.close(); d.b.close() }

// outsOf keeps the order in which a task wrote on a terminal, and its two streams apart elsewhere.
func outsOf(w *world) []streamOut {
	if w.outTTY {
		return []streamOut{{"", &sink{out: w.stdout}}}
	}
	return []streamOut{{"stdout", &sink{out: w.stdout}}, {"stderr", &sink{out: w.stderr}}}
}
