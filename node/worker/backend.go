package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

var _ runner.Backend = (*Worker)(nil)

// staleHere is what a task hears whose lease is over by this node's own clock: nobody needs to be asked.
func staleHere() error {
	return task.NewProblem(task.ErrStaleToken, "lease lost: another execution may own this shard", "Stop now; whatever this attempt still writes is refused.")
}

// Lease tells from the local deadline alone whether the lease holds (R13, I1).
func (w *Worker) Lease(x task.ExecutionID) (task.Deadlines, bool) {
	now := w.clock.Boot()
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	a := w.book.byExec[x]
	if a == nil || !a.live() || !a.believes(now) {
		return task.Deadlines{}, false
	}
	return a.deadlines, true
}

// holder gives the attempt of an assignment as long as its lease is believed in.
func (w *Worker) holder(as *task.Assignment) (*attempt, error) {
	if _, ok := w.Lease(as.Execution()); !ok {
		return nil, staleHere()
	}
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	if a := w.book.byExec[as.Execution()]; a != nil {
		return a, nil
	}
	return nil, staleHere()
}

// read makes a call whose answer comes without a log entry. A refusal of the token is then no proof: a leader that was
// replaced without noticing answers from the past. A renewal finds out; until then the task may ask again.
func (w *Worker) read(ctx context.Context, as *task.Assignment, method transport.Method, request, reply any) error {
	a, err := w.holder(as)
	if err != nil {
		return err
	}
	err = w.ask(ctx, method, request, reply)
	if !errors.Is(err, task.ErrStaleToken) {
		return err
	}
	w.book.wantRenewal(a, w.clock.Boot())
	kick(w.keeperKick)
	return task.NewProblem(task.ErrNoLeader, "the leader that answered does not know this lease; it is being renewed", "Ask again.")
}

// write makes a call under the lease. It is not sent any more once the local deadline has passed (I11); a refusal by the
// leader is as good as a lost renewal and ends the attempt.
func (w *Worker) write(ctx context.Context, as *task.Assignment, method transport.Method, request, reply any) error {
	if _, err := w.holder(as); err != nil {
		return err
	}
	err := w.ask(ctx, method, request, reply)
	if errors.Is(err, task.ErrStaleToken) {
		w.lose(as.Execution())
	}
	return err
}

// ask makes a call for a task. An answer that did not come in the caller's time is "no leader" to it: outcome unknown, ask
// again.
func (w *Worker) ask(ctx context.Context, method transport.Method, request, reply any) error {
	err := w.cfg.Control.Do(ctx, method, request, reply)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", task.ErrNoLeader, err)
	}
	return err
}

// Checkpoint saves and returns only after the leader has acknowledged it (R26, I5, C34). Each call takes a new number, also
// after an unknown outcome: one number with two contents could be taken for a repeat, and the second would be lost.
func (w *Worker) Checkpoint(ctx context.Context, as *task.Assignment, data []byte) (uint64, error) {
	if len(data) > task.MaxCheckpointBytes {
		return 0, task.NewProblem(task.ErrTooLarge, fmt.Sprintf("a checkpoint holds at most %d bytes, this one has %d", task.MaxCheckpointBytes, len(data)),
			"Save the file elsewhere and checkpoint its name.")
	}
	a, err := w.holder(as)
	if err != nil {
		return 0, err
	}
	saving := w.book.savingOf(a)
	select {
	case saving <- struct{}{}:
		defer func() { <-saving }()
	case <-ctx.Done():
		return 0, fmt.Errorf("%w: %w", task.ErrNoLeader, context.Cause(ctx))
	}
	req := &transport.CheckpointRequest{Ref: as.Ref(), Token: as.Token, Data: data}
	for leap := uint64(1); ; leap *= 2 {
		req.Seq = w.book.nextSeq(a, leap)
		var ack transport.Ack
		err := w.write(ctx, as, transport.MethodCheckpoint, req, &ack)
		switch {
		case err == nil:
			w.book.setCheckpoint(a, req.Seq, data)
			return req.Seq, nil
		case !errors.Is(err, task.ErrConflict) || leap > 1<<40:
			return 0, err
		}
		// A former agent of this node saved further than the assignment says. The leader took nothing; go past it.
	}
}

