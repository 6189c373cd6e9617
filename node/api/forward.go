package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// headerVia tells the leader which member the client talks to.
const headerVia = "Lanjobs-Via"

// passed are the headers of a request that its answer depends on.
var passed = []string{"Content-Type", "Idempotency-Key", transport.HeaderRequestID}

// forward has the leader answer a request. task.ErrNoLeader: none could be asked, or its answer did not come in time.
func (a *API) forward(ctx context.Context, q *request, wait time.Duration) (*reply, error) {
	r := &transport.APIRequest{HTTPMethod: q.http.Method, Path: q.http.URL.RequestURI(), Body: q.body, Hops: 1,
		By: q.caller.By, Role: string(q.caller.Role), Client: q.caller.Client, ClientKey: q.caller.Key,
		Header: map[string]string{headerVia: string(a.cfg.Self)}}
	for _, name := range passed {
		if v := q.http.Header.Get(name); v != "" {
			r.Header[name] = v
		}
	}
	bound, cancel := transport.WithTimeout(ctx, a.clock, wait)
	defer cancel()
	rep, err := a.cfg.Peers.Forward(bound, r)
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, fmt.Errorf("%w: %w", task.ErrNoLeader, context.Cause(ctx)) // the caller of forward knows whether its own time is over
	case bound.Err() != nil && err != nil:
		return nil, fmt.Errorf("%w: it did not answer in time", task.ErrNoLeader)
	case err != nil:
		return nil, err
	case rep == nil || rep.Status < 200 || rep.Status > 599:
		return nil, task.NewProblem(errInternal, "the leader's answer cannot be read", "")
	}
	return &reply{status: rep.Status, header: rep.Header, body: rep.Body}, nil
}

type forwardedKey struct{}

// forwarded marks a request that another member passed on.
type forwarded struct{ via task.NodeID }

// ServeForwarded answers a request that another member passed on, as transport.MethodAPI. It is never passed on again, so
// that two members which take each other for the leader do not play ball with it. An error is task.ErrNoLeader: this member
// does not lead, or the outcome is unknown; ask again.
func (a *API) ServeForwarded(ctx context.Context, p *transport.APIRequest) (*transport.APIReply, error) {
	u, err := url.ParseRequestURI(p.Path)
	if err != nil || !strings.HasPrefix(p.Path, "/v1/") || p.By == "" {
		return nil, invalid("not a forwarded request", "")
	}
	ctx = withCaller(context.WithValue(ctx, forwardedKey{}, forwarded{task.NodeID(p.Header[headerVia])}), forwardedCaller(p))
	r, err := http.NewRequestWithContext(ctx, p.HTTPMethod, u.String(), bytes.NewReader(p.Body))
	if err != nil {
		return nil, invalid("not a forwarded request: "+err.Error(), "")
	}
	for _, name := range passed {
		if v := p.Header[name]; v != "" {
			r.Header.Set(name, v)
		}
	}
	c := &capture{header: http.Header{}, status: http.StatusOK}
	a.enter(c, r)
	if c.again != nil {
		return nil, c.again
	}
	out := &transport.APIReply{Status: c.status, Header: map[string]string{}, Body: c.body}
	for name := range c.header {
		out.Header[name] = c.header.Get(name)
	}
	return out, nil
}

// forwardedCaller is who asks the member that passed a request on. A member of an earlier version knows owners only, and says no
// role; a client counts for what this member's own ledger says of it.
func forwardedCaller(p *transport.APIRequest) Caller {
	c := Caller{By: p.By, Role: fsm.Role(p.Role), Client: p.Client, Key: p.ClientKey}
	if c.Client == "" && c.Role == "" {
		c.Role = fsm.RoleAdmin
	}
	return c
}

// capture keeps an answer instead of sending it.
type capture struct {
	header http.Header
	status int
	body   []byte
	again  error
}

func (c *capture) Header() http.Header    { return c.header }
func (c *capture) WriteHeader(status int) { c.status = status }
func (c *capture) Write(b []byte) (int, error) {
	c.body = append(c.body, b...)
	return len(b), nil
}
