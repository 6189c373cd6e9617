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

// pendingPut is the last write of a shared key whose outcome is unknown. The same write again is a repeat and carries the
// same request id: the helper repeats by itself after "no leader", and a conditional write that did arrive must not then
// be refused because of itself.
type pendingPut struct {
	id        task.RequestID
	key       string
	value     []byte
	ifVersion *uint64
	n         uint64
}

// StatePut writes a shared key under the lease, if its version is the expected one (R12).
func (w *Worker) StatePut(ctx context.Context, as *task.Assignment, key string, value []byte, ifVersion *uint64) (uint64, error) {
	a, err := w.holder(as)
	if err != nil {
		return 0, err
	}
	req := &transport.StatePutRequest{Ref: as.Ref(), Token: as.Token, Key: key, Value: value, IfVersion: ifVersion}
	req.RequestID = w.book.beginPut(a, w.cfg.Incarnation, key, value, ifVersion)
	var reply transport.StateValue
	err = w.write(ctx, as, transport.MethodStatePut, req, &reply)
	if err == nil || !retryable(err) {
		w.book.endPut(a, req.RequestID)
	}
	return reply.Version, err
}

func (b *book) beginPut(a *attempt, incarnation uint64, key string, value []byte, ifVersion *uint64) task.RequestID {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := &a.put
	if p.id != "" && p.key == key && bytes.Equal(p.value, value) && equal(p.ifVersion, ifVersion) {
		return p.id
	}
	p.n++
	id := string(a.Execution()) + "-" + strconv.FormatUint(incarnation, 36) + "-" + strconv.FormatUint(p.n, 36)
	*p = pendingPut{id: task.RequestID(id), key: key, value: bytes.Clone(value), ifVersion: ifVersion, n: p.n}
	return p.id
}

func (b *book) endPut(a *attempt, id task.RequestID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.put.id == id {
		a.put = pendingPut{n: a.put.n}
	}
}

func equal(a, b *uint64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
