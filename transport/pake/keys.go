package pake

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha512"
	"errors"
	"fmt"
)

// ErrSealed: what was received was not sealed by the other side of this exchange for this purpose.
var ErrSealed = errors.New("pairing: the sealed answer was altered")

// Keys are what an exchange gives. A side may use Seal and Open once it has checked the other's proof.
type Keys struct {
	// Proof shows the other side that this one has the code.
	Proof []byte

	theirs []byte // the proof that the other side must show
	aead   cipher.AEAD
}

// newKeys derives everything from the session key: a proof for each direction, over the message that its sender has sent, and
// a key to seal with.
func newKeys(session, fromJoiner, fromLeader []byte, joiner bool) (*Keys, error) {
	tag := func(label string, message []byte) ([]byte, error) {
		key, err := hkdf.Key(sha512.New, session, nil, label, sha512.Size)
		if err != nil {
			return nil, err
		}
		mac := hmac.New(sha512.New, key)
		mac.Write(message)
		return mac.Sum(nil), nil
	}
	ours, err := tag("lanjobs pairing/1 joiner's proof", fromJoiner)
	if err != nil {
		return nil, fmt.Errorf("pairing: %w", err)
	}
	theirs, err := tag("lanjobs pairing/1 leader's proof", fromLeader)
	if err != nil {
		return nil, fmt.Errorf("pairing: %w", err)
	}
	if !joiner {
		ours, theirs = theirs, ours
	}
	k := &Keys{Proof: ours, theirs: theirs}
	key, err := hkdf.Key(sha512.New, session, nil, "lanjobs pairing/1 seal", 32)
	if err != nil {
		return nil, fmt.Errorf("pairing: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("pairing: %w", err)
	}
	if k.aead, err = cipher.NewGCMWithRandomNonce(block); err != nil {
		return nil, fmt.Errorf("pairing: %w", err)
	}
	return k, nil
}

// Check compares the other side's proof, in a time that does not depend on where it differs; ErrProof if it is another one.
func (k *Keys) Check(proof []byte) error {
	if !hmac.Equal(proof, k.theirs) {
		return ErrProof
	}
	return nil
}

// Seal encrypts a secret for the other side. purpose is not sent; Open must be told the same.
func (k *Keys) Seal(secret []byte, purpose string) []byte {
	return k.aead.Seal(nil, nil, secret, []byte(purpose))
}

// Open reads what the other side has sealed; ErrSealed for anything else.
func (k *Keys) Open(sealed []byte, purpose string) ([]byte, error) {
	secret, err := k.aead.Open(nil, nil, sealed, []byte(purpose))
	if err != nil {
		return nil, ErrSealed
	}
	return secret, nil
}
