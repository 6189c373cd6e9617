package cli

import (
	"context"
	"fmt"
	"maps"
	"net/url"

	"lanjobs/task"
)

// eventsLimit is how many events are asked for at once.
const eventsLimit = 1000

// eventCursor is a place in the events of a cluster: all up to (index, n) have passed it. Whatever a node sends twice, after a
// change of leader or at the edge of a page, passes once.
type eventCursor struct {
	index uint64
	n     int
}

// newest is the place behind all events so far.
func newest(ctx context.Context, cl *client) (eventCursor, error) {
	var l task.List[task.Event]
	var c eventCursor
	err := cl.get(ctx, "/v1/events", url.Values{"tail": {"1"}}, &l)
	for _, e := range l.Items {
		c.pass(e)
	}
	return c, err
}

// pass tells whether an event is new, and moves behind it.
func (c *eventCursor) pass(e task.Event) bool {
	if e.Index < c.index || e.Index == c.index && c.index > 0 && e.N <= c.n {
		return false
	}
	c.index, c.n = e.Index, e.N
	return true
}

// after is the cursor as the API has it.
func (c *eventCursor) after() string {
	if c.index == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d", c.index, c.n)
}

// read gives every event after the cursor to do, page by page.
func (c *eventCursor) read(ctx context.Context, cl *client, q url.Values, do func(task.Event) error) error {
	q = maps.Clone(q)
	q.Set("limit", fmt.Sprint(eventsLimit))
	for {
		if after := c.after(); after != "" {
			q.Set("after", after)
		}
		var l task.List[task.Event]
		if err := cl.get(ctx, "/v1/events", q, &l); err != nil {
			return err
		}
		fresh := false
		for _, e := range l.Items {
			if !c.pass(e) {
				continue
			}
			fresh = true
			if err := do(e); err != nil {
				return err
			}
		}
		if !fresh || l.Next == "" {
			return nil
		}
	}
}
