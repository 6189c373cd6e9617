package node

import (
	"lanjobs/node/worker"
	"lanjobs/task"
	"lanjobs/task/runner"
)

// noopRunner ends every attempt at once with exit 0 and starts no process: it measures all of lanjobs but the commands. Only a
// benchmark asks for it (Config.NoopRunner).
type noopRunner struct{ exits chan runner.Exit }

var _ worker.Runner = (*noopRunner)(nil)

func newNoopRunner() *noopRunner { return &noopRunner{exits: make(chan runner.Exit, task.MaxSlots)} }

// Start ends the attempt. There is room: a worker has no more attempts than slots.
func (r *noopRunner) Start(a *task.Assignment, _ *task.Spec, _ task.Deadlines) error {
	r.exits <- runner.Exit{Assignment: *a, Outcome: task.Outcome{End: task.EndExited}}
	return nil
}

// Extend has nothing to extend.
func (r *noopRunner) Extend(task.ExecutionID, task.Deadlines) {}

// Stop has nothing to stop.
func (r *noopRunner) Stop(task.ExecutionID, task.StopReason, task.Millis) {}

// Exits delivers the ends.
func (r *noopRunner) Exits() <-chan runner.Exit { return r.exits }

// Held is nothing: no attempt outlives its start.
func (r *noopRunner) Held() []runner.Held { return nil }

// Forget has nothing to forget.
func (r *noopRunner) Forget(task.ExecutionID) {}
