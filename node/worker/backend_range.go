package worker

import (
	"context"

	"lanjobs/task"
	"lanjobs/transport"
)

// Range says how far a task is in its range, nothing from cursor on being begun, and gives what it has from now on; with nil it only
// asks (R35). A cursor is a write under the lease: a stale holder moves nothing.
func (w *Worker) Range(ctx context.Context, as *task.Assignment, cursor *int64, request task.RequestID) (task.ShardRange, error) {
	req := &transport.RangeRequest{Ref: as.Ref(), Token: as.Token}
	var reply transport.RangeReply
	if cursor == nil {
		err := w.read(ctx, as, transport.MethodRange, req, &reply)
		return reply.Range, err
	}
	a, err := w.holder(as)
	if err != nil {
		return reply.Range, err
	}
	if request == "" {
		request = w.book.newRequest(a, w.cfg.Incarnation)
	}
	req.Cursor, req.HasCursor, req.RequestID = *cursor, true, request
	err = w.write(ctx, as, transport.MethodRange, req, &reply)
	return reply.Range, err
}
