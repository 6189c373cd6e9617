package api

import (
	"context"

	"lanjobs/task"
	"lanjobs/transport"
)

// backup answers GET /v1/backup. What it gives holds the key from which members are made, so it stays on this machine: another
// one is not given it, however it asks.
func (a *API) backup(ctx context.Context, q *request) (*reply, error) {
	if transport.PeerFrom(q.http.Context()) != "" {
		return nil, task.NewProblem(task.ErrNotAllowed, "a backup holds the cluster's key and is made only on the machine itself, by its owner.", "There: lanjobs backup save")
	}
	data, err := a.cfg.Machine.Backup(ctx)
	if err != nil {
		return nil, err
	}
	rep := textReply(data)
	rep.set("Content-Type", "application/octet-stream")
	return rep, nil
}

// survey answers GET /v1/recover.
func (a *API) survey(ctx context.Context, _ *request) (*reply, error) {
	v, err := a.cfg.Machine.Survey(ctx)
	if err != nil {
		return nil, err
	}
	return ok(v)
}

// recoverHere answers POST /v1/recover.
func (a *API) recoverHere(ctx context.Context, q *request) (*reply, error) {
	var b transport.RecoverBody
	if err := q.decode(&b); err != nil {
		return nil, err
	}
	v, err := a.cfg.Machine.Recover(ctx, b, q.by)
	if err != nil {
		return nil, err
	}
	return ok(v)
}
