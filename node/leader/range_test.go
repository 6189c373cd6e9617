package leader

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// R35: a cursor is committed under the lease, and its answer is what the shard has from then on.
func TestCursorOfARange(t *testing.T) {
	lead(t, func(o *office) {
		st := task.StageSpec{Name: "main", Shards: 2, Range: &task.RangeSpec{End: 100, Size: 50}, When: task.WhenSuccess, Run: "x",
			Lease: task.DefaultLease(task.Minute), Retry: task.DefaultRetry()}
		data, _ := json.Marshal(task.Spec{Name: "x", Queue: "default", Retain: task.Day, Stages: []task.StageSpec{st}})
		if r, err := o.hand(fsm.SubmitJob{Spec: data, Digest: data}); err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		as := o.poll(4).Assignments
		if len(as) != 2 {
			t.Fatalf("%+v", as)
		}
		a := as[1]
		whole := task.ShardRange{Start: 50, End: 100}
		if a.Range == nil || *a.Range != whole || a.Of != 2 {
			t.Errorf("assigned %+v", a)
		}
		ask := func(from task.NodeID, q transport.RangeRequest) (task.ShardRange, error) {
			var r transport.RangeReply
			err := o.try(from, transport.MethodRange, &q, &r)
			return r.Range, err
		}
		at := func(cursor int64) transport.RangeRequest {
			return transport.RangeRequest{Ref: a.Ref(), Token: a.Token, Cursor: cursor, HasCursor: true}
		}
		if got, err := ask("b", transport.RangeRequest{Ref: a.Ref(), Token: a.Token}); err != nil || got != whole {
			t.Errorf("asked: %v, %v", got, err)
		}
		if got, err := ask("b", at(60)); err != nil || got != whole {
			t.Errorf("cursor: %v, %v", got, err)
		}
		if r, err := o.l.Propose(context.Background(), &fsm.SplitShard{Ref: a.Ref(), Token: a.Token}); err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		half, err := ask("b", at(70))
		if err != nil || half.Start != 50 || half.End <= 70 || half.End >= 100 {
			t.Errorf("split: %v, %v", half, err)
		}
		for name, q := range map[string]transport.RangeRequest{"repeat": at(70), "asked": {Ref: a.Ref(), Token: a.Token}} {
			if got, err := ask("b", q); err != nil || got != half {
				t.Errorf("%s: %v, %v, want %v", name, got, err, half)
			}
		}
		stale := at(80)
		stale.Token++
		if _, err := ask("b", stale); !errors.Is(err, task.ErrStaleToken) {
			t.Errorf("another token: %v", err)
		}
		for _, ref := range []task.ShardRef{{Job: a.Job, Stage: 1}, {Job: a.Job, Stage: -1}, {Job: a.Job, Shard: 99}, {Job: a.Job, Shard: -1}} {
			if _, err := ask("b", transport.RangeRequest{Ref: ref, Token: a.Token}); !errors.Is(err, task.ErrNotFound) {
				t.Errorf("%v: %v", ref, err)
			}
		}
		if _, err := ask("c", transport.RangeRequest{Ref: a.Ref(), Token: a.Token}); !errors.Is(err, task.ErrStaleToken) {
			t.Errorf("a stranger: %v", err)
		}
	})
}
