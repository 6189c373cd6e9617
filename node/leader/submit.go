package leader

import (
	"context"
	"slices"

	"lanjobs/fsm"
	"lanjobs/task"
)

// SubmitAll commits jobs under fresh ids, one after another and in as few entries as they fit into: what would take thousands
// of calls is one turn of the writer. An error is that of the job at its place, as Propose has it.
func (l *Leader) SubmitAll(ctx context.Context, jobs []fsm.SubmitJob) ([]fsm.Result, []error) {
	results, errs := make([]fsm.Result, len(jobs)), make([]error, len(jobs))
	t, err := l.soon(ctx)
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
		return results, errs
	}
	l.name(jobs)
	waits := t.enqueue(jobs, errs)
	for i, r := range waits {
		if r != nil {
			results[i], errs[i] = r.wait(ctx)
		}
	}
	return results, errs
}

// name gives each job an id that no other has.
func (l *Leader) name(jobs []fsm.SubmitJob) {
	given := make(map[task.JobID]bool, len(jobs))
	left := make([]int, len(jobs))
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		for _, i := range left {
			jobs[i].Job = l.cfg.NewJobID()
		}
		l.cfg.Log.Read(func(s *fsm.State) {
			left = slices.DeleteFunc(left, func(i int) bool {
				id := jobs[i].Job
				if given[id] || s.Job(id) != nil {
					return false
				}
				given[id] = true
				return true
			})
		})
	}
}

// enqueue puts commands into the queue in their order; those without room have an error and no request.
func (t *term) enqueue(jobs []fsm.SubmitJob, errs []error) []*request {
	out := make([]*request, len(jobs))
	for i := range jobs {
		errs[i] = t.tooNew(&jobs[i])
	}
	t.mu.Lock()
	for i := range jobs {
		if errs[i] == nil {
			cmd := jobs[i]
			out[i], errs[i] = t.push(&cmd)
		}
	}
	t.mu.Unlock()
	t.nudge()
	return out
}

func errQueueFull() error {
	return task.NewProblem(task.ErrNoLeader, "the leader has more to write than it can: try again", "")
}

// wait gives what became of a queued command.
func (r *request) wait(ctx context.Context) (fsm.Result, error) {
	select {
	case o := <-r.done:
		return o.result, o.err
	case <-ctx.Done():
		return fsm.Result{}, task.NewProblem(task.ErrNoLeader, "no answer in time: its fate is unknown, repeat it", "")
	}
}
