package task

import "time"

// LeaseTerms are the lengths that rule one lease (R6, R9, R10; DESIGN 3). The zero value is not valid: see DefaultLease.
type LeaseTerms struct {
	TTL       Millis `json:"ttl"`        // from the granter's receipt; 2 s … 24 h
	Heartbeat Millis `json:"heartbeat"`  // between renewals; at most TTL/3
	StopGrace Millis `json:"stop_grace"` // SIGTERM to SIGKILL; at most TTL/3
	// MaxRenewFailures ends the attempt after so many failed renewals in a row; 0 keeps trying until the deadline acts.
	MaxRenewFailures int `json:"max_renew_failures,omitempty"`
}

// Bounds and defaults of lease terms.
const (
	MinTTL           = 2 * Second
	MaxTTL           = 24 * Hour
	DefaultTTL       = 5 * Minute
	DefaultStopGrace = 30 * Second
	// AssignTTL bounds the first lease of an assignment, until its first renewal confirms it (R21).
	AssignTTL = 30 * Second
)

// DefaultLease gives the terms for a TTL: heartbeat TTL/10, stop grace 30 s or TTL/10, whichever is less.
func DefaultLease(ttl Millis) LeaseTerms {
	return LeaseTerms{TTL: ttl, Heartbeat: ttl / 10, StopGrace: min(DefaultStopGrace, ttl/10)}
}

// HolderShare is φ: the holder believes in the lease for this share of the TTL, so that it stops first even if
// the two machines' clocks run at rates that differ by 11 % (DESIGN 3, "why safe").
const holderShareNum, holderShareDen = 8, 10

// Slack is κ: the kill is done this long before the holder's deadline. 2 s, scaled down for a TTL under 60 s.
func Slack(ttl Millis) Millis { return min(2*Second, ttl/30) }

// RenewTimeout is how long one renewal may stay unanswered: TTL/60 (5 s by default), but for short leases long enough for a slow
// link: a second, or a quarter of the TTL.
func RenewTimeout(ttl Millis) Millis { return max(ttl/60, min(Second, ttl/4)) }

// RenewRetry is the wait after the n-th failed renewal in a row (n from 1): TTL/60, /30, then /15 for good (5, 10, 20 s by default).
func RenewRetry(ttl Millis, n int) Millis {
	switch {
	case n <= 1:
		return max(ttl/60, 20)
	case n == 2:
		return max(ttl/30, 40)
	default:
		return max(ttl/15, 80)
	}
}

// FirstTTL is the length of an assignment's first lease, before its first renewal.
func (l LeaseTerms) FirstTTL() Millis { return min(l.TTL, AssignTTL) }

// Deadlines are what one attempt's holder obeys, on its machine's boot clock (I2).
type Deadlines struct {
	Term Boot // SIGTERM is sent at this moment
	Kill Boot // SIGKILL is sent at this moment, always
	End  Boot // the belief ends: no effect may follow
}

// HolderDeadlines counts a lease from the boot instant read BEFORE the request that obtained or renewed it was
// written (R9), for ttl as the granter counts it from its receipt.
func (l LeaseTerms) HolderDeadlines(sent Boot, ttl Millis) Deadlines {
	end := sent.Add(ttl.Duration() / holderShareDen * holderShareNum)
	kill := end.Add(-Slack(ttl).Duration())
	grace := min(l.StopGrace, ttl/3)
	return Deadlines{Term: kill.Add(-grace.Duration()), Kill: kill, End: end}
}

// Later merges two deadlines: an acknowledgement never shortens what an earlier one gave.
func (d Deadlines) Later(e Deadlines) Deadlines {
	if e.End > d.End {
		return e
	}
	return d
}

// Remaining is how long the belief still lasts at boot instant now; negative when it is over.
func (d Deadlines) Remaining(now Boot) time.Duration { return d.End.Sub(now) }
