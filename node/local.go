package node

import (
	"context"

	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

// local answers the calls that are about this machine: requests passed on to the leader, logs, joining.
type local struct{ m *machine }

// ServeCall answers one.
func (l *local) ServeCall(ctx context.Context, from task.NodeID, method transport.Method, body []byte) (any, error) {
	switch method {
	case transport.MethodAPI:
		return transport.Answer(ctx, l.m, from, body, (*machine).apiHere)
	case transport.MethodReadLog:
		return transport.Answer(ctx, l.m, from, body, (*machine).readLogHere)
	case transport.MethodTwin:
		return transport.Answer(ctx, l.m, from, body, (*machine).twinHere)
	case transport.MethodProbe:
		return transport.Answer(ctx, l.m, from, body, (*machine).probeHere)
	case transport.MethodDoctor:
		return transport.Answer(ctx, l.m, from, body, (*machine).doctorHere)
	case transport.MethodWake:
		return transport.Answer(ctx, l.m, from, body, (*machine).wakeHere)
	case transport.MethodHistory:
		return transport.Answer(ctx, l.m, from, body, (*machine).historyHere)
	case transport.MethodRejoin:
		return transport.Answer(ctx, l.m, from, body, (*machine).rejoinHere)
	case transport.MethodPair:
		return transport.Answer(ctx, l.m, from, body, (*machine).pairHere)
	case transport.MethodLogin:
		return transport.Answer(ctx, l.m, from, body, (*machine).loginHere)
	case transport.MethodJoin:
		return transport.Answer(ctx, l.m, from, body, (*machine).admitHere)
	}
	return nil, task.NewProblem(task.ErrInvalid, "unknown call "+string(method), "")
}

// apiHere answers MethodAPI.
func (m *machine) apiHere(ctx context.Context, _ task.NodeID, q *transport.APIRequest) (*transport.APIReply, error) {
	return m.api.ServeForwarded(ctx, q)
}

// readLogHere answers MethodReadLog.
func (m *machine) readLogHere(ctx context.Context, _ task.NodeID, q *transport.LogRequest) (*transport.LogReply, error) {
	p, err := m.runner.ReadLog(ctx, runner.LogQuery{Execution: q.Execution, Stream: q.Stream, From: q.From, Limit: q.Limit, Tail: q.Tail, Hold: q.Hold})
	if err != nil {
		return nil, err
	}
	return &transport.LogReply{Data: p.Data, Next: p.Next, Done: p.Done}, nil
}

// doctorHere answers MethodDoctor.
func (m *machine) doctorHere(ctx context.Context, _ task.NodeID, _ *transport.DoctorRequest) (*transport.DoctorReply, error) {
	return &transport.DoctorReply{View: *peers{m}.Doctor(ctx)}, nil
}

// pairHere answers MethodPair, on the leader.
func (m *machine) pairHere(ctx context.Context, _ task.NodeID, q *transport.PairRelay) (*transport.PairReply, error) {
	reply, err := m.pairs.Ask(ctx, q.Request, q.Remote)
	return &reply, err
}
