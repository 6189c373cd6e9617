package api

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

var shardStates = []string{stateWaiting, task.ShardPending.String(), stateBackoff, task.ShardAssigned.String(), task.ShardRunning.String(),
	task.ShardSucceeded.String(), task.ShardFailed.String(), task.ShardCancelled.String(), stateSkipped}

// shardQuery is which shards of a job are asked for, and how much of them.
type shardQuery struct {
	stage         string
	shards        []task.Range
	states        []string
	attempts, why bool
	limit         int
	after         task.ShardRef // Stage -1: from the beginning
}

func readShardQuery(q *request) (s shardQuery, err error) {
	s.stage, s.after.Stage = q.query.Get("stage"), -1
	if s.shards, err = q.ranges("shards"); err != nil {
		return s, err
	}
	if s.states, err = q.list("state", shardStates); err != nil {
		return s, err
	}
	if s.attempts, err = q.flag("attempts"); err != nil {
		return s, err
	}
	if s.why, err = q.flag("why"); err != nil {
		return s, err
	}
	if text := q.query.Get("after"); text != "" {
		stage, shard, _ := strings.Cut(text, ".")
		var err1, err2 error
		s.after.Stage, err1 = strconv.Atoi(stage)
		s.after.Shard, err2 = strconv.Atoi(shard)
		if err1 != nil || err2 != nil || s.after.Stage < 0 {
			return s, invalid("after "+shown(text)+" is not what the page before gave as next", "")
		}
	}
	s.limit, err = q.page()
	return s, err
}

// getShard answers GET /v1/jobs/{ref}/shards/{stage}/{n}: one shard in full, with its attempts and why it does not run.
func (a *API) getShard(_ context.Context, q *request) (*reply, error) {
	n, err := q.shardNumber()
	if err != nil {
		return nil, err
	}
	var out task.ShardView
	err = a.onJob(q, func(v *view, j *fsm.Job) error {
		i := j.Spec.Stage(q.value("stage"))
		switch {
		case i < 0:
			return noStage(j, q.value("stage"))
		case j.Shard(i, n) == nil:
			return noShard(j, i, n)
		}
		out = v.shard(j, i, n, true)
		out.Why, _ = v.stage(j, i).why(n)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ok(out)
}

func (q *request) shardNumber() (int, error) {
	n, err := strconv.Atoi(q.value("n"))
	if err != nil {
		return 0, invalid("shard "+shown(q.value("n"))+" is not a number", "")
	}
	return n, nil
}

func noShard(j *fsm.Job, i, shard int) error {
	text := "the stage has none yet"
	if n := j.Stages[i].Len(); n > 0 {
		text = fmt.Sprintf("the stage has shards 0 to %d", n-1)
	}
	return task.NewProblem(task.ErrNotFound, fmt.Sprintf("%s/%s/%d does not exist: %s.", j.ID, j.Spec.Stages[i].Name, shard, text), "")
}

// listShards answers GET /v1/jobs/{ref}/shards. A page ends early when its shards are large.
func (a *API) listShards(_ context.Context, q *request) (*reply, error) {
	s, err := readShardQuery(q)
	if err != nil {
		return nil, err
	}
	out := task.List[task.ShardView]{Kind: "ShardList", Items: []task.ShardView{}}
	err = a.onJob(q, func(v *view, j *fsm.Job) error {
		out.Index = v.Index
		wanted, err := shardWanted(j, s.stage, s.shards)
		if err != nil {
			return err
		}
		bytes := 0
		for i := max(s.after.Stage, 0); i < len(j.Stages); i++ {
			first := 0
			if i == s.after.Stage {
				first = max(s.after.Shard+1, 0)
			}
			reasons := v.stage(j, i)
			for k := first; k < j.Stages[i].Len(); k++ {
				sh := j.Stages[i].At(k)
				if !wanted(i, k) || len(s.states) > 0 && !slices.Contains(s.states, v.shardState(j, i, sh)) {
					continue
				}
				if len(out.Items) >= s.limit || bytes > pageBytes {
					out.Next = last(j, out.Items)
					return nil
				}
				one := v.shard(j, i, k, s.attempts)
				if s.why {
					one.Why, _ = reasons.why(k)
				}
				out.Items = append(out.Items, one)
				bytes += weigh(&one)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ok(out)
}

// last is where the next page goes on.
func last(j *fsm.Job, items []task.ShardView) string {
	s := &items[len(items)-1]
	return fmt.Sprintf("%d.%d", j.Spec.Stage(s.Stage), s.Shard)
}

// whyJob answers GET /v1/jobs/{ref}/why (R41).
func (a *API) whyJob(_ context.Context, q *request) (*reply, error) {
	s, err := readShardQuery(q)
	if err != nil {
		return nil, err
	}
	out := task.List[transport.WhyView]{Kind: "WhyList"}
	err = a.onJob(q, func(v *view, j *fsm.Job) error {
		out.Index = v.Index
		wanted, err := shardWanted(j, s.stage, s.shards)
		if err == nil {
			out.Items = v.whyViews(j, wanted)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return ok(out)
}
