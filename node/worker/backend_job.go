package worker

import (
	"bytes"
	"context"
	"strconv"

	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

// Inputs reads what the shards of an earlier stage registered. Only a holder may ask: a task that lost its lease shall hear
// of it at every turn.
func (w *Worker) Inputs(ctx context.Context, as *task.Assignment, stage, name string, missing bool) ([]runner.Input, error) {
	var reply transport.InputsReply
	if err := w.read(ctx, as, transport.MethodInputs, &transport.InputsRequest{Job: as.Job, Token: as.Token, Stage: stage, Name: name, Missing: missing}, &reply); err != nil {
		return nil, err
	}
	out := make([]runner.Input, len(reply.Inputs))
	for i, in := range reply.Inputs {
		out[i] = runner.Input{Shard: in.Shard, Name: in.Name, Value: in.Value}
	}
	return out, nil
}

// StateGet reads a shared key of the job with its version (R12).
func (w *Worker) StateGet(ctx context.Context, as *task.Assignment, key string) (value []byte, version uint64, err error) {
	var reply transport.StateValue
	err = w.read(ctx, as, transport.MethodStateGet, &transport.StateGetRequest{Job: as.Job, Token: as.Token, Key: key}, &reply)
	return reply.Value, reply.Version, err
}

// pendingPut is the last write of a shared key without a request id of the task's own whose outcome is unknown. The same
// write again is a repeat and carries the same request id: a conditional write that did arrive must not then be refused
// because of itself.
type pendingPut struct {
	id        task.RequestID
	key       string
	value     []byte
	ifVersion *uint64
}

// Output registers an output under the lease. The same request id again is a repeat and changes nothing; without one each
// call is a request of its own.
func (w *Worker) Output(ctx context.Context, as *task.Assignment, kv task.KV, request task.RequestID) error {
	a, err := w.holder(as)
	if err != nil {
		return err
	}
	if request == "" {
		request = w.book.newRequest(a, w.cfg.Incarnation)
	}
	req := &transport.OutputRequest{Ref: as.Ref(), Token: as.Token, RequestID: request, Output: kv}
	return w.write(ctx, as, transport.MethodOutput, req, &transport.Ack{})
}

// StatePut writes a shared key under the lease, if its version is the expected one (R12). The same request id again is a
// repeat and gets the first one's answer; without one the same write after an unknown outcome is taken for a repeat.
func (w *Worker) StatePut(ctx context.Context, as *task.Assignment, key string, value []byte, ifVersion *uint64, request task.RequestID) (uint64, error) {
	a, err := w.holder(as)
	if err != nil {
		return 0, err
	}
	req := &transport.StatePutRequest{Ref: as.Ref(), Token: as.Token, RequestID: request, Key: key, Value: value, IfVersion: ifVersion}
	if request == "" {
		req.RequestID = w.book.beginPut(a, w.cfg.Incarnation, key, value, ifVersion)
	}
	var reply transport.StateValue
	err = w.write(ctx, as, transport.MethodStatePut, req, &reply)
	if err == nil || !retryable(err) {
		w.book.endPut(a, req.RequestID)
	}
	return reply.Version, err
}

// newRequest gives an id that no other write of the attempt has, also none that an earlier agent of this node made.
func (b *book) newRequest(a *attempt, incarnation uint64) task.RequestID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return a.nextRequest(incarnation)
}

func (a *attempt) nextRequest(incarnation uint64) task.RequestID {
	a.requests++
	return task.RequestID(string(a.Execution()) + "-" + strconv.FormatUint(incarnation, 36) + "-" + strconv.FormatUint(a.requests, 36))
}

func (b *book) beginPut(a *attempt, incarnation uint64, key string, value []byte, ifVersion *uint64) task.RequestID {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := &a.put
	if p.id != "" && p.key == key && bytes.Equal(p.value, value) && equal(p.ifVersion, ifVersion) {
		return p.id
	}
	*p = pendingPut{id: a.nextRequest(incarnation), key: key, value: bytes.Clone(value), ifVersion: ifVersion}
	return p.id
}

func (b *book) endPut(a *attempt, id task.RequestID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.put.id == id {
		a.put = pendingPut{}
	}
}

func equal(a, b *uint64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
