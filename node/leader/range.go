package leader

import (
	"context"
	"fmt"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

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
