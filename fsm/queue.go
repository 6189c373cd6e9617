package fsm

import (
	"math"
	"slices"
	"strings"

	"lanjobs/task"
)

// Queue is a name under which jobs share a limit (R33). Outside this package it is for reading only.
type Queue struct {
	Name    string
	Max     int // most leases of its jobs at once; 0 = no limit
	Paused  bool
	Balance task.Balance // "" is the default, least-loaded
	By      string       // who changed it last
	Active  int          // derived: leases of its jobs
}

// Room is how many more leases the jobs of the queue may have now: 0 if it is paused or full.
func (q *Queue) Room() int {
	switch {
	case q.Paused:
		return 0
	case q.Max == 0:
		return math.MaxInt
	}
	return max(q.Max-q.Active, 0)
}

// queue is a Queue with what is derived besides: it is changed in place, a snapshot has its own copy.
type queue struct {
	Queue
	ready readyQueue // its jobs that have something to grant
	users int        // unfinished jobs and schedules
}

// Queues gives all queues, sorted by name; the default one is always among them.
func (s *State) Queues() []*Queue {
	out := make([]*Queue, len(s.queues))
	for i, q := range s.queues {
		out[i] = &q.Queue
	}
	return out
}

// Queue finds a queue, nil if there is none of that name. "" is the default queue.
func (s *State) Queue(name string) *Queue {
	if q := s.queueNamed(name); q != nil {
		return &q.Queue
	}
	return nil
}

func (s *State) queueNamed(name string) *queue {
	if name == "" {
		name = task.DefaultQueue
	}
	if i, found := s.queuePlace(name); found {
		return s.queues[i]
	}
	return nil
}

func (s *State) queuePlace(name string) (int, bool) {
	return slices.BinarySearchFunc(s.queues, name, func(q *queue, name string) int { return strings.Compare(q.Name, name) })
}

// addQueue gives the queue of a name, made if there is none.
func (s *State) addQueue(name string) *queue {
	i, found := s.queuePlace(name)
	if !found {
		s.queues = slices.Insert(s.queues, i, &queue{Queue: Queue{Name: name}})
	}
	return s.queues[i]
}

// queueFor gives the queue that a new job or schedule names, or the refusal with those that there are.
func (s *State) queueFor(spec *Spec) (*queue, *task.Problem) {
	if q := s.queueNamed(spec.Queue); q != nil {
		return q, nil
	}
	var names []string
	for _, q := range s.queues {
		if len(names) == 20 {
			names = append(names, "…")
			break
		}
		names = append(names, q.Name)
	}
	return nil, task.NewProblem(task.ErrNotFound, "there is no queue "+clip(spec.Queue, maxIDLength)+"; there are: "+strings.Join(names, ", "), "Make it: lanjobs queue set "+clip(spec.Queue, maxIDLength))
}

// Queue is the name of the job's queue.
func (j *Job) Queue() string {
	return j.Spec.queueName()
}

func (sp *Spec) queueName() string {
	if sp.Queue == "" {
		return task.DefaultQueue
	}
	return sp.Queue
}
