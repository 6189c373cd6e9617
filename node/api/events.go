package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

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

// listEvents answers GET /v1/events (R37), in order; without from, after, since and tail from the oldest that is kept.
func (a *API) listEvents(ctx context.Context, q *request) (*reply, error) {
	f, err := a.eventFilter(q)
	if err != nil {
		return nil, err
	}
	if a.cfg.Audit == nil {
		return nil, a.noLeader()
	}
	events, more, err := a.cfg.Audit.Query(ctx, f)
	if err != nil {
		return nil, err
	}
	out := task.List[task.Event]{Kind: "EventList", Index: a.cfg.Audit.Last().Index, Items: events}
	if out.Items == nil {
		out.Items = []task.Event{}
	}
	if n := len(events); more && n > 0 && !f.Tail {
		out.Next = observe.At(&events[n-1]).String()
	}
	return ok(out)
}

// followEvents answers GET /v1/events?follow=1 with JSON lines until the client leaves: from where from, after or since say,
// else the newest tail= events and then what is new. An empty line is a sign of life.
func (a *API) followEvents(w http.ResponseWriter, q *request) error {
	if q.forwarded {
		return invalid("a stream is not passed on", "")
	}
	f, err := a.eventFilter(q)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(q.http.Context())
	s := &lines{w: w, control: http.NewResponseController(w)}
	var last observe.Position // before the client hears anything: what it does then is in the stream
	if a.cfg.Audit != nil {
		last = a.cfg.Audit.Last()
	}
	w.Header().Set("Content-Type", typeLines)
	w.WriteHeader(http.StatusOK)
	var beats sync.WaitGroup
	defer beats.Wait()
	defer cancel(nil)
	beats.Go(func() {
		for a.pause(ctx, beat) {
			// Whoever removes a client cuts its connections as far as this member hears of it; a member that took over a snapshot, or
			// keeps no ledger, does not hear.
			if _, err := a.identify(q.http, q.caller); errors.Is(err, task.ErrNotAllowed) {
				cancel(err)
			}
			if err := s.write(nil); err != nil {
				cancel(err)
			}
		}
	})
	if err := s.write(nil); err != nil {
		return nil // gone already
	}
	if a.cfg.Audit == nil {
		a.followLeader(ctx, q, s)
		return nil
	}
	err = a.follow(ctx, f, s, last)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errClient) {
		a.log.Warn("event stream ended", "error", err)
	}
	return nil
}

// follow streams from this member's own audit log. last is where it was before looking back: nothing falls between the two.
func (a *API) follow(ctx context.Context, f observe.Filter, s *lines, last observe.Position) error {
	switch {
	case f.Tail:
		events, _, err := a.cfg.Audit.Query(ctx, f)
		if err == nil {
			err = s.write(events)
		}
		if err != nil {
			return err
		}
		if n := len(events); n > 0 && last.Less(observe.At(&events[n-1])) {
			last = observe.At(&events[n-1])
		}
		f.From, f.After = 0, last
	case f.From == 0 && f.After == (observe.Position{}) && f.Since.IsZero():
		f.After = last
	}
	f.Tail, f.Limit = false, 0
	return a.cfg.Audit.Follow(ctx, f, s.write)
}

// followLeader streams on a member that keeps no log, by asking the leader again and again. What it asks first is what the
// client asked; then what comes after the last event it got.
func (a *API) followLeader(ctx context.Context, q *request, s *lines) {
	query := url.Values{}
	for name, values := range q.query {
		if name != "follow" {
			query[name] = values
		}
	}
	for query.Get("from")+query.Get("after")+query.Get("since")+query.Get("tail") == "" {
		if last, ok := a.askEvents(ctx, q, url.Values{"tail": {"1"}}); ok {
			query.Set("after", observe.Position{Index: last.Index, N: math.MaxInt32}.String())
		} else if !a.pause(ctx, followPoll) {
			return
		}
	}
	for {
		list, ok := a.askEvents(ctx, q, query)
		if ok {
			if s.write(list.Items) != nil {
				return
			}
			if n := len(list.Items); n > 0 {
				query.Del("from")
				query.Del("tail")
				query.Set("after", observe.At(&list.Items[n-1]).String())
			}
		}
		if (!ok || list.Next == "") && !a.pause(ctx, followPoll) || ctx.Err() != nil {
			return
		}
	}
}

// askEvents gets one page from the leader.
func (a *API) askEvents(ctx context.Context, q *request, query url.Values) (list task.List[task.Event], ok bool) {
	page := *q
	page.http = q.http.Clone(ctx)
	page.http.URL = &url.URL{Path: "/v1/events", RawQuery: query.Encode()}
	rep, err := a.forward(ctx, &page, forwardWait)
	if err != nil || rep.status != http.StatusOK || json.Unmarshal(rep.body, &list) != nil {
		return list, false // it is asked again
	}
	return list, true
}

// errClient: the client of a stream has gone.
var errClient = errors.New("the client has gone")

// lines is a stream of JSON lines.
type lines struct {
	mu      sync.Mutex // guards w: events and signs of life come from two sides
	w       http.ResponseWriter
	control *http.ResponseController
	buf     bytes.Buffer
}

// write sends events, or an empty line if there are none, and sees that they leave.
func (s *lines) write(events []task.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf.Reset()
	for i := range events {
		data, err := json.Marshal(&events[i])
		if err != nil {
			return err
		}
		s.buf.Write(data)
		s.buf.WriteByte('\n')
	}
	if len(events) == 0 {
		s.buf.WriteByte('\n')
	}
	if _, err := s.w.Write(s.buf.Bytes()); err != nil {
		return fmt.Errorf("%w: %w", errClient, err)
	}
	if err := s.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("%w: %w", errClient, err)
	}
	return nil
}
