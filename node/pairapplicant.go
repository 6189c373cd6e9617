package node

import (
	"bytes"
	"time"

	"lanjobs/transport"
	"lanjobs/transport/pake"
)

// applicant is one machine, or a person at one, that wants to be let in. The desk's mu guards it.
//
//	again ─ a fresh share ─> waiting ─ a code is typed ─> challenge ─ right proof ─> confirmed ─ a person ─> approved, refused
//	  ^                                                       │
//	  └────────── wrong proof, none in time, or a share for another round (then waiting at once)
type applicant struct {
	request transport.PairRequest // Round and Share are the newest; a share that was compared with a code is spent
	claim   transport.PairClaim
	remote  string
	since   time.Duration // awake time of the first question
	seen    time.Duration // of the last answer
	parked  int           // questions being held

	state   transport.PairState
	own     []byte             // our share of the challenge
	keys    *pake.Keys         // of the challenge; proven once state is confirmed
	code    transport.PairCode // that was typed, once state is confirmed
	pairing string             // names the applicant to the person who typed the code
	told    bool               // the machine knows that its code was typed
	decided time.Duration
	by      string
	sealed  []byte
	granted string // the role that a person was given
	wrong   int    // see PairReply

	changed chan struct{} // closed when there is something to answer
}

// change wakes the questions that are held.
func (a *applicant) change() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// open tells whether nobody has decided yet.
func (a *applicant) open() bool {
	return a.state != transport.PairApproved && a.state != transport.PairRefused
}

// decidedFor is how long ago somebody decided; 0 = nobody has.
func (a *applicant) decidedFor(now time.Duration) time.Duration {
	if a.open() {
		return 0
	}
	return now - a.decided
}

// hear takes what a question brings: a fresh share, or the answer to a challenge. news: the state is another one.
func (a *applicant) hear(q transport.PairRequest, now time.Duration) (news bool) {
	switch {
	case !a.open():
		return false
	case q.Round > a.request.Round && q.Proof == nil:
		// It could not follow the challenge, or this is the first share seen here.
		a.request.Round, a.request.Share = q.Round, bytes.Clone(q.Share)
		a.restart(transport.PairWaiting)
	case a.state == transport.PairChallenge && q.Round == a.request.Round && q.Proof != nil:
		if a.keys.Check(q.Proof) != nil {
			a.spend()
			break
		}
		a.state, a.pairing, a.decided = transport.PairConfirmed, randomHex(8), now
	default:
		return false
	}
	a.change()
	return true
}

// challenge has the machine prove that it has the code under which keys were made.
func (a *applicant) challenge(code transport.PairCode, own []byte, keys *pake.Keys) {
	a.state, a.code, a.own, a.keys = transport.PairChallenge, code, own, keys
	a.change()
}

// spend ends the round: a share that was compared with a code is not used again.
func (a *applicant) spend() {
	a.restart(transport.PairAgain)
	a.change()
}

// restart forgets all that came of the last round.
func (a *applicant) restart(s transport.PairState) {
	a.state, a.code, a.own, a.keys, a.pairing, a.told = s, "", nil, nil, "", false
}

// quickDecision is how long a confirmed machine is not told so: with "approve --yes" the decision comes at once.
const quickDecision = time.Second

// nothingFor tells whether a question is to be held.
func (a *applicant) nothingFor(q transport.PairRequest, now time.Duration) bool {
	switch a.state {
	case transport.PairWaiting:
		return q.Round == a.request.Round
	case transport.PairConfirmed:
		return a.told || now-a.decided < quickDecision
	}
	return false
}

// reply is the answer to a question now.
func (a *applicant) reply() transport.PairReply {
	r := transport.PairReply{State: a.state, Round: a.request.Round, By: a.by, Wrong: a.wrong}
	switch a.state {
	case transport.PairChallenge:
		r.Share, r.Proof = a.own, a.keys.Proof
	case transport.PairConfirmed:
		a.told = true
	case transport.PairApproved:
		r.Sealed = a.sealed
	}
	return r
}

// view is what a person sees of it; the code is not known here.
func (a *applicant) view(now time.Duration) transport.PairingView {
	role := a.claim.Role
	if a.granted != "" {
		role = a.granted
	}
	return transport.PairingView{ID: a.pairing, Role: role, Node: a.claim.Node, Name: a.claim.Name, OS: a.claim.OS, Arch: a.claim.Arch, Version: a.claim.Version,
		Address: a.remote, AskedSeconds: (now - a.since).Round(time.Second).Seconds(), Worker: a.claim.Worker}
}
