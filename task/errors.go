package task

import "errors"

// Errors that callers act upon. They cross the wire by their code (see Problem).
var (
	// ErrStaleToken: the lease of this token is over; nothing was changed (R11, I4).
	ErrStaleToken = errors.New("lease lost: another execution may own this shard")
	// ErrNotFound: no such job, stage, shard, node.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the same key with another file, a version that changed meanwhile, a state that forbids it.
	ErrConflict = errors.New("conflict")
	// ErrInvalid: the request itself is wrong; repeating it will not help.
	ErrInvalid = errors.New("invalid request")
	// ErrNotAllowed: no valid credential for it.
	ErrNotAllowed = errors.New("not allowed")
	// ErrNoLeader: no leader, no quorum or unreachable; the outcome of a write is unknown, repeat it with the same RequestID.
	ErrNoLeader = errors.New("no leader")
	// ErrTooLarge: a limit of limits.go.
	ErrTooLarge = errors.New("too large")
)

// Problem is an error for a person, and its form on the wire (RFC 9457): what happened, why, what to type.
type Problem struct {
	Code      string `json:"type"`   // stale_token, not_found, conflict, invalid, not_allowed, no_leader, too_large, internal
	Detail    string `json:"detail"` // one sentence or more, no trailing newline
	Hint      string `json:"hint,omitempty"`
	Retryable bool   `json:"retryable,omitempty"`
	// Faults are the faults of a job file, with their places.
	Faults []Fault `json:"problems,omitempty"`
}

// Fault is one fault of a job file. Line and Column count from 1, columns in runes; 0 = whole file.
type Fault struct {
	Line       int    `json:"line"`
	Column     int    `json:"column"`
	Path       string `json:"path,omitempty"`
	Message    string `json:"message"`
	Excerpt    string `json:"excerpt,omitempty"` // the source line
	Width      int    `json:"width,omitempty"`   // how many runes to underline
	Suggestion string `json:"suggestion,omitempty"`
}

func (p *Problem) Error() string { return p.Detail }

// Unwrap gives the sentinel of the code, so that errors.Is works on both sides of the wire.
func (p *Problem) Unwrap() error {
	for _, c := range codes {
		if c.code == p.Code {
			return c.err
		}
	}
	return nil
}

var codes = []struct {
	code string
	err  error
}{
	{"stale_token", ErrStaleToken}, {"not_found", ErrNotFound}, {"conflict", ErrConflict}, {"invalid", ErrInvalid},
	{"not_allowed", ErrNotAllowed}, {"no_leader", ErrNoLeader}, {"too_large", ErrTooLarge},
}

// Explain makes a Problem of any error; a Problem inside it is kept.
func Explain(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	p := &Problem{Code: "internal", Detail: err.Error()}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			p.Code = c.code
		}
	}
	p.Retryable = p.Code == "no_leader"
	return p
}

// NewProblem wraps a sentinel with a sentence for a person and the next step.
func NewProblem(sentinel error, detail, hint string) *Problem {
	p := Explain(sentinel)
	return &Problem{Code: p.Code, Detail: detail, Hint: hint, Retryable: p.Retryable}
}
