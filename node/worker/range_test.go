package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// A cursor is a write under the lease with a request id; asking is none, and its refusal proves nothing.
func TestRange(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n, a := l.held(task.DefaultTTL)
		var got []transport.RangeRequest
		l.g.look(func() { l.g.onRange = func(r transport.RangeRequest) { got = append(got, r) } })
		ctx, at := context.Background(), int64(7)
		for _, call := range []struct {
			cursor *int64
			id     task.RequestID
		}{{&at, "mine"}, {&at, ""}, {nil, ""}} {
			if now, err := n.w.Range(ctx, a, call.cursor, call.id); err != nil || now != (task.ShardRange{Start: 1, End: 9}) {
				t.Errorf("%v, %v", now, err)
			}
		}
		if len(got) != 3 || got[0].RequestID != "mine" || got[1].RequestID == "" || got[1].RequestID == "mine" || got[2].HasCursor {
			t.Fatalf("%+v", got)
		}
		if r := got[0]; r.Ref != a.Ref() || r.Token != a.Token || r.Cursor != 7 || !r.HasCursor {
			t.Errorf("%+v", r)
		}
		l.g.look(func() { l.g.end(l.g.shards[0], task.EndLeaseExpired, task.ShardFailed) })
		if _, err := n.w.Range(ctx, a, &at, ""); !errors.Is(err, task.ErrStaleToken) {
			t.Errorf("stale: %v", err)
		}
		if s := n.r.stopped(); len(s) != 1 || s[0].reason != task.StopFenced {
			t.Errorf("a refused cursor ends the attempt: %+v", s)
		}
		l.sleep(task.DefaultTTL.Duration() + time.Minute)
		if _, err := n.w.Range(ctx, a, &at, ""); !errors.Is(err, task.ErrStaleToken) || len(got) != 3 {
			t.Errorf("after the deadline: %v, %d requests", err, len(got))
		}
	})
}
