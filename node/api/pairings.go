package api

import (
	"context"

	"lanjobs/task"
	"lanjobs/transport"
)

// pairing gives the leader's list of waiting machines.
func (a *API) pairing() (Pairing, error) {
	if a.cfg.Pairing == nil {
		return nil, task.NewProblem(task.ErrConflict, "this machine is no cluster yet, so there is nothing to join.", "Make one of it: lanjobs init")
	}
	return a.cfg.Pairing, nil
}

// listPairings answers GET /v1/pairings: who waits; never the codes, which nobody here knows (R46).
func (a *API) listPairings(_ context.Context, q *request) (*reply, error) {
	p, err := a.pairing()
	if err != nil {
		return nil, err
	}
	out := task.List[transport.PairingView]{Kind: "PairingList", Items: p.Waiting()}
	for i := range out.Items {
		out.Items[i].ID = "" // for the one who has typed the code
	}
	a.look(q, func(v *view) { out.Index = v.Index })
	return ok(out)
}

// checkCode answers POST /v1/pairings: who of those that wait has this code.
func (a *API) checkCode(ctx context.Context, q *request) (*reply, error) {
	p, err := a.pairing()
	if err != nil {
		return nil, err
	}
	var b transport.PairCodeBody
	if err := q.decode(&b); err != nil {
		return nil, err
	}
	code, err := transport.ParsePairCode(b.Code)
	if err != nil {
		return nil, err
	}
	v, err := p.Check(ctx, code, q.id)
	if err != nil {
		return nil, err
	}
	return ok(v)
}

// approvePairing answers POST /v1/pairings/{id}/approve: a person has said yes.
func (a *API) approvePairing(ctx context.Context, q *request) (*reply, error) {
	p, err := a.pairing()
	if err != nil {
		return nil, err
	}
	var b transport.PairDecision
	if err := q.decode(&b); err != nil {
		return nil, err
	}
	v, err := p.Approve(ctx, q.value("id"), b, q.by)
	if err != nil {
		return nil, err
	}
	return ok(v)
}

// refusePairing answers DELETE /v1/pairings/{id}: a person has said no.
func (a *API) refusePairing(_ context.Context, q *request) (*reply, error) {
	p, err := a.pairing()
	if err != nil {
		return nil, err
	}
	if err := p.Refuse(q.value("id"), q.by); err != nil {
		return nil, err
	}
	return ok(struct{}{})
}
