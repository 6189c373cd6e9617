//go:build linux

package runner

import (
	"context"
	"sync"
	"time"

	"lanjobs/task"
)

// fakeBackend is a worker with a leader that can be taken away.
type fakeBackend struct {
	mu         sync.Mutex
	noLeader   int // so many writes find none; -1 = all
	lost       bool
	left       time.Duration // of the lease; an hour if 0
	seq        uint64
	checkpoint *task.Checkpoint
	progress   []string
	outputs    []task.KV
	requests   []task.RequestID // of writes, those too that found no leader
	inputs     []Input
	state      map[string][]byte
	versions   map[string]uint64
	deferred   task.Millis
	rng        task.ShardRange
	cursors    []int64
	rangeAsked int
	asked      string
}

func (f *fakeBackend) reach() error {
	if f.noLeader != 0 {
		f.noLeader--
		return task.ErrNoLeader
	}
	if f.lost {
		return task.ErrStaleToken
	}
	return nil
}

func (f *fakeBackend) deadlines() task.Deadlines {
	left := f.left
	if left == 0 {
		left = time.Hour
	}
	return deadlinesIn(left/2, left)
}

func (f *fakeBackend) Lease(task.ExecutionID) (task.Deadlines, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.deadlines(), !f.lost
}

func (f *fakeBackend) Checkpoint(_ context.Context, _ *task.Assignment, data []byte) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.reach(); err != nil {
		return 0, err
	}
	f.seq++
	f.checkpoint = &task.Checkpoint{Seq: f.seq, Data: data}
	return f.seq, nil
}

func (f *fakeBackend) LastCheckpoint(*task.Assignment) *task.Checkpoint {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.checkpoint
}

func (f *fakeBackend) Progress(_ context.Context, _ *task.Assignment, text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.progress = append(f.progress, text)
	return f.reach()
}

func (f *fakeBackend) Output(_ context.Context, _ *task.Assignment, kv task.KV, request task.RequestID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.reach(); err != nil {
		return err
	}
	f.outputs, f.requests = append(f.outputs, kv), append(f.requests, request)
	return nil
}

func (f *fakeBackend) Inputs(_ context.Context, _ *task.Assignment, stage, name string, missing bool) ([]Input, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = jsonOf([]any{stage, name, missing})
	return f.inputs, nil
}

func (f *fakeBackend) StateGet(_ context.Context, _ *task.Assignment, key string) ([]byte, uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state[key], f.versions[key], nil
}

func (f *fakeBackend) StatePut(_ context.Context, _ *task.Assignment, key string, value []byte, ifVersion *uint64, request task.RequestID) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, request)
	if err := f.reach(); err != nil {
		return 0, err
	}
	if ifVersion != nil && *ifVersion != f.versions[key] {
		return 0, task.ErrConflict
	}
	if f.state == nil {
		f.state, f.versions = map[string][]byte{}, map[string]uint64{}
	}
	f.state[key] = value
	f.versions[key]++
	return f.versions[key], nil
}

func (f *fakeBackend) Range(_ context.Context, _ *task.Assignment, cursor *int64, request task.RequestID) (task.ShardRange, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rangeAsked++
	if cursor != nil {
		f.cursors, f.requests = append(f.cursors, *cursor), append(f.requests, request)
	}
	return f.rng, f.reach()
}

func (f *fakeBackend) Confirm(context.Context, *task.Assignment) (task.Deadlines, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.deadlines(), f.reach()
}

func (f *fakeBackend) Defer(_ context.Context, _ *task.Assignment, wait task.Millis) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deferred = wait
	return f.reach()
}

func (f *fakeBackend) set(change func(*fakeBackend)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

var _ Backend = (*fakeBackend)(nil)
