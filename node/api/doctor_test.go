package api

import (
	"context"
	"testing"

	"lanjobs/task"
	"lanjobs/transport"
)

// body is the machine's process and its doctor.
type body struct{ stops int }

func (b *body) Process() transport.ProcessView {
	return transport.ProcessView{PID: 7, Version: "1.4.0"}
}
func (b *body) Stop() { b.stops++ }
func (b *body) Doctor(context.Context) *task.DoctorView {
	return &task.DoctorView{Node: "n1", Name: "mini-1", Findings: []task.Finding{{Check: "disk", Level: task.LevelOK, Text: "fine"}}}
}

func TestProcessAndDoctor(t *testing.T) {
	c := newCluster(t)
	c.get("/v1/process").problem(404, "not_found", "no process of its own")
	c.ask("POST", "/v1/process/stop", "{}").problem(404, "not_found", "no process of its own")
	b := &body{}
	c.api.cfg.Process, c.api.cfg.Doctor = b, b
	var p transport.ProcessView
	if c.get("/v1/process").ok(&p); p.PID != 7 || b.stops != 0 {
		t.Errorf("%+v", p)
	}
	if c.ask("POST", "/v1/process/stop", "{}").ok(&p); b.stops != 1 {
		t.Error("not stopped")
	}
	c.call = func(_ context.Context, to task.NodeID, method transport.Method, _, reply any) error {
		if to == "n3" && method == transport.MethodDoctor {
			reply.(*transport.DoctorReply).View = task.DoctorView{Node: "n3", Name: "nas"}
			return nil
		}
		return task.NewProblem(task.ErrNoLeader, "cannot reach "+string(to), "")
	}
	var l task.List[task.DoctorView]
	if c.ask("POST", "/v1/doctor", "{}").ok(&l); len(l.Items) != 1 || l.Items[0].Name != "mini-1" || l.Items[0].Count(task.LevelOK) != 1 {
		t.Errorf("%+v", l)
	}
	c.ask("POST", "/v1/doctor", `{"nodes":["n1","n3","n4"]}`).ok(&l)
	if len(l.Items) != 3 || l.Items[1].Name != "nas" || !l.Items[2].Silent || l.Items[2].Why != "cannot reach n4" || l.Items[2].Node != "n4" {
		t.Errorf("%+v", l)
	}
}
