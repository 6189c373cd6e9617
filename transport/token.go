package transport

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"fmt"
	"strings"
	"unicode"

	"lanjobs/task"
)

// A join token is LJ1-<pin>-<secret><check>: 128 bits of the hash of the cluster's authority, by which the joining machine
// recognises the cluster before it says anything; 128 random bits, by which the cluster recognises the token; and 20 bits
// against slips. The cluster keeps only the secret's hash.
const (
	tokenPrefix = "LJ1-"
	pinBytes    = 16
	tokenChars  = 26 // of 16 bytes in base 32
	checkChars  = 4
	tokenLength = len(tokenPrefix) + tokenChars + 1 + tokenChars + checkChars
)

// tokenAlphabet is Crockford's: no I, L, O or U, and no difference between upper and lower case.
const tokenAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

func tokenEncoding() *base32.Encoding {
	return base32.NewEncoding(tokenAlphabet).WithPadding(base32.NoPadding)
}

// JoinToken is a join token taken apart.
type JoinToken struct {
	Pin    [pinBytes]byte // the beginning of the authority's Fingerprint
	Secret string         // what is sent to the cluster, in the alphabet of tokens
}

// NewJoinToken makes a token for the cluster of an authority.
func NewJoinToken(ca Fingerprint) JoinToken {
	secret := make([]byte, 16)
	_, _ = rand.Read(secret) // never fails
	return JoinToken{Pin: [pinBytes]byte(ca[:pinBytes]), Secret: tokenEncoding().EncodeToString(secret)}
}

// String is the token as a person passes it on. It is a secret: keep it out of logs.
func (t JoinToken) String() string {
	body := tokenPrefix + tokenEncoding().EncodeToString(t.Pin[:]) + "-" + t.Secret
	return body + checkOf(body)
}

// Matches tells whether an authority is the one that the token was made for.
func (t JoinToken) Matches(ca Fingerprint) bool {
	return subtle.ConstantTimeCompare(t.Pin[:], ca[:pinBytes]) == 1
}

// checkOf tells nothing of the secret to those who do not have the rest of the token.
func checkOf(body string) string {
	sum := sha256.Sum256([]byte(body))
	return tokenEncoding().EncodeToString(sum[:])[:checkChars]
}

// ParseJoinToken reads a token; white space around it does not matter, nor does case. The error is a *task.Problem that never
// repeats more of the token than its prefix.
func ParseJoinToken(text string) (JoinToken, error) {
	text = strings.TrimSpace(text)
	wrong := func(format string, args ...any) (JoinToken, error) {
		return JoinToken{}, task.NewProblem(task.ErrInvalid, fmt.Sprintf(format, args...), "On a member: lanjobs token create")
	}
	if text == "" {
		return wrong("the join token is empty.")
	}
	if strings.ContainsFunc(text, unicode.IsSpace) {
		return wrong("the join token contains a space or line break: pass it as one word.")
	}
	text = tokenText(text)
	switch {
	case !strings.HasPrefix(text, tokenText(tokenPrefix)):
		return wrong("this is no join token: one begins with %s and has %d characters.", tokenPrefix, tokenLength)
	case len(text) < tokenLength:
		return wrong("the join token is cut off: %d characters of %d.", len(text), tokenLength)
	case len(text) > tokenLength:
		return wrong("the join token is too long: %d characters instead of %d.", len(text), tokenLength)
	}
	body, check := text[len(tokenPrefix):tokenLength-checkChars], text[tokenLength-checkChars:]
	pin, secret, ok := strings.Cut(body, "-")
	raw, err := tokenEncoding().DecodeString(pin)
	_, err2 := tokenEncoding().DecodeString(secret)
	t := JoinToken{Secret: secret}
	if ok && err == nil && err2 == nil && len(pin) == tokenChars && len(secret) == tokenChars {
		copy(t.Pin[:], raw)
		if checkOf(tokenPrefix+body) == check {
			return t, nil
		}
	}
	return wrong("the join token has a typing error in it.")
}

// tokenText forgives what people do to a token: lower case, and signs that look alike. Its prefix becomes 1J1- this way.
func tokenText(s string) string {
	return strings.NewReplacer("I", "1", "L", "1", "O", "0").Replace(strings.ToUpper(s))
}

// HashSecret is what the cluster keeps of a token, and compares: how long that takes tells nothing of the secret. A plain hash will do for 128 random bits.
func HashSecret(secret string) []byte {
	sum := sha256.Sum256([]byte("lanjobs join token\x00" + secret))
	return sum[:]
}
