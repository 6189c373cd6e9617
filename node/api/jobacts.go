package api

import (
	"context"
	"fmt"

	"lanjobs/fsm"
	"lanjobs/transport"
)

func (a *API) pauseJob(ctx context.Context, q *request) (*reply, error) {
	return a.setJob(ctx, q, fsm.SetJob{Action: fsm.JobPause})
}

func (a *API) resumeJob(ctx context.Context, q *request) (*reply, error) {
	return a.setJob(ctx, q, fsm.SetJob{Action: fsm.JobResume})
}

// prioritizeJob answers POST /v1/jobs/{ref}/priority (R33).
func (a *API) prioritizeJob(ctx context.Context, q *request) (*reply, error) {
	var b transport.PriorityBody
	if err := q.decode(&b); err != nil {
		return nil, err
	}
	if b.Priority == nil || *b.Priority < 0 || *b.Priority > maxPriority {
		return nil, invalid(fmt.Sprintf("priority is from 0 to %d, higher goes first", maxPriority), "")
	}
	return a.setJob(ctx, q, fsm.SetJob{Action: fsm.JobPriority, Priority: *b.Priority})
}

const maxPriority = 100

// setJob commits an act on the job of the path and shows it as it then is (R36).
func (a *API) setJob(ctx context.Context, q *request, c fsm.SetJob) (*reply, error) {
	id, err := a.jobID(q)
	if err != nil {
		return nil, err
	}
	c.Job, c.By, c.RequestID = id, q.by, q.id
	if _, err := a.propose(ctx, &c); err != nil {
		return nil, err
	}
	return a.afterJob(q, id)
}
