package task

import (
	"math"
	"slices"
)

// RetryPolicy says what follows a failed attempt (R27).
type RetryPolicy struct {
	Attempts    int     `json:"attempts"` // tries that may fail, the first included
	Initial     Millis  `json:"initial"`
	Factor      float64 `json:"factor"`
	Max         Millis  `json:"max"`
	JitterPct   int     `json:"jitter_pct"`
	LeaseLosses int     `json:"lease_losses"` // machine lost is no attempt, but so many are the end (a task that kills machines)
	PermanentOn []int   `json:"permanent_on,omitempty"`
	ElsewhereOn []int   `json:"elsewhere_on,omitempty"`
}

// DefaultRetry is the policy of a job file that says nothing about retry (UX 2.1).
func DefaultRetry() RetryPolicy {
	return RetryPolicy{Attempts: 3, Initial: 10 * Second, Factor: 2, Max: 10 * Minute, JitterPct: 20, LeaseLosses: 10,
		PermanentOn: []int{64, 65, 66, 78}, ElsewhereOn: []int{69, 77, 126, 127}}
}

// TempFail is the exit code "not now": back off, release, does not count as an attempt, at most MaxDefers times.
const TempFail = 75

// DataError is the exit code that a success counts as whose outputs cannot be taken (sysexits EX_DATAERR): running it again would not
// help.
const DataError = 65

// Wait is how long to wait after the n-th failure (n from 1): initial × factor^(n-1), at most max, ± jitter drawn from seed,
// a value that every replica has (the token), so that Apply stays deterministic.
func (p RetryPolicy) Wait(n int, seed uint64) Millis {
	if n < 1 {
		n = 1
	}
	if p.Initial <= 0 {
		return 0 // and not 0 × infinity, which machines turn into different numbers
	}
	w := float64(p.Initial) * math.Pow(max(p.Factor, 1), float64(n-1))
	w = min(w, float64(p.Max))
	if p.JitterPct > 0 {
		u := float64(splitmix(seed)>>11)/float64(1<<53)*2 - 1 // -1 … 1
		w += w * u * float64(p.JitterPct) / 100
	}
	return max(Millis(w), 0)
}

// splitmix spreads a seed over 64 bits (the SplitMix64 finaliser).
func splitmix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Verdict is what an ended attempt means for its shard.
type Verdict uint8

// The verdicts.
const (
	VerdictSucceeded Verdict = iota
	VerdictRetry             // counts as an attempt; back off, run again
	VerdictElsewhere         // as retry, but another node first
	VerdictPermanent         // dead at once
	VerdictDefer             // back off, does not count
	VerdictReassign          // stopped by lanjobs (drain, shutdown, lease loss): again at once, counted as a lease loss only
	VerdictCancelled
	VerdictUnmet // given back before it started (EndUnmet): again elsewhere or later, neither an attempt nor a loss
)

// Judge turns an end into a verdict by the policy (UX 3, table of exit codes).
func (p RetryPolicy) Judge(o Outcome) Verdict {
	switch o.End {
	case EndExited:
		switch {
		case o.ExitCode == 0:
			return VerdictSucceeded
		case slices.Contains(p.PermanentOn, o.ExitCode):
			return VerdictPermanent
		case slices.Contains(p.ElsewhereOn, o.ExitCode):
			return VerdictElsewhere
		case o.ExitCode == TempFail:
			return VerdictDefer
		}
		return VerdictRetry
	case EndDeferred:
		return VerdictDefer
	case EndCancelled:
		return VerdictCancelled
	case EndUnmet:
		return VerdictUnmet
	case EndStartFailed:
		return VerdictElsewhere
	case EndDrained, EndShutdown, EndLeaseLost, EndLeaseExpired, EndNotConfirmed, EndNodeRestarted:
		return VerdictReassign
	}
	return VerdictRetry // signal, timeout, stalled, out of memory
}
