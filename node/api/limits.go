package api

import (
	"time"

	"lanjobs/task"
)

// Limits of what one caller, and all of them together, may ask.
const (
	maxBody     = 64 << 10                   // of a body that is not a job
	maxJobBody  = task.MaxSpecBytes + 64<<10 // of one that is
	maxRequests = 256                        // at once, but for streams; beyond it 429
	maxStreams  = 1024                       // logs and followed events at once
	maxSubmits  = 16                         // job bodies in memory at once; more wait
	maxBulks    = 6                          // requests with many jobs in memory at once; more wait
	maxValues   = 32                         // of one parameter
	maxEcho     = 80                         // of what a caller typed, in an answer

	defaultPage = 1000
	maxPage     = 10_000
	maxWalk     = 50_000  // jobs that one page looks at
	pageBytes   = 4 << 20 // a page ends when its items are about that large
	maxLogPiece = 1 << 20 // of one answer with output

	statusJobs  = 100 // unfinished jobs on the status page
	statusEnded = 10  // finished ones

	// defaultWait is how long a write is repeated while nobody leads: less than the 10 s that a command gives one try, so
	// that it still hears why.
	defaultWait = 8 * time.Second
	maxWait     = time.Minute
	// forwardWait is how long the leader may take for one try; then another one may lead.
	forwardWait = 4 * time.Second
	firstPause  = 100 * time.Millisecond
	maxPause    = time.Second
	// bodyWait is how long a client may take to send a body: each that is on its way fills one of maxSubmits.
	bodyWait   = 20 * time.Second
	maxHold    = time.Minute      // of a log request
	logWait    = 5 * time.Second  // for a node's answer, above its hold
	beat       = 15 * time.Second // an empty line on a stream, so that a dead connection is noticed
	followPoll = time.Second      // how often a member without an audit log asks the leader for a stream

	// assignedLong is when a shard has been assigned for so long that a person may wonder (R21).
	assignedLong = 10 * task.Second
)
