package worker

import (
	"strings"
	"sync"
	"time"

	"lanjobs/task"
)

// outbox holds the ends of attempts until the leader has acknowledged them (R20). What has an exit record of the runner is
// on disk there; the rest is put into the Store once it has to wait (doc.go, "where a report lives").
type outbox struct {
	mu      sync.Mutex
	waiting []*entry // not in a request
	all     map[task.Token]*entry
}

// entry is one report. Its flags belong to whoever has taken it out of waiting.
type entry struct {
	report   task.Report
	recorded bool // the runner keeps it until Forget
	stored   bool // the Store has something of it
	alone    bool // its group was refused as a whole: it goes by itself
	retry    backoff
	ready    time.Duration // awake clock; not sent before
}

func newOutbox() *outbox { return &outbox{all: map[task.Token]*entry{}} }

// add takes a report. The first for a token counts: an attempt ends once.
func (o *outbox) add(r task.Report, recorded bool) {
	o.insert(&entry{report: r, recorded: recorded, stored: r.Outcome.End == task.EndDeferred, retry: reportBackoff()})
}

func (o *outbox) insert(e *entry) {
	r := &e.report
	r.Outcome.Message = strings.ToValidUTF8(r.Outcome.Message[:min(len(r.Outcome.Message), task.MaxMessageLength)], "")
	r.Outcome.Tail = r.Outcome.Tail[max(0, len(r.Outcome.Tail)-task.MaxTailBytes):]
	if r.Outcome.End != task.EndExited {
		r.Outputs = nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all[r.Token] != nil {
		return
	}
	o.all[r.Token] = e
	o.waiting = append(o.waiting, e)
}

func (o *outbox) has(t task.Token) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[t] != nil
}

func (o *outbox) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.all)
}

func (o *outbox) tokens() []task.Token {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make([]task.Token, 0, len(o.all))
	for t := range o.all {
		out = append(out, t)
	}
	return out
}

// take gives the next group: as many as are ready, within the bounds of one request. Without any, wait is how long until
// the first is; below 0: none is waiting.
func (o *outbox) take(now time.Duration) (group []*entry, wait time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	wait = -1
	bytes := 0
	rest := o.waiting[:0]
	for _, e := range o.waiting {
		full := len(group) == maxReports || bytes >= maxReportBytes || len(group) > 0 && (e.alone || group[0].alone)
		switch left := e.ready - now; {
		case left > 0 && (wait < 0 || left < wait):
			wait = left
			fallthrough
		case left > 0 || full:
			rest = append(rest, e)
		default:
			group = append(group, e)
			bytes += size(&e.report)
		}
	}
	clear(o.waiting[len(rest):])
	o.waiting = rest
	return group, wait
}

// back takes reports that have to be sent again, each after its own wait: a report that nobody can take now does not hold
// up the others.
func (o *outbox) back(es []*entry, now time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range es {
		e.ready = now + e.retry.next()
	}
	o.waiting = append(o.waiting, es...)
}

// hurry makes all that waits to be sent again ready now.
func (o *outbox) hurry() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.waiting {
		e.ready = 0
		e.retry.reset()
	}
}

func (o *outbox) drop(es []*entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range es {
		delete(o.all, e.report.Token)
	}
}

// size is about what a report takes in a request.
func size(r *task.Report) int {
	n := 100 + len(r.Outcome.Message) + len(r.Outcome.Tail)
	for _, kv := range r.Outputs {
		n += len(kv.Name) + len(kv.Value)
	}
	return n
}
