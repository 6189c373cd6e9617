package transport

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"time"

	"lanjobs/task"
)

// Before a machine is a member it has no key, so it looks for a cluster in the open: a question to everybody on the local
// network, and an answer from each member to the one who asked.
//
//	question: "LJQ" version | nonce 16 bytes | zeros up to 512 bytes
//	answer:   "LJA" version | nonce of the question | JSON of an Announcement
//
// An answer is never longer than its question, so nobody can have members send more to a third machine than he sends himself;
// it goes only to machines of this machine's own networks, and there are only so many a second. Nothing is decided by it: who
// answers must afterwards prove over TLS to be what a token names, or what a person's code is typed on.
const (
	questionMagic = "LJQ"
	questionHead  = questionMagic + "\x01"
	answerHead    = "LJA\x01"
	lookoutNonce  = 16
	questionBytes = 512
)

// Limits of answers: so many at once, then so many a second; and one machine is answered only that often.
const (
	answerBurst  = 32
	answerEvery  = time.Second / 16
	answerSource = 200 * time.Millisecond
	maxSources   = 256
)

// Announcement is what a member says of itself to anybody on its local network.
type Announcement struct {
	Cluster string `json:"cluster"`
	Node    string `json:"node"`
	Version string `json:"version"`
	Port    uint16 `json:"port"`
	CA      string `json:"ca"` // the first 8 bytes of the authority's Fingerprint in hexadecimal digits
}

// announcedCA is the part of a fingerprint that an Announcement has: enough to tell clusters of one name apart.
const announcedCA = 8

// ShortCA writes it.
func (f Fingerprint) ShortCA() string { return hex.EncodeToString(f[:announcedCA]) }

// Announced tells whether an announcement says to be of the cluster that the token was made for.
func (t JoinToken) Announced(a Announcement) bool {
	return hex.EncodeToString(t.Pin[:announcedCA]) == a.CA
}

// newQuestion makes a question with a nonce.
func newQuestion(nonce [lookoutNonce]byte) []byte {
	q := make([]byte, questionBytes)
	copy(q, questionHead)
	copy(q[len(questionHead):], nonce[:])
	return q
}

// isQuestion tells a question of any version from a packet of memberlist.
func isQuestion(packet []byte) bool { return bytes.HasPrefix(packet, []byte(questionMagic)) }

// answerTo makes the answer to a question; nil if it is none, or if the answer would be longer.
func answerTo(question []byte, a Announcement) []byte {
	nonce, ok := bytes.CutPrefix(question, []byte(questionHead))
	if !ok || len(nonce) < lookoutNonce {
		return nil
	}
	text, err := json.Marshal(a)
	if err != nil {
		return nil
	}
	out := slices.Concat([]byte(answerHead), nonce[:lookoutNonce], text)
	if len(out) > len(question) {
		return nil
	}
	return out
}

var errBadAnswer = errors.New("not an answer to this question")

// readFound reads the answer to a question with a nonce; errBadAnswer for everything else.
func readFound(packet []byte, nonce [lookoutNonce]byte) (Announcement, error) {
	var a Announcement
	rest, ok := bytes.CutPrefix(packet, []byte(answerHead))
	if !ok || len(packet) > questionBytes || !bytes.HasPrefix(rest, nonce[:]) {
		return a, errBadAnswer
	}
	if err := json.Unmarshal(rest[lookoutNonce:], &a); err != nil || a.Port == 0 {
		return a, errBadAnswer
	}
	for _, text := range []*string{&a.Cluster, &a.Node, &a.Version, &a.CA} {
		if len(*text) > task.MaxNameLength {
			return a, errBadAnswer
		}
		*text = printable(*text) // it will be shown
	}
	return a, nil
}

// question is one that came in.
type question struct {
	packet []byte
	from   netip.AddrPort
}

// answerPace bounds the answers. It belongs to Gossip.Run.
type answerPace struct {
	debt time.Duration // how far ahead of its time the last answer was given
	last time.Duration
	from map[netip.Addr]time.Duration
}

// allow tells whether a machine is answered now, and counts it.
func (p *answerPace) allow(from netip.Addr, now time.Duration) bool {
	p.debt = max(0, p.debt-(now-p.last))
	p.last = now
	last, known := p.from[from]
	if known && now-last < answerSource || p.debt > (answerBurst-1)*answerEvery {
		return false
	}
	if p.from == nil || len(p.from) >= maxSources {
		p.from = map[netip.Addr]time.Duration{}
	}
	p.from[from] = now
	p.debt += answerEvery
	return true
}

// isNear tells whether an address is in one of this machine's own networks.
func isNear(table []Interface, from netip.Addr) bool {
	from = from.WithZone("")
	return slices.ContainsFunc(table, func(i Interface) bool {
		return slices.ContainsFunc(i.Addrs, func(p netip.Prefix) bool { return p.Masked().Contains(from) })
	})
}
