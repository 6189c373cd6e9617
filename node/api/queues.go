package api

import (
	"context"
	"fmt"
	"strings"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// listQueues answers GET /v1/queues, by name; it has few items and no pages.
func (a *API) listQueues(_ context.Context, q *request) (*reply, error) {
	out := task.List[task.QueueView]{Kind: "QueueList", Items: []task.QueueView{}}
	a.look(q, func(v *view) {
		out.Index = v.Index
		backlog := v.backlogs()
		for _, qu := range v.Queues() {
			out.Items = append(out.Items, v.queue(qu, backlog[qu.Name]))
		}
	})
	return ok(out)
}

// onQueue gives f the queue of the path.
func (a *API) onQueue(q *request, f func(*view, *fsm.Queue) error) error {
	var err error
	a.look(q, func(v *view) {
		qu := v.Queue(q.value("ref"))
		if qu == nil {
			err = v.noQueue(q.value("ref"))
			return
		}
		err = f(v, qu)
	})
	return err
}

func (v *view) noQueue(ref string) error {
	var names []string
	for _, qu := range v.Queues() {
		names = append(names, qu.Name)
	}
	return noSuch("queue", ref, names, "There are: "+some(names, 2*maxNamed, ", ")+". A new one: lanjobs queue set "+queueWord(ref))
}

// queueWord is a name as a command may have it.
func queueWord(ref string) string {
	if plainName(ref) {
		return ref
	}
	return "NAME"
}

// getQueue answers GET /v1/queues/{ref}.
func (a *API) getQueue(_ context.Context, q *request) (*reply, error) {
	var out task.QueueView
	if err := a.onQueue(q, func(v *view, qu *fsm.Queue) error { out = v.queue(qu, v.backlogs()[qu.Name]); return nil }); err != nil {
		return nil, err
	}
	return ok(out)
}

// setQueue answers PATCH /v1/queues/{ref}: it makes the queue, or changes what the body has (R33).
func (a *API) setQueue(ctx context.Context, q *request) (*reply, error) {
	var b transport.QueueBody
	if err := q.decode(&b); err != nil {
		return nil, err
	}
	name := q.value("ref")
	c := &fsm.SetQueue{Name: name, Max: b.Max, Paused: b.Paused, Balance: b.Balance, By: q.by, RequestID: q.id}
	switch {
	case !plainName(name):
		return nil, invalid("the queue name "+shown(name)+" is not allowed", fmt.Sprintf("a-z, 0-9 and -, at most %d characters, as in video", task.MaxNameLength))
	case b.Max != nil && (*b.Max < 0 || *b.Max > task.MaxShards):
		return nil, invalid(fmt.Sprintf("max %d is not from 0 (no limit) to %d", *b.Max, task.MaxShards), "")
	case b.Balance != nil && !b.Balance.Known():
		return nil, unknownBalance(*b.Balance)
	}
	if _, err := a.propose(ctx, c); err != nil {
		return nil, err
	}
	return a.getQueue(ctx, q)
}

func unknownBalance(b task.Balance) error {
	var names []string
	for _, known := range task.Balances {
		names = append(names, string(known))
	}
	hint := "one of " + strings.Join(names, ", ")
	if near := task.Nearest(names, string(b)); near != "" {
		hint = fmt.Sprintf("Did you mean %q?", near)
	}
	return invalid("balance "+shown(string(b))+" is not known", hint)
}

func (a *API) pauseQueue(ctx context.Context, q *request) (*reply, error) {
	return a.holdQueue(ctx, q, true)
}

func (a *API) resumeQueue(ctx context.Context, q *request) (*reply, error) {
	return a.holdQueue(ctx, q, false)
}

// holdQueue answers POST /v1/queues/{ref}/pause and resume: what runs goes on, nothing more of its jobs starts (R36).
func (a *API) holdQueue(ctx context.Context, q *request, paused bool) (*reply, error) {
	c := &fsm.SetQueue{Paused: &paused, By: q.by, RequestID: q.id}
	if err := a.onQueue(q, func(_ *view, qu *fsm.Queue) error { c.Name = qu.Name; return nil }); err != nil {
		return nil, err
	}
	if _, err := a.propose(ctx, c); err != nil {
		return nil, err
	}
	return a.getQueue(ctx, q)
}

// removeQueue answers DELETE /v1/queues/{ref}.
func (a *API) removeQueue(ctx context.Context, q *request) (*reply, error) {
	var out task.QueueView
	if err := a.onQueue(q, func(v *view, qu *fsm.Queue) error { out = v.queue(qu, v.backlogs()[qu.Name]); return nil }); err != nil {
		return nil, err
	}
	if _, err := a.propose(ctx, &fsm.SetQueue{Name: out.Name, Remove: true, By: q.by, RequestID: q.id}); err != nil {
		return nil, err
	}
	return ok(out)
}

// backlog is what waits in a queue.
type backlog struct {
	jobs, pending, waits int
	oldest               int64 // submit of the oldest job with a pending shard, wall clock
}

// backlogs looks at the unfinished jobs.
func (v *view) backlogs() map[string]*backlog {
	out := map[string]*backlog{}
	v.unfinished(func(j *fsm.Job) {
		b := out[j.Queue()]
		if b == nil {
			b = &backlog{}
			out[j.Queue()] = b
		}
		b.jobs++
		pending, waits := pendingOf(j)
		b.pending += pending
		b.waits += waits
		if pending+waits > 0 && (b.oldest == 0 || j.Submitted < b.oldest) {
			b.oldest = j.Submitted
		}
	})
	return out
}

// pendingOf counts shards of open stages: those that could run now, and those that wait for their retry time.
func pendingOf(j *fsm.Job) (pending, waits int) {
	for i := range j.Stages {
		if st := &j.Stages[i]; st.State == task.StageOpen {
			pending += int(st.Counts[task.ShardPending] - st.Waits)
			waits += int(st.Waits)
		}
	}
	return pending, waits
}

// unfinished calls f for each job that is not final, newest first.
func (v *view) unfinished(f func(*fsm.Job)) {
	left := v.Live()
	if left == 0 {
		return
	}
	v.JobsNewestFirst(func(j *fsm.Job) bool {
		if !j.State.Final() {
			f(j)
			left--
		}
		return left > 0
	})
}

// Names of a queue's states.
const (
	queueOpen   = "open"
	queueFull   = "full"
	queuePaused = "paused"
)

func (v *view) queue(qu *fsm.Queue, b *backlog) task.QueueView {
	out := task.QueueView{Name: qu.Name, State: queueState(qu), Max: qu.Max, Balance: balanceOf(qu), Active: qu.Active, By: qu.By}
	if b != nil {
		out.Jobs, out.Pending, out.Backoff = b.jobs, b.pending, b.waits
		if b.oldest > 0 {
			age := v.ago(b.oldest).Seconds()
			out.OldestSeconds = &age
		}
	}
	if qu.Paused {
		out.Note = "lanjobs queue resume " + qu.Name
	}
	return out
}

func balanceOf(qu *fsm.Queue) task.Balance {
	if qu.Balance == "" {
		return task.Balances[0]
	}
	return qu.Balance
}

func queueState(qu *fsm.Queue) string {
	switch {
	case qu.Paused:
		return queuePaused
	case qu.Max > 0 && qu.Active >= qu.Max:
		return queueFull
	}
	return queueOpen
}

// place counts the other jobs of a job's queue that have work waiting: those of a higher priority go first, those of the same
// share what is free. nil = nothing of the job waits.
func (v *view) place(j *fsm.Job) (ahead, beside *int) {
	if pending, _ := pendingOf(j); pending == 0 || j.Paused || j.State.Final() {
		return nil, nil
	}
	ahead, beside = new(int), new(int)
	v.unfinished(func(o *fsm.Job) {
		if o == j || o.Paused || o.Queue() != j.Queue() || o.Priority < j.Priority {
			return
		}
		if pending, _ := pendingOf(o); pending == 0 {
			return
		}
		if o.Priority > j.Priority {
			*ahead++
		} else {
			*beside++
		}
	})
	return ahead, beside
}
