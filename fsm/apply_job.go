package fsm

import (
	"cmp"
	"container/heap"
	"slices"

	"lanjobs/task"
)

// actedOn finds the job that a person's act is about. done is the answer where nothing is to be done: there is no such job, or
// the act is a repeat.
func (s *State) actedOn(id task.JobID, request task.RequestID) (j *Job, done *Result) {
	j = s.Job(id)
	if j == nil {
		r := refuse(task.ErrNotFound, "", "no job %s", clip(string(id), maxIDLength))
		return nil, &r
	}
	if len(request) > maxIDLength {
		r := refuse(task.ErrInvalid, "", "a request id has at most %d bytes", maxIDLength)
		return nil, &r
	}
	if j.did(request) {
		return nil, &Result{Job: j.ID, Existed: true}
	}
	return j, nil
}

// apply pauses or resumes a job, or gives it another priority. What runs goes on.
func (c *SetJob) apply(s *State) Result {
	j, done := s.actedOn(c.Job, c.RequestID)
	if done != nil {
		return *done
	}
	if j.State.Final() || j.Cancelling {
		return refuse(task.ErrConflict, "", "job %s %s", j.ID, j.endWord())
	}
	if c.Action == JobPriority && (c.Priority < 0 || c.Priority >= priorities) {
		return refuse(task.ErrInvalid, "", "a priority is from 0 to %d", priorities-1)
	}
	e := task.Event{Job: j.ID, JobName: j.Spec.Name, By: clip(c.By, task.MaxMessageLength)}
	same := false
	switch c.Action {
	case JobPause:
		same, e.Kind = j.Paused, task.EventJobPause
	case JobResume:
		same, e.Kind = !j.Paused, task.EventJobResume
	case JobPriority:
		same, e.Kind, e.From, e.To = j.Priority == c.Priority, task.EventJobPriority, itoa(j.Priority), itoa(c.Priority)
	default:
		return refuse(task.ErrInvalid, "", "unknown act %q on a job", clip(string(c.Action), maxIDLength))
	}
	j = s.mutJob(j.Seq)
	j.remember(c.RequestID)
	if same {
		return Result{Job: j.ID, Existed: true}
	}
	if c.Action == JobPriority {
		j.queue.ready.put(j.Priority, j.Seq, false)
		j.Priority = c.Priority
	} else {
		j.Paused = c.Action == JobPause
	}
	s.refreshReady(j)
	s.emit(e)
	return Result{Job: j.ID}
}

func (j *Job) endWord() string {
	if j.State.Final() {
		return "has ended: " + string(j.State)
	}
	return "is being cancelled"
}

// apply ends a job whose start_within or deadline has passed, as a cancel does; it is checked again here.
func (c *ExpireJob) apply(s *State) Result {
	j := s.Job(c.Job)
	if j == nil {
		return refuse(task.ErrNotFound, "", "no job %s", clip(string(c.Job), maxIDLength))
	}
	if j.Expired {
		return Result{Job: j.ID, Existed: true}
	}
	at, ok := j.expiry()
	if !ok || at > s.Led {
		return refuse(task.ErrConflict, "", "the time of job %s is not over", j.ID)
	}
	j = s.mutJob(j.Seq)
	reason := "not started within " + j.Spec.StartWithin.Duration().String()
	if j.State != task.JobPending {
		reason = "deadline of " + j.Spec.Deadline.Duration().String() + " passed"
	}
	j.Cancelling, j.Expired, j.CancelGrace, j.CancelReason = true, true, 0, reason
	s.emit(task.Event{Kind: task.EventJobExpire, Job: j.ID, JobName: j.Spec.Name, Reason: reason})
	s.stopJob(j)
	return Result{Job: j.ID}
}

// expiry is when a job's start_within or deadline passes, on Led.
func (j *Job) expiry() (at task.Millis, ok bool) {
	switch {
	case j.Cancelling:
	case j.State == task.JobPending && j.Spec.StartWithin > 0:
		return j.SubmittedLed + j.Spec.StartWithin, true
	case j.State == task.JobRunning && j.Spec.Deadline > 0:
		return j.StartedLed + j.Spec.Deadline, true
	}
	return 0, false
}

// watch notes when a job expires.
func (s *State) watch(j *Job) {
	if at, ok := j.expiry(); ok {
		heap.Push(&s.expiries, ledEnd{at, j.Seq})
	}
}

// startDeadline counts a job's deadline from now.
func (s *State) startDeadline(j *Job) {
	if j.Spec.Deadline > 0 {
		j.StartedLed = s.Led
		s.watch(j)
	}
}

// expires tells whether an entry of the heap still holds.
func (s *State) expires(e ledEnd) bool {
	j := s.JobBySeq(e.place)
	if j == nil {
		return false
	}
	at, ok := j.expiry()
	return ok && at == e.at
}

// dropStaleExpiries keeps what no longer holds from being the next thing to fall due.
func (s *State) dropStaleExpiries() {
	dropStale(&s.expiries, &s.expiriesMost, s.expires)
}

// Overdue gives the jobs that ExpireJob would end at a time on Led, those first that have been so longest.
func (s *State) Overdue(led task.Millis) []task.JobID {
	if len(s.expiries) == 0 || s.expiries[0].at > led {
		return nil
	}
	var ends []ledEnd
	for _, e := range s.expiries {
		if e.at <= led && s.expires(e) {
			ends = append(ends, e)
		}
	}
	slices.SortFunc(ends, func(a, b ledEnd) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.place, b.place)) })
	var out []task.JobID
	ends = slices.Compact(ends)
	for _, e := range ends {
		out = append(out, s.JobBySeq(e.place).ID)
	}
	return out
}
