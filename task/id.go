package task

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// NodeID is the UUID of a machine, made once and kept in its data folder (R2). It never changes with address or name.
type NodeID string

// JobID names a job: "j" and six or more characters of Crockford's base 32 in lower case.
type JobID string

// RequestID is made by a client for one write; repeating a write with the same RequestID is harmless (R20).
type RequestID string

// HeaderRequestID carries a RequestID over HTTP, to a node's API and to the socket of a running task. MaxRequestID is its
// greatest length in bytes.
const (
	HeaderRequestID = "Lanjobs-Request-Id"
	MaxRequestID    = 128
)

// Valid tells whether an id is of 1 to MaxRequestID printable ASCII characters without blanks.
func (r RequestID) Valid() bool {
	return r != "" && len(r) <= MaxRequestID && !strings.ContainsFunc(string(r), func(c rune) bool { return c <= ' ' || c > '~' })
}

// Of makes an id of this one and what is asked for under it: another act under the same id is another act. It would else be answered as
// a repeat of the first, and not be done. No id stays none.
func (r RequestID) Of(what ...[]byte) RequestID {
	if r == "" {
		return ""
	}
	h := sha256.New()
	for _, part := range what {
		fmt.Fprintf(h, "%d ", len(part))
		h.Write(part)
	}
	sum := "~" + hex.EncodeToString(h.Sum(nil)[:8])
	if len(r)+len(sum) > MaxRequestID {
		whole := sha256.Sum256([]byte(r))
		r = RequestID(hex.EncodeToString(whole[:]))
	}
	return r + RequestID(sum)
}

// Token is a fencing token: generation<<40 | n. It only grows, per shard and across the cluster (R11, I3). 0 is no token.
type Token uint64

// GenerationBits is how far the generation of a Token is shifted: 2^40 grants fit into one generation.
const GenerationBits = 40

// Generation is the part of a token that rises when a lost quorum was recovered or a backup restored.
func (t Token) Generation() uint64 { return uint64(t) >> GenerationBits }

// ExecutionID is the id of one attempt, fresh for every assignment (R11).
type ExecutionID string

// Execution derives the execution id of the assignment that carries the token. Tokens are never used twice, so neither are ids.
func (t Token) Execution() ExecutionID {
	return ExecutionID("x" + strconv.FormatUint(uint64(t), 36))
}

// ShardRef names a shard of a stage of a job.
type ShardRef struct {
	Job   JobID `json:"job"`
	Stage int   `json:"stage"` // index in Spec.Stages
	Shard int   `json:"shard"` // 0 … N-1
}

// Ref is what a person types: JOB[/STAGE[/SHARDS][#ATTEMPT]], SHARDS being "3" or "3,7,10-19".
type Ref struct {
	Job     string
	Stage   string // "" = all stages
	Shards  []Range
	Attempt int // 0 = the newest
}

// Range is an inclusive range of shard numbers.
type Range struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// ParseRef reads a Ref. The error says which part is wrong and how to write it.
func ParseRef(s string) (Ref, error) {
	var r Ref
	body, attempt, hasAttempt := strings.Cut(s, "#")
	if hasAttempt {
		n, err := strconv.Atoi(attempt)
		if err != nil || n < 1 {
			return r, fmt.Errorf("attempt %q in %q is not a number from 1 on (write JOB/STAGE/SHARD#1)", attempt, s)
		}
		r.Attempt = n
	}
	parts := strings.Split(body, "/")
	if parts[0] == "" || len(parts) > 3 {
		return r, fmt.Errorf("%q is not JOB, JOB/STAGE or JOB/STAGE/SHARD", s)
	}
	r.Job = parts[0]
	if len(parts) > 1 {
		r.Stage = parts[1]
	}
	if len(parts) > 2 {
		ranges, err := ParseRanges(parts[2])
		if err != nil {
			return r, fmt.Errorf("%w in %q", err, s)
		}
		r.Shards = ranges
	}
	return r, nil
}

// ParseRanges reads "3,7,10-19".
func ParseRanges(s string) ([]Range, error) {
	var out []Range
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(first)
		b := a
		if err == nil && isRange {
			b, err = strconv.Atoi(last)
		}
		if err != nil || a < 0 || b < a {
			return nil, fmt.Errorf("shards %q: write numbers and ranges as 3,7,10-19", part)
		}
		out = append(out, Range{a, b})
	}
	return out, nil
}

// FormatRanges writes sorted shard numbers the way ParseRanges reads them.
func FormatRanges(shards []int) string {
	var b strings.Builder
	for i := 0; i < len(shards); {
		j := i
		for j+1 < len(shards) && shards[j+1] == shards[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(shards[i]))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(shards[j]))
		}
		i = j + 1
	}
	return b.String()
}
