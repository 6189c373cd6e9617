package api

import (
	"context"

	"lanjobs/task"
	"lanjobs/transport"
)

// Process is the process of this node.
type Process interface {
	Process() transport.ProcessView
	// Stop ends it in order, a moment after it returns.
	Stop()
}

func errNoProcess() error {
	return task.NewProblem(task.ErrNotFound, "the node here has no process of its own", "")
}

// getProcess answers GET /v1/process.
func (a *API) getProcess(context.Context, *request) (*reply, error) {
	if a.cfg.Process == nil {
		return nil, errNoProcess()
	}
	return ok(a.cfg.Process.Process())
}

// stopProcess answers POST /v1/process/stop: work is given back, leadership handed over, then the process ends.
func (a *API) stopProcess(_ context.Context, q *request) (*reply, error) {
	if a.cfg.Process == nil {
		return nil, errNoProcess()
	}
	v := a.cfg.Process.Process()
	a.cfg.Process.Stop()
	return ok(v)
}
