package node

import (
	"cmp"
	"context"
	"slices"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// Waiting lists who waits, the longest first.
func (d *pairDesk) Waiting() []transport.PairingView {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget()
	return d.views()
}

func (d *pairDesk) views() []transport.PairingView {
	out := []transport.PairingView{}
	for _, a := range d.line() {
		if a.open() {
			out = append(out, a.view(d.clock.Awake()))
		}
	}
	return out
}

// line is who waits, in the order in which they came.
func (d *pairDesk) line() []*applicant {
	all := make([]*applicant, 0, len(d.waiting))
	for _, a := range d.waiting {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b *applicant) int {
		return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.request.ID, b.request.ID))
	})
	return all
}

// find gives the applicant that a person was asked about.
func (d *pairDesk) find(pairing string) (*applicant, error) {
	d.forget()
	for _, a := range d.waiting {
		if a.pairing == pairing && pairing != "" {
			return a, nil
		}
	}
	return nil, task.NewProblem(task.ErrNotFound, "this machine waits no longer, or the leader has changed meanwhile.", "If it still shows its code: lanjobs approve CODE")
}

// Approve lets in the machine or the person whose code was typed. A repeat is harmless.
func (d *pairDesk) Approve(ctx context.Context, pairing string, b transport.PairDecision, by string) (*transport.PairingView, error) {
	name, ca, err := d.cluster()
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	a, err := d.find(pairing)
	if err != nil {
		return nil, err
	}
	if err := fits(a, b); err != nil {
		return nil, err
	}
	if a.state == transport.PairConfirmed {
		if err := d.grant(ctx, a, name, ca, b, by); err != nil {
			return nil, err
		}
	}
	if a.state != transport.PairApproved {
		return nil, task.NewProblem(task.ErrConflict, a.claim.Name+" was refused meanwhile.", "")
	}
	v := a.view(d.clock.Awake())
	return &v, nil
}

// fits refuses a decision about a machine where a person waits, and the reverse: whoever made it was not asked about this one.
func fits(a *applicant, b transport.PairDecision) error {
	switch {
	case a.claim.Role == "" && b.Role != "":
		return task.NewProblem(task.ErrInvalid, a.claim.Name+" is a machine that wants to join: it becomes a worker or a voter.", "lanjobs approve CODE --role worker")
	case a.claim.Role != "" && (b.Worker || !fsm.Role(b.Role).Valid()):
		return task.NewProblem(task.ErrInvalid, a.claim.Name+" wants to log in and is no machine: a role is needed, viewer, operator or admin.",
			"lanjobs approve CODE --role "+a.claim.Role+", with a lanjobs as new as the leader's")
	}
	return nil
}

// grant makes a token for one machine or person and seals it. mu is released while the token is committed.
func (d *pairDesk) grant(ctx context.Context, a *applicant, name string, ca transport.Fingerprint, b transport.PairDecision, by string) error {
	keys := a.keys
	key, err := transport.CSRKeyHash(a.request.CSR)
	if err != nil {
		return err
	}
	token := transport.NewJoinToken(ca)
	hash := transport.HashSecret(token.Secret)
	c := &fsm.CreateToken{ID: pairTokenID(hash, a.claim.Name, a.claim.Node, key), Hash: hash, TTL: task.MillisOf(pairTokenTTL), Uses: 1, Worker: b.Worker, Role: fsm.Role(b.Role), By: by}
	d.mu.Unlock()
	r, err := d.propose(ctx, c)
	d.mu.Lock()
	if err == nil && r.Err != nil {
		err = r.Err
	}
	if err != nil {
		return err
	}
	if a.state != transport.PairConfirmed || a.keys != keys {
		return nil // decided meanwhile, in another way or by the same request sent twice
	}
	if a.sealed, err = (transport.PairGrant{Token: token.String(), By: by, Cluster: name, Role: b.Role}).Seal(keys); err != nil {
		return err
	}
	a.granted = b.Role
	d.decide(a, transport.PairApproved, by)
	return nil
}

// Refuse sends away whose code was typed.
func (d *pairDesk) Refuse(pairing, by string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	a, err := d.find(pairing)
	if err != nil {
		return err
	}
	if a.state == transport.PairApproved {
		remove := "Remove it: lanjobs node rm " + a.claim.Name
		if a.claim.Role != "" {
			remove = "Shut it out: lanjobs client rm " + a.claim.Name
		}
		return task.NewProblem(task.ErrConflict, a.claim.Name+" was let in meanwhile.", remove)
	}
	d.decide(a, transport.PairRefused, by)
	return nil
}

func (d *pairDesk) decide(a *applicant, s transport.PairState, by string) {
	a.state, a.by, a.decided = s, by, d.clock.Awake()
	a.change()
	d.log.Info("a waiting machine was decided on", "name", a.claim.Name, "asks for", cmp.Or(a.claim.Role, "join"), "gets", a.granted, "remote", a.remote, "decision", string(s), "by", by)
}
