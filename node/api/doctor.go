package api

import (
	"context"
	"fmt"
	"sync"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// Doctor checks this machine and its way to the others. It may take some seconds.
type Doctor interface {
	Doctor(ctx context.Context) *task.DoctorView
}

const (
	doctorWait = 30 * time.Second // how long another machine may take for its checks
	maxDoctors = 64               // machines of one request
)

// doctor answers POST /v1/doctor. A machine that does not answer is in the list as silent.
func (a *API) doctor(ctx context.Context, q *request) (*reply, error) {
	var b transport.DoctorBody
	if err := q.decode(&b); err != nil {
		return nil, err
	}
	if a.cfg.Doctor == nil {
		return nil, errNoProcess()
	}
	if len(b.Nodes) > maxDoctors {
		return nil, invalid(fmt.Sprintf("%d machines are more than %d", len(b.Nodes), maxDoctors), "")
	}
	if len(b.Nodes) == 0 {
		b.Nodes = []task.NodeID{a.cfg.Self}
	}
	out := task.List[*task.DoctorView]{Kind: "DoctorList", Items: make([]*task.DoctorView, len(b.Nodes))}
	var all sync.WaitGroup
	for i, id := range b.Nodes {
		all.Go(func() { out.Items[i] = a.doctorOf(ctx, id) })
	}
	all.Wait()
	return ok(out)
}

func (a *API) doctorOf(ctx context.Context, id task.NodeID) *task.DoctorView {
	if id == a.cfg.Self {
		return a.cfg.Doctor.Doctor(ctx)
	}
	bound, cancel := transport.WithTimeout(ctx, a.clock, doctorWait)
	defer cancel()
	var r transport.DoctorReply
	if err := a.cfg.Peers.Call(bound, id, transport.MethodDoctor, &transport.DoctorRequest{}, &r); err != nil {
		return &task.DoctorView{Node: id, Silent: true, Why: err.Error(), Findings: []task.Finding{}}
	}
	return &r.View
}
