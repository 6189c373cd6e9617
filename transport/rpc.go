package transport

import (
	"context"

	"lanjobs/task"
)

// Method names one kind of call between nodes.
type Method string

// The calls. A node calls the leader for all but the last ones.
const (
	MethodRegister   Method = "register"
	MethodPoll       Method = "poll"
	MethodRenew      Method = "renew"
	MethodReport     Method = "report"
	MethodCheckpoint Method = "checkpoint"
	MethodOutput     Method = "output"
	MethodInputs     Method = "inputs"
	MethodStateGet   Method = "state.get"
	MethodStatePut   Method = "state.put"
	MethodProgress   Method = "progress"
	MethodRange      Method = "range"
	MethodSpec       Method = "spec"
	MethodLeave      Method = "leave"    // the calling node leaves the cluster for good
	MethodSleep      Method = "sleep"    // to the leader: the calling node's machine goes to sleep
	MethodWake       Method = "wake"     // to any member: send the packets that wake a machine, on its networks
	MethodAPI        Method = "api"      // a client's API request forwarded to the leader
	MethodReadLog    Method = "log.read" // to the node that ran an attempt: its output
	MethodWho        Method = "who"      // to any member: who leads, by what it knows
	MethodPing       Method = "ping"     // to a member with a log: how far it is
	MethodJoin       Method = "join"     // to the leader: a joiner's request that came to another member
	MethodLogin      Method = "login"    // to the leader: the same of who wants to be a client
)

// Caller sends one call to a node and decodes the answer into reply (both MessagePack by Encode and Decode). A call to the
// node itself goes through the same code without a network. Errors from the far side are *task.Problem; a node that cannot be
// reached or does not lead gives task.ErrNoLeader.
type Caller interface {
	Call(ctx context.Context, to task.NodeID, method Method, request, reply any) error
}

// Handler answers calls. from is proven by the peer's certificate. body is MessagePack; the answer is encoded by the caller
// of ServeCall.
type Handler interface {
	ServeCall(ctx context.Context, from task.NodeID, method Method, body []byte) (reply any, err error)
}

// Answer decodes the request of one call and has its method answer it: the shape of all that serves calls. s is whoever serves.
func Answer[S, Q, R any](ctx context.Context, s S, from task.NodeID, body []byte, f func(S, context.Context, task.NodeID, *Q) (*R, error)) (any, error) {
	q := new(Q)
	if err := Decode(body, q); err != nil {
		return nil, task.NewProblem(task.ErrInvalid, "call cannot be read: "+err.Error(), "")
	}
	r, err := f(s, ctx, from, q)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// HandlerFunc is a Handler of one function.
type HandlerFunc func(ctx context.Context, from task.NodeID, method Method, body []byte) (any, error)

// ServeCall calls f.
func (f HandlerFunc) ServeCall(ctx context.Context, from task.NodeID, method Method, body []byte) (any, error) {
	return f(ctx, from, method, body)
}
