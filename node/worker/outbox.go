package worker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
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
	slices.SortFunc(out, cmp.Compare[task.Token])
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

// deliver sends groups, at most two at once: while they are on their way everything that ends gathers for the next, so
// that groups grow with the load and nothing waits for a timer.
func (w *Worker) deliver(ctx context.Context) {
	var sends sync.WaitGroup
	defer sends.Wait()
	free := make(chan struct{}, maxReportFlights)
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		group := w.nextGroup(ctx)
		if group == nil {
			return
		}
		sends.Go(func() {
			w.send(ctx, group)
			<-free
		})
	}
}

// nextGroup waits for reports to send; nil when ctx has ended. Nothing is sent before the node is registered, as Held names
// what waits here.
func (w *Worker) nextGroup(ctx context.Context) []*entry {
	for ctx.Err() == nil {
		wait := time.Duration(-1)
		if w.book.isRegistered() {
			var group []*entry
			if group, wait = w.outbox.take(w.clock.Awake()); len(group) > 0 {
				return group
			}
		}
		if wait < 0 {
			select {
			case <-w.outboxKick:
			case <-ctx.Done():
			}
			continue
		}
		timer := w.clock.NewTimer(wait)
		select {
		case <-timer.C():
		case <-w.outboxKick:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil
}

// send sends a group once and puts back what has to be repeated. A group that the leader refuses as a whole is repeated one
// by one, so that a single bad report does not hold up the others.
func (w *Worker) send(ctx context.Context, group []*entry) {
	codes, err := w.bring(ctx, group)
	switch {
	case err != nil && !retryable(err) && len(group) > 1:
		for _, e := range group {
			e.alone = true
		}
	case errors.Is(err, task.ErrInvalid) || errors.Is(err, task.ErrTooLarge):
		codes = []string{task.Explain(err).Code}
	}
	if again := w.settleReports(group, codes); len(again) > 0 {
		w.persist(again)
		w.outbox.back(again, w.clock.Awake())
		kick(w.outboxKick)
	}
}

// bring sends a group once. It need not offer the slots that its attempts left: the parked poll does (want).
func (w *Worker) bring(ctx context.Context, group []*entry) ([]string, error) {
	req := &transport.ReportRequest{Incarnation: w.cfg.Incarnation, Reports: make([]task.Report, len(group))}
	for i, e := range group {
		req.Reports[i] = e.report
	}
	var reply *transport.ReportReply
	err := w.within(ctx, reportTime, func(ctx context.Context) (err error) {
		reply, err = w.cfg.Control.Report(ctx, req)
		return err
	})
	if ctx.Err() == nil {
		w.heard(err)
	}
	if err != nil {
		return nil, err
	}
	return reply.Codes, nil
}

// settleReports forgets what is acknowledged or refused for good and returns what has to be sent again.
func (w *Worker) settleReports(group []*entry, codes []string) (again []*entry) {
	var done []*entry
	for i, e := range group {
		code := "no_leader"
		if i < len(codes) {
			code = codes[i]
		}
		r := &e.report
		switch code {
		case "":
		case "no_leader":
			again = append(again, e)
			continue
		case "stale_token":
			w.log.Info("report refused: lease was over", "job", r.Job, "shard", r.Shard, "token", r.Token, "end", r.Outcome.String())
		default:
			w.log.Error("report refused", "job", r.Job, "shard", r.Shard, "token", r.Token, "end", r.Outcome.String(), "code", code)
		}
		done = append(done, e)
	}
	w.forget(done)
	return again
}

// forget ends the durable life of reports, then the one in memory. In this order a crash in between only repeats them.
func (w *Worker) forget(done []*entry) {
	if len(done) == 0 {
		return
	}
	w.unstore(done)
	for _, e := range done {
		if e.recorded {
			w.cfg.Runner.Forget(e.report.Token.Execution())
		}
	}
	w.outbox.drop(done)
	w.bell.ring()
}
