package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

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
		case "too_large", "invalid":
			if e.withoutOutputs(code) {
				w.log.Warn("outputs refused", "job", r.Job, "shard", r.Shard, "token", r.Token, "code", code)
				again = append(again, e)
				continue
			}
			w.refused(r, code)
		case "stale_token":
			w.log.Info("report refused: lease was over", "job", r.Job, "shard", r.Shard, "token", r.Token, "end", r.Outcome.String())
		default:
			w.refused(r, code)
		}
		done = append(done, e)
	}
	w.forget(done)
	return again
}

func (w *Worker) refused(r *task.Report, code string) {
	w.log.Error("report refused", "job", r.Job, "shard", r.Shard, "token", r.Token, "end", r.Outcome.String(), "code", code)
}

// outputsRefused is the exit code of an attempt whose outputs the cluster does not take, as for a LANJOBS_OUTPUT file that cannot be read
// (sysexits EX_DATAERR): running it again would not help.
const outputsRefused = 65

// withoutOutputs makes a failure of a success whose outputs were refused: too many, or too large with those registered before. Left
// unreported its lease would run out, and the shard would run again without end. The refused report had no effect, so no two are
// taken; false if it has no outputs that could be the reason.
func (e *entry) withoutOutputs(code string) bool {
	if len(e.report.Outputs) == 0 {
		return false
	}
	e.report.Outputs = nil
	e.report.Outcome.ExitCode = outputsRefused
	e.report.Outcome.Message = "exit 0, but its outputs are refused (" + code + "): too many, or too large together; store the data elsewhere and register its name"
	return true
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
	w.bell.Ring()
}