// savingOf gives the turn to save a checkpoint of an attempt.
func (b *book) savingOf(a *attempt) chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.saving == nil {
		a.saving = make(chan struct{}, 1)
	}
	return a.saving
}

func (b *book) nextSeq(a *attempt, leap uint64) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.seq += leap
	return a.seq
}

func (b *book) setCheckpoint(a *attempt, seq uint64, data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.checkpoint = &task.Checkpoint{Seq: seq, Data: bytes.Clone(data)}
}

// LastCheckpoint is the newest accepted one that this node knows of: the assignment's, or its own later ones.
func (w *Worker) LastCheckpoint(as *task.Assignment) *task.Checkpoint {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	if a := w.book.byExec[as.Execution()]; a != nil {
		return a.checkpoint
	}
	return as.Checkpoint
}

// Progress passes a note on, at most one a second; more are dropped, as only the newest matters to a reader.
func (w *Worker) Progress(ctx context.Context, as *task.Assignment, text string) error {
	a, err := w.holder(as)
	if err != nil {
		return err
	}
	if !w.book.mayProgress(a, w.clock.Awake()) {
		return nil
	}
	return w.read(ctx, as, transport.MethodProgress, &transport.ProgressRequest{Ref: as.Ref(), Token: as.Token, Text: text}, &transport.Ack{})
}

func (b *book) mayProgress(a *attempt, awake time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.progressed != 0 && awake-a.progressed < progressEvery {
		return false
	}
	a.progressed = awake
	return true
}

// Confirm renews the lease with a majority now (task guard). The keeper's next request carries it, so that many tasks that
// confirm at once cost one log entry together.
func (w *Worker) Confirm(ctx context.Context, as *task.Assignment) (task.Deadlines, error) {
	a, err := w.holder(as)
	if err != nil {
		return task.Deadlines{}, err
	}
	asked := w.clock.Boot()
	misses := w.book.wantRenewal(a, asked)
	kick(w.keeperKick)
	var answer confirmation
	if !w.await(ctx, func() bool { answer = w.book.confirmed(a, asked, misses); return answer != confirmWaiting }) {
		return task.Deadlines{}, fmt.Errorf("%w: %w", task.ErrNoLeader, context.Cause(ctx))
	}
	if answer == confirmMissed {
		return task.Deadlines{}, task.NewProblem(task.ErrNoLeader, "no majority confirmed the lease in time", "Keep working and ask again.")
	}
	d, ok := w.Lease(as.Execution())
	if !ok {
		return task.Deadlines{}, staleHere()
	}
	return d, nil
}

// confirmation is how a wanted renewal stands.
type confirmation uint8

const (
	confirmWaiting confirmation = iota
	confirmDone                 // acknowledged, or the lease is lost
	confirmMissed
)

// wantRenewal makes the lease due, and due again if the request that it is in was sent before asked.
func (b *book) wantRenewal(a *attempt, asked task.Boot) (misses int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.wanted, a.due = asked, min(a.due, asked)
	return a.misses
}

func (b *book) confirmed(a *attempt, asked task.Boot, misses int) confirmation {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case a.ackSent >= asked || a.over() || a.fenced:
		return confirmDone
	case a.misses != misses || !b.registered:
		return confirmMissed
	}
	return confirmWaiting
}

// Defer ends the attempt as "not now" (UX 3). It is on disk before the task hears of it, since the exit record does not know
// of it. The process is told to end as for a drain: should the note be lost, the shard runs again at once.
func (w *Worker) Defer(_ context.Context, as *task.Assignment, wait task.Millis) error {
	if _, err := w.holder(as); err != nil {
		return err
	}
	wait = max(wait, 0)
	if err := w.noteDeferral(as.Token, wait); err != nil {
		return fmt.Errorf("note deferral: %w", err)
	}
	if !w.book.setDeferred(as.Token, wait) {
		return staleHere()
	}
	stops, _ := w.book.halt(func(a *attempt) bool { return a.Token == as.Token }, task.StopDrain, ownGrace, w.clock.Boot())
	w.carryOut(stops)
	return nil
}
