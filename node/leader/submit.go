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
	left := make([]int, len(jobs))
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 { // once, but for an id that was given to two jobs while neither was stored
		l.name(jobs, left)
		waits := t.enqueue(jobs, left, errs)
		for n, r := range waits {
			if i := left[n]; r != nil {
				results[i], errs[i] = r.wait(ctx)
			}
		}
		left = slices.DeleteFunc(left, func(i int) bool { return errs[i] != nil || !results[i].IDTaken })
	}
	return results, errs
}

// name gives the jobs at some places ids that no job has which is stored, and no other of them.
func (l *Leader) name(jobs []fsm.SubmitJob, places []int) {
	given := make(map[task.JobID]bool, len(places))
	for left := slices.Clone(places); len(left) > 0; {
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

// enqueue puts the jobs at some places into the queue in their order; those without room have an error and no request.
func (t *term) enqueue(jobs []fsm.SubmitJob, places []int, errs []error) []*request {
	out := make([]*request, len(places))
	for _, i := range places {
		errs[i] = t.tooNew(&jobs[i])
	}
	t.mu.Lock()
	for n, i := range places {
		if errs[i] == nil {
			cmd := jobs[i]
			out[n], errs[i] = t.push(&cmd)
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
