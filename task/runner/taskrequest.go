package runner

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"time"

	"lanjobs/task"
)

func (c *TaskClient) getJSON(ctx context.Context, path string, v any) error {
	r, err := c.do(ctx, http.MethodGet, path, nil, http.Header{"Accept": {"application/json"}})
	if err != nil {
		return err
	}
	return json.Unmarshal(r.body, v)
}

type taskReply struct {
	status int
	header http.Header
	body   []byte
}

// newRequest names a write, so that its repeats by do are known for what they are: a conditional write whose answer was lost
// does not find its own change in the way, and a late repeat does not bring an older value back.
func newRequest() http.Header {
	h := http.Header{}
	h.Set(task.HeaderRequestID, rand.Text())
	return h
}

// do sends a request and repeats it while nobody can answer.
func (c *TaskClient) do(ctx context.Context, method, path string, body []byte, h http.Header) (*taskReply, error) {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		r, err := c.once(ctx, method, path, body, h)
		switch {
		case err == nil && r.status < 300:
			return r, nil
		case err == nil && r.status != http.StatusServiceUnavailable:
			return nil, problemOf(r)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
		if err == nil {
			c.learnDeadline(ctx)
		}
		if c.over() {
			return nil, task.NewProblem(task.ErrStaleToken, "this attempt has ended: its directory is gone and nobody answers", "")
		}
		if why := c.giveUp(); why != "" {
			return nil, task.NewProblem(task.ErrNoLeader, "no leader answered, and "+why, "")
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.clock.After(wait):
		}
	}
}

func (c *TaskClient) once(ctx context.Context, method, path string, body []byte, h http.Header) (*taskReply, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+"/v1/"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for k, v := range h {
		req.Header[k] = v
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(resp.Body)
	return &taskReply{resp.StatusCode, resp.Header, data}, errors.Join(err, resp.Body.Close())
}

// giveUpBefore the end of the lease repeating stops, so that the task has time to do something sensible (UX 3). A short lease
// gives a quarter of what is left.
const giveUpBefore = 10 * time.Second

// leaseOnce asks the node, which knows the lease without the leader, and does not repeat.
func (c *TaskClient) leaseOnce(ctx context.Context) (LeaseInfo, error) {
	var info LeaseInfo
	r, err := c.once(ctx, http.MethodGet, "lease", nil, nil)
	if err == nil && r.status != http.StatusOK {
		err = problemOf(r)
	}
	if err == nil {
		err = json.Unmarshal(r.body, &info)
	}
	return info, err
}

func (c *TaskClient) learnDeadline(ctx context.Context) {
	info, err := c.leaseOnce(ctx)
	if err != nil {
		return
	}
	c.hold(info)
	if c.margin == 0 {
		c.margin = min(giveUpBefore, time.Duration(info.RemainingSeconds*float64(time.Second))/4)
	}
}

// giveUp says why it makes no sense to go on. With the node away the deadline may be unknown; then the stop file, which the guard
// writes before it, tells.
func (c *TaskClient) giveUp() string {
	if c.deadline != 0 && c.clock.Boot() >= c.deadline.Add(-c.margin) {
		return "the lease is about to end"
	}
	if c.stopFile == "" {
		if c.dir == "" && c.clock.Boot().Sub(c.began) >= giveUpBefore {
			return "this is not inside a task"
		}
		return ""
	}
	if _, err := os.Stat(c.stopFile); err == nil {
		return "the task was told to stop"
	}
	return ""
}

// over tells a process that has outlived its attempt. While the agent is away for a moment the directory stays.
func (c *TaskClient) over() bool {
	if c.dir == "" {
		return false
	}
	_, err := os.Stat(c.dir)
	return errors.Is(err, fs.ErrNotExist)
}

func problemOf(r *taskReply) error {
	var p task.Problem
	if err := json.Unmarshal(r.body, &p); err != nil || p.Code == "" {
		return fmt.Errorf("task endpoint: status %d: %s", r.status, clip(string(r.body)))
	}
	if p.Code == leaseLost {
		p.Code = task.Explain(task.ErrStaleToken).Code
	}
	return &p
}
