package worker

import (
	"context"
	"errors"
	"fmt"
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
		if (code == "too_large" || code == "invalid") && len(r.Outputs) > 0 {
			w.log.Warn("outputs refused: the attempt counts as failed", "job", r.Job, "shard", r.Shard, "token", r.Token, "outputs", len(r.Outputs), "code", code)
			refuseOutputs(r)
			again = append(again, e)
			continue
		}
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

// refuseOutputs makes a failure of a success whose outputs the cluster does not take. If the report were forgotten instead, the lease
// would stay, and come back as one whose grant never arrived here.
func refuseOutputs(r *task.Report) {
	r.Outputs = nil
	r.Outcome.ExitCode = task.DataError
	r.Outcome.Message = fmt.Sprintf("exit 0, but the cluster cannot take its outputs: with those that it registered while it ran more than %d KiB or %d names, or the records of all jobs are full",
		task.MaxShardOutputBytes>>10, task.MaxOutputs)
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
