package cli

import (
	"context"
	"maps"
	"net/url"
	"strings"

	"lanjobs/task"
)

// pageSize is how many shards or jobs are asked for at once.
const pageSize = 1000

// shardQuery asks for the shards that a reference means.
func shardQuery(ref task.Ref) url.Values {
	q := url.Values{}
	if ref.Stage != "" {
		q.Set("stage", ref.Stage)
	}
	if len(ref.Shards) > 0 {
		q.Set("shards", formatRanges(ref.Shards))
	}
	return q
}

func formatRanges(ranges []task.Range) string {
	var words []string
	for _, r := range ranges {
		if r.First == r.Last {
			words = append(words, itoa(r.First))
		} else {
			words = append(words, itoa(r.First)+"-"+itoa(r.Last))
		}
	}
	return strings.Join(words, ",")
}

// eachShard goes through all shards of a job, page by page: a job may have a million.
func eachShard(ctx context.Context, cl *client, job task.JobID, q url.Values, do func(task.ShardView) error) error {
	return eachPage(ctx, cl, "/v1/jobs/"+url.PathEscape(string(job))+"/shards", q, do)
}

// noneOf asks for the first shard of a reference that has given none: whoever names one that does not exist is told so.
func noneOf(ctx context.Context, cl *client, job task.JobID, ref task.Ref) error {
	if len(ref.Shards) == 0 {
		return nil
	}
	var v task.ShardView
	return cl.get(ctx, "/v1/jobs/"+url.PathEscape(string(job))+"/shards/"+url.PathEscape(ref.Stage)+"/"+itoa(ref.Shards[0].First), nil, &v)
}

// eachPage goes through a list of any length.
func eachPage[T any](ctx context.Context, cl *client, path string, q url.Values, do func(T) error) error {
	_, err := pages(ctx, cl, path, q, do)
	return err
}

// pages also gives the index of the first page.
func pages[T any](ctx context.Context, cl *client, path string, q url.Values, do func(T) error) (index uint64, err error) {
	if q = maps.Clone(q); q == nil { // the caller asks the same again, from the first page on
		q = url.Values{}
	}
	q.Set("limit", itoa(pageSize))
	for {
		var l task.List[T]
		if err := cl.get(ctx, path, q, &l); err != nil {
			return index, err
		}
		if index == 0 {
			index = l.Index
		}
		for _, item := range l.Items {
			if err := do(item); err != nil {
				return index, err
			}
		}
		if l.Next == "" || l.Next == q.Get("after") {
			return index, nil
		}
		q.Set("after", l.Next)
	}
}

// gather gives a whole list.
func gather[T any](ctx context.Context, cl *client, path string, q url.Values, keep func(T) bool) (task.List[T], error) {
	var items []T
	index, err := pages(ctx, cl, path, q, func(item T) error {
		if keep == nil || keep(item) {
			items = append(items, item)
		}
		return nil
	})
	return list("", index, items), err
}
