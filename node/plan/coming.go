package plan

import (
	"lanjobs/fsm"
	"lanjobs/task"
)

// Job finds a job that is stored or coming, nil if there is none.
func (v *View) Job(id task.JobID) *fsm.Job {
	if j := v.State.Job(id); j != nil {
		return j
	}
	for _, j := range v.Coming {
		if j.ID == id {
			return j
		}
	}
	return nil
}

// placeComing grants shards of jobs that the entry being built is about to store, where room is left after all that is ready:
// on an idle cluster a job then begins one entry earlier. What is granted here is checked by Apply like any other grant, right
// after the job is stored.
func (p *placer) placeComing(jobs []*fsm.Job) {
	for _, j := range jobs {
		if p.free <= 0 || p.Flight.scan.more {
			return // the rest waits for its turn
		}
		if p.queueOf(j).room <= 0 {
			continue
		}
		for c := p.begin(j); p.free > 0 && p.grantOne(c); {
		}
	}
}
