package pake

import (
	"crypto/rand"
	"crypto/sha512"
	"errors"

	"github.com/gtank/ristretto255"
)

// The strings of the suite, fixed by the draft.
const (
	dsi      = "CPaceRistretto255"
	dsiKey   = dsi + "_ISK"
	hashSize = sha512.BlockSize // s_in_bytes
)

// ShareBytes is the length of a share.
const ShareBytes = 32

// ErrShare: the other side's share is no element of the group, or the identity, which would make the key known to all.
var ErrShare = errors.New("pairing: not a share")

// prependLen writes a text with its length before it, as LEB128.
func prependLen(out, text []byte) []byte {
	n := len(text)
	for n >= 0x80 {
		out = append(out, byte(n)|0x80)
		n >>= 7
	}
	return append(append(out, byte(n)), text...)
}

// lvCat joins texts so that no two lists of texts give the same bytes.
func lvCat(texts ...[]byte) (out []byte) {
	for _, t := range texts {
		out = prependLen(out, t)
	}
	return out
}

// generatorString is what the generator is hashed from. The padding fills the first block of the hash, so that hashing takes
// the same time for codes of every length.
func generatorString(code, channel, session []byte) []byte {
	pad := max(0, hashSize-1-len(lvCat(code))-len(lvCat([]byte(dsi))))
	return lvCat([]byte(dsi), code, make([]byte, pad), channel, session)
}

func generator(code, channel, session []byte) *ristretto255.Element {
	sum := sha512.Sum512(generatorString(code, channel, session))
	return ristretto255.NewElement().FromUniformBytes(sum[:])
}

// newScalar draws a secret scalar, evenly from all but zero.
func newScalar() *ristretto255.Scalar {
	for {
		var seed [64]byte
		_, _ = rand.Read(seed[:]) // never fails
		s := ristretto255.NewScalar().FromUniformBytes(seed[:])
		if s.Equal(ristretto255.NewScalar().Zero()) == 0 {
			return s
		}
	}
}

func shareOf(secret *ristretto255.Scalar, g *ristretto255.Element) []byte {
	return ristretto255.NewElement().ScalarMult(secret, g).Encode(nil)
}

// sharedPoint is the draft's scalar_mult_vfy: ErrShare in the place of the identity.
func sharedPoint(secret *ristretto255.Scalar, share []byte) ([]byte, error) {
	theirs := ristretto255.NewElement()
	if len(share) != ShareBytes || theirs.Decode(share) != nil {
		return nil, ErrShare
	}
	point := ristretto255.NewElement().ScalarMult(secret, theirs)
	if point.Equal(ristretto255.NewElement().Zero()) == 1 {
		return nil, ErrShare
	}
	return point.Encode(nil), nil
}

// sessionKey is the draft's ISK over the transcript of initiator and responder.
func sessionKey(session, point, shareA, adA, shareB, adB []byte) []byte {
	text := lvCat([]byte(dsiKey), session, point)
	text = append(text, lvCat(shareA, adA)...)
	text = append(text, lvCat(shareB, adB)...)
	sum := sha512.Sum512(text)
	return sum[:]
}
