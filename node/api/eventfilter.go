package api

import (
	"fmt"
	"strconv"
	"strings"

	"lanjobs/node/observe"
	"lanjobs/task"
)

// eventFilter reads which events are asked for. A job or machine that is not (or no longer) there is taken at its word:
// the audit log outlives both.
func (a *API) eventFilter(q *request) (f observe.Filter, err error) {
	if text := q.query.Get("from"); text != "" {
		if f.From, err = strconv.ParseUint(text, 10, 64); err != nil {
			return f, invalid("from "+shown(text)+" is not the index of an entry", "")
		}
	}
	if text := q.query.Get("after"); text != "" {
		if f.After, err = parsePosition(text); err != nil {
			return f, err
		}
	}
	if f.Since, err = q.moment("since", a.clock.Wall()); err != nil {
		return f, err
	}
	if f.Limit, err = q.page(); err != nil {
		return f, err
	}
	tail, err := q.count("tail", 0, maxPage)
	if err != nil {
		return f, err
	}
	if tail > 0 {
		f.Tail, f.Limit = true, tail
	}
	kinds, err := q.list("kind", nil)
	if err != nil {
		return f, err
	}
	for _, k := range kinds {
		k = strings.TrimSuffix(k, ".*")
		if err := eventKind(k); err != nil {
			return f, err
		}
		f.Kinds = append(f.Kinds, task.EventKind(k))
	}
	return f, a.eventSubject(q, &f)
}

// eventSubject reads job, which may be JOB/STAGE/SHARDS, stage, shards and node.
func (a *API) eventSubject(q *request, f *observe.Filter) error {
	var ref task.Ref
	var err error
	if text := q.query.Get("job"); text != "" {
		if ref, err = task.ParseRef(text); err != nil {
			return invalid(err.Error(), "")
		}
	}
	f.Job, f.Stage, f.Shards, f.Node = task.JobID(ref.Job), ref.Stage, ref.Shards, q.query.Get("node")
	if text := q.query.Get("stage"); text != "" {
		f.Stage = text
	}
	shards, err := q.ranges("shards")
	if err != nil {
		return err
	}
	if len(shards) > 0 {
		f.Shards = shards
	}
	if len(f.Shards) > maxValues {
		return invalid(fmt.Sprintf("more than %d ranges of shards", maxValues), "")
	}
	a.look(q, func(v *view) {
		if f.Job != "" {
			if j, err := v.findJob(ref.Job); err == nil {
				f.Job = j.ID
			}
		}
		if f.Node != "" {
			if n, err := v.findNode(f.Node); err == nil {
				f.Node = string(n.Info.ID)
			}
		}
	})
	return nil
}

// parsePosition reads what List.Next gave: INDEX.N.
func parsePosition(text string) (p observe.Position, err error) {
	index, n, _ := strings.Cut(text, ".")
	var err1, err2 error
	p.Index, err1 = strconv.ParseUint(index, 10, 64)
	p.N, err2 = strconv.Atoi(n)
	if err1 != nil || err2 != nil {
		return p, invalid("after "+shown(text)+" is not what the page before gave as next", "")
	}
	return p, nil
}
