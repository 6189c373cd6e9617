package leader

import (
	"context"
	"fmt"
	"strings"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// What running tasks ask for, each under the token of its lease.

func (t *term) checkpoint(ctx context.Context, _ task.NodeID, q *transport.CheckpointRequest) (*transport.Ack, error) {
	r, err := t.commit(ctx, &fsm.Checkpoint{Ref: q.Ref, Token: q.Token, Seq: q.Seq, Data: q.Data})
	return &transport.Ack{Seq: r.Version}, err
}

func (t *term) output(ctx context.Context, _ task.NodeID, q *transport.OutputRequest) (*transport.Ack, error) {
	_, err := t.commit(ctx, &fsm.PutOutput{Ref: q.Ref, Token: q.Token, RequestID: q.RequestID, Output: q.Output})
	return &transport.Ack{}, err
}

func (t *term) statePut(ctx context.Context, _ task.NodeID, q *transport.StatePutRequest) (*transport.StateValue, error) {
	r, err := t.commit(ctx, &fsm.PutState{Ref: q.Ref, Token: q.Token, RequestID: q.RequestID, Key: q.Key, Value: q.Value, IfVersion: q.IfVersion})
	return &transport.StateValue{Version: r.Version}, err
}

// reader gives the job of a running attempt to f. The token must be a lease of the state that answers: so the state is at
// least as new as the asker's grant, even if another leader has been elected since.
func (t *term) reader(from task.NodeID, job task.JobID, tok task.Token, f func(*fsm.Job) error) error {
	err := error(task.NewProblem(task.ErrStaleToken, task.ErrStaleToken.Error(), ""))
	t.cfg.Log.Read(func(s *fsm.State) {
		l := s.Lease(tok)
		if l != nil && l.Ref.Job == job && s.NodeByPlace(l.Node).Info.ID == from {
			err = f(s.Job(job))
		}
	})
	return err
}

// maxInputsBytes bounds the outputs that one answer to a task carries.
const maxInputsBytes = transport.MaxMessageBytes / 2

// inputBytes is about what an input takes in an answer beside its texts.
const inputBytes = 32

func (t *term) inputs(_ context.Context, from task.NodeID, q *transport.InputsRequest) (*transport.InputsReply, error) {
	reply := &transport.InputsReply{}
	err := t.reader(from, q.Job, q.Token, func(j *fsm.Job) error {
		stage := j.Spec.Stage(q.Stage)
		if stage < 0 {
			names := make([]string, len(j.Spec.Stages))
			for i := range j.Spec.Stages {
				names[i] = j.Spec.Stages[i].Name
			}
			return task.NewProblem(task.ErrNotFound, fmt.Sprintf("this job has no stage %q", q.Stage), "Its stages: "+strings.Join(names, ", "))
		}
		st := &j.Stages[stage]
		bytes := 0
		for k := range st.Len() {
			if bytes > maxInputsBytes {
				return task.NewProblem(task.ErrTooLarge, fmt.Sprintf("the outputs of stage %q hold more than %d MiB together", q.Stage, maxInputsBytes>>20),
					"Ask for one of them by its name, or register the names of files instead of their contents.")
			}
			sh := st.At(k)
			if q.Missing {
				if sh.State != task.ShardSucceeded {
					bytes += inputBytes
					reply.Inputs = append(reply.Inputs, transport.Input{Shard: k, Name: "missing", Value: sh.State.String()})
				}
				continue
			}
			for _, kv := range sh.Outputs() {
				if q.Name == "" || kv.Name == q.Name {
					bytes += inputBytes + len(kv.Name) + len(kv.Value)
					reply.Inputs = append(reply.Inputs, transport.Input{Shard: k, Name: kv.Name, Value: kv.Value})
				}
			}
		}
		return nil
	})
	return reply, err
}

func (t *term) stateGet(_ context.Context, from task.NodeID, q *transport.StateGetRequest) (*transport.StateValue, error) {
	reply := &transport.StateValue{}
	err := t.reader(from, q.Job, q.Token, func(j *fsm.Job) error {
		reply.Value, reply.Version = j.StateValue(q.Key)
		return nil
	})
	return reply, err
}

func (t *term) setProgress(_ context.Context, from task.NodeID, q *transport.ProgressRequest) (*transport.Ack, error) {
	if len(q.Text) > task.MaxMessageLength {
		return nil, task.NewProblem(task.ErrTooLarge, fmt.Sprintf("a progress text holds at most %d bytes", task.MaxMessageLength), "")
	}
	err := t.reader(from, q.Ref.Job, q.Token, func(*fsm.Job) error { return nil })
	if err == nil {
		t.sessions.setProgress(q.Token, q.Text)
	}
	return &transport.Ack{}, err
}

// cursor notes how far a running shard of a range is, and gives what it has from now on (R35). Without a cursor it only reads.
func (t *term) cursor(ctx context.Context, from task.NodeID, q *transport.RangeRequest) (*transport.RangeReply, error) {
	if q.HasCursor {
		r, err := t.commit(ctx, &fsm.Cursor{Ref: q.Ref, Token: q.Token, Cursor: q.Cursor, RequestID: q.RequestID})
		return &transport.RangeReply{Range: r.Range}, err
	}
	reply := &transport.RangeReply{}
	err := t.reader(from, q.Ref.Job, q.Token, func(j *fsm.Job) error {
		now, ok := task.ShardRange{}, false
		if j.Shard(q.Ref.Stage, q.Ref.Shard) != nil {
			now, ok = j.RangeOf(q.Ref.Stage, q.Ref.Shard)
		}
		if !ok {
			return task.NewProblem(task.ErrNotFound, fmt.Sprintf("shard %d has no range", q.Ref.Shard), "")
		}
		reply.Range = now
		return nil
	})
	return reply, err
}
