package fsm

import (
	"slices"
	"strings"

	"lanjobs/task"
)

// apply makes, changes or removes a queue. A lower limit stops nothing that runs: no more is granted until it is kept again.
func (c *SetQueue) apply(s *State) Result {
	if !validID(c.Name) || len(c.RequestID) > maxIDLength {
		return refuse(task.ErrInvalid, "", "a queue needs a name, and a name or id has at most %d bytes", maxIDLength)
	}
	if _, done := s.did(c.RequestID); done {
		return Result{Existed: true}
	}
	i, found := s.queuePlace(c.Name)
	switch {
	case c.Remove:
		return c.remove(s, i, found)
	case c.Max != nil && (*c.Max < 0 || *c.Max > task.MaxShards):
		return refuse(task.ErrInvalid, "", "the limit of a queue is from 0 (none) to %d", task.MaxShards)
	case c.Balance != nil && !c.Balance.Known():
		return refuse(task.ErrInvalid, "", "unknown balance %q", clip(string(*c.Balance), maxIDLength))
	case !found && len(s.queues) >= task.MaxQueues:
		return refuse(task.ErrTooLarge, "", "there are %d queues, as many as are allowed", task.MaxQueues)
	}
	s.remember(c.RequestID, "")
	q := s.addQueue(strings.Clone(c.Name))
	before := q.Queue
	if c.Max != nil {
		q.Max = *c.Max
	}
	if c.Paused != nil {
		q.Paused = *c.Paused
	}
	if c.Balance != nil {
		if q.Balance = *c.Balance; q.Balance == task.BalanceLeastLoaded {
			q.Balance = ""
		}
	}
	if found && q.Queue == before {
		return Result{Existed: true}
	}
	q.By = clip(c.By, task.MaxMessageLength)
	s.emit(task.Event{Kind: task.EventQueueSet, Reason: q.String(), By: q.By})
	return Result{Existed: found}
}

func (c *SetQueue) remove(s *State, i int, found bool) Result {
	switch {
	case !found:
		return refuse(task.ErrNotFound, "", "there is no queue %s", c.Name)
	case c.Name == task.DefaultQueue:
		return refuse(task.ErrConflict, "", "the queue %s is always there", c.Name)
	case s.queues[i].users > 0:
		what := "unfinished jobs and schedules use"
		if s.queues[i].users == 1 {
			what = "unfinished job or schedule uses"
		}
		return refuse(task.ErrConflict, "Which: lanjobs ls --queue "+c.Name+" · lanjobs schedule ls   Cancel or remove them first.", "%d %s the queue %s", s.queues[i].users, what, c.Name)
	}
	s.remember(c.RequestID, "")
	s.emit(task.Event{Kind: task.EventQueueRemove, Reason: s.queues[i].Name, By: clip(c.By, task.MaxMessageLength)})
	s.queues = slices.Delete(s.queues, i, i+1)
	return Result{}
}

// String is the queue in a few words, for the audit log.
func (q *Queue) String() string {
	text := q.Name + ": "
	if q.Max == 0 {
		text += "no limit"
	} else {
		text += "at most " + itoa(q.Max)
	}
	if q.Balance != "" {
		text += ", " + string(q.Balance)
	}
	if q.Paused {
		text += ", paused"
	}
	return text
}
