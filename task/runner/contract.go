package runner

import (
	"context"

	"lanjobs/task"
)

// Backend answers what a running task asks through its socket. The worker implements it. All errors are *task.Problem or
// wrap the sentinels of package task: ErrStaleToken becomes 409 lease_lost, ErrNoLeader 503 with Retry-After.
type Backend interface {
	// Lease tells from the local deadline alone whether the lease still holds, and until when (boot clock).
	Lease(x task.ExecutionID) (task.Deadlines, bool)
	// Checkpoint saves and returns its sequence number once a majority has it.
	Checkpoint(ctx context.Context, a *task.Assignment, data []byte) (uint64, error)
	// LastCheckpoint is the newest accepted one, nil if none.
	LastCheckpoint(a *task.Assignment) *task.Checkpoint
	Progress(ctx context.Context, a *task.Assignment, text string) error
	// Output and StatePut take the request id that the task gave its write, "" if it gave none.
	Output(ctx context.Context, a *task.Assignment, kv task.KV, request task.RequestID) error
	Inputs(ctx context.Context, a *task.Assignment, stage, name string, missing bool) ([]Input, error)
	StateGet(ctx context.Context, a *task.Assignment, key string) (value []byte, version uint64, err error)
	StatePut(ctx context.Context, a *task.Assignment, key string, value []byte, ifVersion *uint64, request task.RequestID) (version uint64, err error)
	// Range says how far a shard of a range is, and gives what it has from now on: nothing from cursor on is begun (R35). With
	// nil it only asks.
	Range(ctx context.Context, a *task.Assignment, cursor *int64, request task.RequestID) (task.ShardRange, error)
	// Confirm renews the lease with a majority now (task guard).
	Confirm(ctx context.Context, a *task.Assignment) (task.Deadlines, error)
	// Defer ends the attempt as "not now", to be run again after wait, elsewhere if possible.
	Defer(ctx context.Context, a *task.Assignment, wait task.Millis) error
}

// Input is one registered output of one shard of an earlier stage.
type Input struct {
	Shard int    `json:"shard"`
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Exit is an attempt that has ended.
type Exit struct {
	Assignment task.Assignment
	Outcome    task.Outcome
	Outputs    []task.KV // from its LANJOBS_OUTPUT file, when it ended with exit 0
}

// Held is an attempt that the runner still knows after a restart of the agent.
type Held struct {
	Assignment task.Assignment
	Deadlines  task.Deadlines
	Running    bool
}
