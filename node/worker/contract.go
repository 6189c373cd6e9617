package worker

import (
	"context"

	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

// Control is the leader as a worker sees it: calls that find the leader by themselves and come back with
// task.ErrNoLeader when there is none in time. Its errors otherwise are *task.Problem.
type Control interface {
	Register(ctx context.Context, r *transport.RegisterRequest) (*transport.RegisterReply, error)
	Poll(ctx context.Context, r *transport.PollRequest) (*transport.PollReply, error)
	Renew(ctx context.Context, r *transport.RenewRequest) (*transport.RenewReply, error)
	Report(ctx context.Context, r *transport.ReportRequest) (*transport.ReportReply, error)
	// Do is every other call, made on behalf of a running task.
	Do(ctx context.Context, method transport.Method, request, reply any) error
}

// Runner runs attempts on this machine. Package task/runner is the real one; tests in virtual time bring a fake.
type Runner interface {
	// Start begins an attempt and returns when it is on disk and handed over; how it ends comes through Exits.
	Start(a *task.Assignment, spec *task.Spec, d task.Deadlines) error
	// Extend moves an attempt's deadlines after an acknowledged renewal; they never move back.
	Extend(x task.ExecutionID, d task.Deadlines)
	// Stop asks an attempt to end: reason first into its LANJOBS_STOP file, SIGTERM, after grace SIGKILL (whole process tree).
	// A grace of 0 kills at once. Its exit carries the reason's End.
	Stop(x task.ExecutionID, reason task.StopReason, grace task.Millis)
	// Exits delivers each ended attempt once per life of the agent, until Forget; bounded, the runner waits when it is full.
	Exits() <-chan runner.Exit
	// Held lists what an earlier agent left: attempts still running under the guard, and ended ones not forgotten
	// (these also come through Exits).
	Held() []runner.Held
	// Forget drops an ended attempt's record and private directory; its logs stay.
	Forget(x task.ExecutionID)
}

// Store keeps small records of this node on disk: what must outlive the agent and has no other durable home (doc.go, "where
// a report lives"). Each call is one transaction and is on disk when it returns. A bbolt bucket is one.
type Store interface {
	Put(records map[string][]byte) error
	Delete(keys []string) error
	All() (map[string][]byte, error)
}
