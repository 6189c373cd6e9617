package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

const (
	writePatience = 30 * time.Second // how long a write is repeated across changes of leader
	readPatience  = 5 * time.Second  // the same for a read
	tryTimeout    = 10 * time.Second // of one try; a stuck leader is left for its successor
	slowAfter     = 100 * time.Millisecond
	maxReplyBytes = 256 << 20
)

// client asks the API of a node, over whatever leads to it.
type client struct {
	door  http.RoundTripper
	clock task.Clock
	whom  func() string // whom it leads to, for people
	slow  func(string)  // told once when an answer takes its time, and why
	known atomic.Bool   // the node has answered before: when it is away now, it will be back
	told  atomic.Bool
}

// request is one question to the API.
type request struct {
	method string
	path   string
	query  url.Values
	kind   string // content type of the body, application/json by default
	body   []byte
	id     string        // of a write
	limit  time.Duration // of one try; tryTimeout by default
}

// get reads a view.
func (c *client) get(ctx context.Context, path string, query url.Values, reply any) error {
	return c.patiently(ctx, readPatience, request{method: http.MethodGet, path: path, query: query}, reply)
}

// write changes something. It carries one request id through all tries, so that a repeated write happens once.
func (c *client) write(ctx context.Context, r request, reply any) error {
	r.id = newRequestID()
	return c.patiently(ctx, writePatience, r, reply)
}

func newRequestID() string { return rand.Text() }

// to names whom it asks.
func (c *client) to() string {
	if c.whom == nil {
		return "the node here"
	}
	return c.whom()
}

// post is a write with a JSON body.
func (c *client) post(ctx context.Context, path string, body, reply any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.write(ctx, request{method: http.MethodPost, path: path, body: text}, reply)
}

// patch is post for a change of what is there.
func (c *client) patch(ctx context.Context, path string, body, reply any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.write(ctx, request{method: http.MethodPatch, path: path, body: text}, reply)
}

// delete is a write without a body.
func (c *client) delete(ctx context.Context, path string, query url.Values, reply any) error {
	return c.write(ctx, request{method: http.MethodDelete, path: path, query: query}, reply)
}

// patiently repeats a request while the trouble may pass: no leader, or a node that was there a moment ago.
func (c *client) patiently(ctx context.Context, patience time.Duration, r request, reply any) error {
	start, pause := c.clock.Awake(), 100*time.Millisecond
	for {
		err := c.try(ctx, r, reply)
		if err == nil || ctx.Err() != nil || !c.passing(err) {
			return err
		}
		left := patience - (c.clock.Awake() - start)
		if left <= 0 {
			return err
		}
		c.tell("no leader answers; trying again for " + length(left.Seconds()) + " …")
		if wait(ctx, c.clock, min(pause, left)) != nil {
			return err // the trouble, not the end of waiting for it to pass
		}
		pause = min(pause*2, time.Second)
	}
}

// passing tells whether the trouble may be over soon.
func (c *client) passing(err error) bool {
	if errors.Is(err, transport.ErrNoNode) || errors.Is(err, errCut) {
		return c.known.Load()
	}
	p, ok := errors.AsType[*task.Problem](err)
	return ok && p.Retryable
}

// try asks once.
func (c *client) try(ctx context.Context, r request, reply any) error {
	limit := cmp.Or(r.limit, tryTimeout)
	tryCtx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	quick := c.watchSlow()
	resp, err := c.send(tryCtx, r)
	quick()
	if err == nil {
		defer resp.Body.Close()
		err = decodeReply(resp.Body, reply)
	}
	if err != nil && ctx.Err() == nil && tryCtx.Err() != nil {
		return task.NewProblem(task.ErrNoLeader, "no answer from "+c.to()+" within "+length(limit.Seconds()), "")
	}
	return err
}

// open asks once and leaves the body to the caller: logs and event streams.
func (c *client) open(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	return c.send(ctx, request{method: http.MethodGet, path: path, query: query})
}

// errCut: a node was reached, but the connection broke before the answer was complete.
var errCut = errors.New("the connection broke")

// send is transport.APIClient with words of our own for a connection that broke.
func (c *client) send(ctx context.Context, r request) (*http.Response, error) {
	target := r.path // its parts are escaped already
	if q := r.query.Encode(); q != "" {
		target += "?" + q
	}
	var body any
	if len(r.body) > 0 {
		body = transport.Typed{Type: orElse(r.kind, "application/json"), Text: r.body}
	}
	resp, err := transport.NewAPIClient(c.door).Open(ctx, r.method, target, task.RequestID(r.id), body)
	_, answered := errors.AsType[*task.Problem](err)
	if said, ok := errors.AsType[*exitError](err); ok { // which way to go is not clear: nothing was asked
		return nil, said
	}
	switch {
	case err == nil, answered:
		c.known.Store(true)
		return resp, err
	case ctx.Err() != nil, errors.Is(err, transport.ErrNoNode), errors.Is(err, transport.ErrSocketPermission):
		return nil, err
	}
	return nil, fmt.Errorf("%w (%v)", errCut, err)
}

// watchSlow tells the person when an answer takes longer than a reaction should.
func (c *client) watchSlow() (quick func()) {
	if c.slow == nil || c.told.Load() {
		return func() {}
	}
	t, over, done := c.clock.NewTimer(slowAfter), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-t.C():
			c.tell("contacting " + c.to() + " …")
		case <-over:
		}
	}()
	return func() { t.Stop(); close(over); <-done }
}

func (c *client) tell(text string) {
	if c.slow != nil && c.told.CompareAndSwap(false, true) {
		c.slow(text)
	}
}

// replyReader reads an answer that is not one JSON value.
type replyReader func(*json.Decoder) error

func decodeReply(body io.Reader, reply any) error {
	if read, ok := reply.(replyReader); ok {
		if err := read(json.NewDecoder(io.LimitReader(body, maxReplyBytes))); err != nil {
			return fmt.Errorf("%w (%v)", errCut, err)
		}
		return nil
	}
	if reply == nil {
		_, err := io.Copy(io.Discard, body)
		return err
	}
	if err := json.NewDecoder(io.LimitReader(body, maxReplyBytes)).Decode(reply); err != nil {
		return fmt.Errorf("%w (%v)", errCut, err)
	}
	return nil
}

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
