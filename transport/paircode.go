package transport

import (
	"crypto/rand"
	"fmt"
	"strings"
	"unicode"

	"lanjobs/task"
)

// PairCode is what a machine that wants to come in shows and a person types on a member: 40 random bits in the alphabet of
// tokens, without the hyphen. It is never sent; see package pake.
type PairCode string

const pairCodeChars = 8

// NewPairCode makes a code.
func NewPairCode() PairCode {
	var bits [5]byte
	_, _ = rand.Read(bits[:]) // never fails
	return PairCode(tokenEncoding().EncodeToString(bits[:]))
}

// String is the code as it is shown: K7QF-2M9X.
func (c PairCode) String() string {
	if len(c) != pairCodeChars {
		return string(c)
	}
	return string(c[:4]) + "-" + string(c[4:])
}

// ParsePairCode reads what a person typed: in any case, with or without hyphen and spaces, I and L for 1 and O for 0. The error
// is a *task.Problem.
func ParsePairCode(text string) (PairCode, error) {
	plain := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.Is(unicode.Pd, r) || r == '_' || r == '.' {
			return -1
		}
		return r
	}, text)
	plain = tokenText(plain)
	wrong := func(why string) (PairCode, error) {
		return "", task.NewProblem(task.ErrInvalid, fmt.Sprintf("%q is no pairing code: %s.", shorten(text), why),
			"Read it off the machine that wants to come in: 8 letters and digits, as in K7QF-2M9X. Who waits: lanjobs approve")
	}
	if n := len([]rune(plain)); n != pairCodeChars {
		return wrong(fmt.Sprintf("it has %d characters, not %d", n, pairCodeChars))
	}
	for _, r := range plain {
		if !strings.ContainsRune(tokenAlphabet, r) {
			return wrong(fmt.Sprintf("codes have no %c", r))
		}
	}
	return PairCode(plain), nil
}

// shorten keeps what somebody typed or sent short in a text.
func shorten(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
