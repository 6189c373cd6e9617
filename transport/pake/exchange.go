package pake

import (
	"bytes"
	"errors"

	"github.com/gtank/ristretto255"
)

// Terms are what both sides must agree on without saying it: they go into the generator.
type Terms struct {
	Code    []byte // the shared code, normalised
	Channel []byte // who talks to whom, as each side sees it by itself: see Channel
	Session []byte // different for every exchange; public
}

// Channel names the two ends of an exchange by the hashes of the joiner's public key and of the cluster's authority.
func Channel(protocol string, joinerKey, authority []byte) []byte {
	return lvCat([]byte(protocol), joinerKey, authority)
}

// ErrSpent: this exchange has had its one answer.
var ErrSpent = errors.New("pairing: this exchange was used before")

// ErrProof: the other side does not have the same code, or not the same channel, session, claim or shares: it may have mistyped
// the code, or somebody in between alters the traffic.
var ErrProof = errors.New("pairing: the other side does not prove to have the code")

// Start is the joiner's side of one exchange, until its answer comes. It is good for one answer.
type Start struct {
	Share []byte // to be sent, with the claim

	terms  Terms
	claim  []byte
	secret *ristretto255.Scalar
}

// NewStart begins an exchange. claim is what the joiner says of itself; it is sent along and is proven with the rest.
func NewStart(t Terms, claim []byte) *Start { return newStart(t, claim, newScalar()) }

func newStart(t Terms, claim []byte, secret *ristretto255.Scalar) *Start {
	return &Start{Share: shareOf(secret, generator(t.Code, t.Channel, t.Session)), terms: t, claim: claim, secret: secret}
}

// Finish takes the leader's answer, and believes nothing of it before its proof is checked: ErrShare, ErrProof, ErrSpent.
func (s *Start) Finish(share, proof []byte) (*Keys, error) {
	if s.secret == nil {
		return nil, ErrSpent
	}
	secret := s.secret
	s.secret = nil // before anything can fail: a second answer would be a second guess
	if bytes.Equal(share, s.Share) {
		return nil, ErrShare // our own, sent back
	}
	point, err := sharedPoint(secret, share)
	if err != nil {
		return nil, err
	}
	k, err := newKeys(sessionKey(s.terms.Session, point, s.Share, s.claim, share, nil), lvCat(s.Share, s.claim), lvCat(share, nil), true)
	if err != nil {
		return nil, err
	}
	return k, k.Check(proof)
}

// Answer is the leader's side of one exchange: its share, and keys that count once the joiner's proof was checked by them. The
// share goes to the joiner together with Keys.Proof.
func Answer(t Terms, share, claim []byte) (own []byte, k *Keys, err error) {
	return answer(t, share, claim, newScalar())
}

func answer(t Terms, share, claim []byte, secret *ristretto255.Scalar) ([]byte, *Keys, error) {
	own := shareOf(secret, generator(t.Code, t.Channel, t.Session))
	point, err := sharedPoint(secret, share)
	if err != nil {
		return nil, nil, err
	}
	k, err := newKeys(sessionKey(t.Session, point, share, claim, own, nil), lvCat(share, claim), lvCat(own, nil), false)
	return own, k, err
}
