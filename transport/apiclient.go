package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"lanjobs/task"
)

// maxAPIBytes bounds an answer that is read as a whole.
const maxAPIBytes = 256 << 20

// APIClient asks the API of one node (api.go). Errors of the API are *task.Problem; see Open for the others.
type APIClient struct{ door http.RoundTripper }

// NewAPIClient uses any way to a node, as one to a handler in the same process.
func NewAPIClient(door http.RoundTripper) *APIClient { return &APIClient{door} }

// SocketDoor leads to the node that listens on a socket; see SocketPath.
func SocketDoor(path string) http.RoundTripper {
	return &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return DialSocket(ctx, path) },
		DisableCompression: true,
	}
}

// Get reads path, which begins with /v1/ and may have a query, into reply.
func (c *APIClient) Get(ctx context.Context, path string, reply any) error {
	return c.whole(ctx, http.MethodGet, path, "", nil, reply)
}

// Post sends body as JSON; a []byte and a Typed go as they are. id makes repeating it harmless (R20). reply may be nil.
func (c *APIClient) Post(ctx context.Context, path string, id task.RequestID, body, reply any) error {
	return c.whole(ctx, http.MethodPost, path, id, body, reply)
}

// Delete is Post without a body.
func (c *APIClient) Delete(ctx context.Context, path string, id task.RequestID, reply any) error {
	return c.whole(ctx, http.MethodDelete, path, id, nil, reply)
}

// whole reads the whole answer.
func (c *APIClient) whole(ctx context.Context, method, path string, id task.RequestID, body, reply any) error {
	resp, err := c.Open(ctx, method, path, id, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if reply == nil {
		_, err = io.Copy(io.Discard, resp.Body)
	} else {
		err = json.NewDecoder(io.LimitReader(resp.Body, maxAPIBytes)).Decode(reply)
	}
	if err != nil {
		return fmt.Errorf("%s %s: the answer ended early: %w", method, path, err)
	}
	return nil
}

// Typed is a body of another type than JSON.
type Typed struct {
	Type string // of the content
	Text []byte
}

// Open sends a request and leaves the answer's body to the caller, who must close it: logs and events come while they happen.
// The error is the cause of ctx, ErrNoNode, ErrSocketPermission, a *task.Problem, or that of a broken connection.
func (c *APIClient) Open(ctx context.Context, method, path string, id task.RequestID, body any) (*http.Response, error) {
	kind, text, err := content(body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://lanjobs"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", kind)
	}
	if id != "" {
		req.Header.Set(HeaderRequestID, string(id))
	}
	resp, err := c.door.RoundTrip(req)
	switch {
	case ctx.Err() != nil:
		if err == nil {
			_ = resp.Body.Close()
		}
		return nil, context.Cause(ctx)
	case errors.Is(err, ErrNoNode), errors.Is(err, ErrSocketPermission):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	case resp.StatusCode >= http.StatusBadRequest:
		defer resp.Body.Close()
		return nil, ReadProblem(resp)
	}
	return resp, nil
}

// content is the type and text of a body.
func content(body any) (kind string, text []byte, err error) {
	kind = "application/json"
	switch b := body.(type) {
	case nil:
	case []byte:
		text = b
	case Typed:
		kind, text = b.Type, b.Text
	default:
		text, err = json.Marshal(body)
	}
	return kind, text, err
}
