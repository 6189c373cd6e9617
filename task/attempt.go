package task

import "fmt"

// End says how an attempt ended.
type End string

// The ends. The first group is seen by the node that ran it, the second is decided by the cluster.
const (
	EndExited      End = "exited" // by itself, with ExitCode
	EndSignal      End = "signal" // killed by a signal that lanjobs did not send
	EndOutOfMemory End = "out_of_memory"
	EndTimeout     End = "timeout"
	EndStalled     End = "stalled"
	EndStartFailed End = "start_failed" // the command never ran: no directory, no program, no shell
	EndCancelled   End = "cancelled"
	EndDeferred    End = "deferred"
	EndUnmet       End = "unmet" // never started: a path or program that the stage needs is not there; neither an attempt nor a loss
	EndDrained     End = "drained"
	EndShutdown    End = "shutdown"
	EndLeaseLost   End = "lease_lost" // the holder stopped it before its deadline

	EndLeaseExpired  End = "lease_expired"  // no renewal for the TTL (R8)
	EndNotConfirmed  End = "not_confirmed"  // assigned, never confirmed (R21)
	EndNodeRestarted End = "node_restarted" // the node registered again and no longer holds it
)

// Outcome is how an attempt ended, as reported.
type Outcome struct {
	End      End    `json:"end"`
	ExitCode int    `json:"exit_code,omitempty"`
	Signal   int    `json:"signal,omitempty"`
	Message  string `json:"message,omitempty"` // one line, for a person
	Tail     string `json:"tail,omitempty"`    // last MaxTailBytes of the output of a failed attempt
	// RunMillis is how long the process ran, on its node's clock.
	RunMillis Millis `json:"run_millis,omitempty"`
	// Wait is how long a deferred shard asked to wait; 0 = the retry policy's first wait.
	Wait Millis `json:"wait,omitempty"`
}

// String is the outcome in a few plain words: "exit 1", "killed by signal 9", "timed out".
func (o Outcome) String() string {
	switch o.End {
	case EndExited:
		return fmt.Sprintf("exit %d", o.ExitCode)
	case EndSignal:
		return fmt.Sprintf("killed by signal %d", o.Signal)
	case EndOutOfMemory:
		if o.Message != "" {
			return o.Message // it names the limit
		}
		return fmt.Sprintf("killed by signal %d (out of memory)", o.Signal)
	case EndTimeout:
		return "timed out"
	case EndStartFailed:
		return "could not start: " + o.Message
	case EndUnmet:
		return "given back: " + o.Message
	case EndLeaseLost, EndLeaseExpired:
		return "lease ended unrenewed"
	case EndNotConfirmed:
		return "assignment never confirmed"
	case EndNodeRestarted:
		return "node restarted without it"
	case EndDrained:
		if o.Message == WentToSleep {
			return "released: " + WentToSleep
		}
	}
	return string(o.End)
}

// AttemptRecord is one ended attempt in a shard's history.
type AttemptRecord struct {
	Number  int     `json:"number"` // 1 …; all assignments count
	Node    NodeID  `json:"node"`
	Token   Token   `json:"token"`
	Granted Instant `json:"granted"`
	Ended   Instant `json:"ended"`
	Counted bool    `json:"counted"` // used up one of retry.attempts
	Outcome Outcome `json:"outcome"`
}

// StopReason is why lanjobs stops a running attempt; it is written into the task's LANJOBS_STOP file.
type StopReason string

// The stop reasons (UX 3).
const (
	StopCancel    StopReason = "cancel"
	StopTimeout   StopReason = "timeout"
	StopStalled   StopReason = "stalled"
	StopLeaseLost StopReason = "lease_lost" // own deadline reached: the lease is still valid until Kill
	StopFenced    StopReason = "fenced"     // another execution exists, or woke past the deadline: no grace
	StopDrain     StopReason = "drain"
	StopShutdown  StopReason = "shutdown"
	StopSleep     StopReason = "sleep" // the machine was told to sleep, and on_sleep is release
)

// WentToSleep is the message of an attempt that was stopped, or never begun, because its machine goes to sleep (R16). Its end is
// EndDrained: somebody asked the machine to sleep, so it is neither a try nor a loss.
const WentToSleep = "its machine goes to sleep"

// End is the end that an attempt stopped for this reason has.
func (r StopReason) End() End {
	switch r {
	case StopCancel:
		return EndCancelled
	case StopTimeout:
		return EndTimeout
	case StopStalled:
		return EndStalled
	case StopDrain, StopSleep:
		return EndDrained
	case StopShutdown:
		return EndShutdown
	}
	return EndLeaseLost
}

// Checkpoint is what a task said it has completed (R26).
type Checkpoint struct {
	Seq  uint64 `json:"seq"`
	Data []byte `json:"data"`
}

// KV is a name with a value.
type KV struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
