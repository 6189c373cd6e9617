package worker

import (
	"time"

	"lanjobs/task"
)

// Lengths and sizes, each with its reason.
const (
	// tick is how long the keeper sleeps at most while a task runs: waking from sleep or a freeze is noticed after that (I2
	// allows 250 ms).
	tick = 200 * time.Millisecond
	// idleTick is the same while nothing runs: there is nothing to kill, only a dead connection to replace.
	idleTick = 5 * time.Second
	// minSlept, minFrozen: shorter gaps are a busy machine's.
	minSlept  = 500 * time.Millisecond
	minFrozen = time.Second
	// announceAfter: a node that was away for longer registers again (R16).
	announceAfter = 5 * time.Second

	// confirmDelay is how long the first renewal of a started attempt waits for others like it. An attempt that ends
	// within it is only reported (C12), which spares the log an entry where attempts are shortest and most.
	confirmDelay = 20 * time.Millisecond
	// slowStart: a start that takes longer, or a tenth of its first lease, is confirmed before it is over.
	slowStart = time.Second
	// maxStarters is how many attempts are started at once; more would only wait for the same disk and processors.
	maxStarters = 16
	// minHeartbeat keeps wrong terms from making a busy loop.
	minHeartbeat = 20 * time.Millisecond
	// maxFlights is how many renewal requests may be unanswered; the oldest is given up for a new one.
	maxFlights = 4
	// lateFactor: a renewal that is out of time may still be answered for this many time-outs.
	lateFactor = 4

	firstHold    = 5 * task.Second // doc.go, "Hold"
	maxHold      = 10 * task.Second
	minHold      = task.Second / 10
	forgetShort  = 10 * time.Minute
	pollMargin   = 4 * time.Second // a poll unanswered for that much longer than its Hold is lost
	registerTime = 10 * time.Second
	reportTime   = 5 * time.Second
	specTime     = 5 * time.Second
	// reportPatience is how long a shutdown waits for its reports after the last process is gone.
	reportPatience = 5 * time.Second

	maxReports       = 1024    // in one request
	maxReportBytes   = 1 << 20 // in one request, roughly
	maxReportFlights = 2
	maxOutbox        = 4096 // ends not yet acknowledged; the runner waits above (it keeps the records)

	maxSpecs     = 64       // cached, by job
	maxSpecBytes = 16 << 20 // of their JSON; a single larger spec is kept alone

	progressEvery = time.Second // UX 3
)

// The waits between tries of what has no rule in package task.
func sessionBackoff() backoff { return backoff{first: 100 * time.Millisecond, limit: 2 * time.Second} }
func paceBackoff() backoff    { return backoff{first: 50 * time.Millisecond, limit: time.Second} }
func reportBackoff() backoff  { return backoff{first: 100 * time.Millisecond, limit: 2 * time.Second} }
func specBackoff() backoff    { return backoff{first: 50 * time.Millisecond, limit: time.Second} }
