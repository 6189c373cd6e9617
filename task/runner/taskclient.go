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
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"lanjobs/task"
)

// TaskClient is what the helper commands `lanjobs task …` use inside a running task. It repeats by itself while the node or the
// leader is away, until shortly before the lease ends. Its errors are *task.Problem; a lost lease is task.ErrStaleToken.
type TaskClient struct {
	http     *http.Client
	base     string
	token    string
	stopFile string
	dir      string // the attempt's own, removed when it has ended
	clock    task.Clock
	began    task.Boot
	deadline task.Boot // of the lease, as far as known; 0 = unknown
	margin   time.Duration
}

// NewTaskClient finds the endpoint in the environment.
func NewTaskClient(getenv func(string) string, clock task.Clock) (*TaskClient, error) {
	c := &TaskClient{base: getenv("LANJOBS_URL"), token: getenv("LANJOBS_TOKEN"), stopFile: getenv("LANJOBS_STOP"), dir: getenv("LANJOBS_DIR"), clock: clock, began: clock.Boot()}
	if socket := getenv("LANJOBS_SOCKET"); socket != "" {
		c.base = "http://task"
		c.http = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}
		return c, nil
	}
	if c.base == "" {
		return nil, task.NewProblem(task.ErrInvalid, "this is not inside a task: neither LANJOBS_SOCKET nor LANJOBS_URL is set",
			"lanjobs task … works in the commands of a job")
	}
	c.http = &http.Client{Transport: &http.Transport{}}
	return c, nil
}

// Info is everything that the node says of the task.
func (c *TaskClient) Info(ctx context.Context) (TaskInfo, error) {
	var info TaskInfo
	return info, c.getJSON(ctx, "task", &info)
}

// SaveCheckpoint saves and returns the checkpoint's number once a majority has it.
func (c *TaskClient) SaveCheckpoint(ctx context.Context, data []byte) (uint64, error) {
	if len(data) > task.MaxCheckpointBytes {
		return 0, task.NewProblem(task.ErrTooLarge, fmt.Sprintf("the checkpoint has %d bytes, at most %d are taken", len(data), task.MaxCheckpointBytes),
			"save the file elsewhere and checkpoint its name")
	}
	var reply struct{ Seq uint64 }
	r, err := c.do(ctx, http.MethodPut, "checkpoint", data, nil)
	if err == nil {
		err = json.Unmarshal(r.body, &reply)
	}
	return reply.Seq, err
}

// Checkpoint gets the last accepted one; ok is false if there is none.
func (c *TaskClient) Checkpoint(ctx context.Context) (data []byte, ok bool, err error) {
	r, err := c.do(ctx, http.MethodGet, "checkpoint", nil, nil)
	if err != nil || r.status == http.StatusNoContent {
		return nil, false, err
	}
	return r.body, true, nil
}

// Progress tells people how far the task is: "40%" or "3/10", and a text if there is one.
func (c *TaskClient) Progress(ctx context.Context, done, text string) error {
	_, err := c.do(ctx, http.MethodPost, "progress", []byte(strings.TrimSpace(done+" "+text)), nil)
	return err
}

// Lease asks the node, not the leader, whether the lease still holds. If less than need remains it is an error.
func (c *TaskClient) Lease(ctx context.Context, need time.Duration) (LeaseInfo, error) {
	var info LeaseInfo
	if err := c.getJSON(ctx, "lease", &info); err != nil {
		return info, err
	}
	return info, enough(info, need)
}

// Confirm renews the lease with a majority now.
func (c *TaskClient) Confirm(ctx context.Context, need time.Duration) (LeaseInfo, error) {
	var info LeaseInfo
	r, err := c.do(ctx, http.MethodPost, "lease", nil, nil)
	if err == nil {
		err = json.Unmarshal(r.body, &info)
	}
	if err != nil {
		return info, err
	}
	return info, enough(info, need)
}

func enough(l LeaseInfo, need time.Duration) error {
	left := time.Duration(l.RemainingSeconds * float64(time.Second))
	switch {
	case !l.Valid:
		return task.NewProblem(task.ErrStaleToken, "the lease is lost", "stop now: another execution may own this shard")
	case left < need:
		return task.NewProblem(task.ErrStaleToken, fmt.Sprintf("the lease holds for %s only, %s are needed", left.Round(time.Millisecond), need), "")
	}
	return nil
}

// Output registers an output for later stages.
func (c *TaskClient) Output(ctx context.Context, name, value string) error {
	if err := checkOutput(task.KV{Name: name, Value: value}); err != nil {
		return task.Explain(err)
	}
	_, err := c.do(ctx, http.MethodPut, "outputs/"+url.PathEscape(name), []byte(value), newRequest())
	return err
}

// Input gets the output STAGE.NAME of an earlier stage, one value per shard that has it.
func (c *TaskClient) Input(ctx context.Context, stageDotName string) ([]string, error) {
	stage, name, ok := strings.Cut(stageDotName, ".")
	if !ok || stage == "" || name == "" {
		return nil, task.NewProblem(task.ErrInvalid, fmt.Sprintf("%q is not STAGE.NAME", stageDotName), "lanjobs task input init.step")
	}
	r, err := c.do(ctx, http.MethodGet, "inputs/"+url.PathEscape(stage)+"/"+url.PathEscape(name), nil, nil)
	if err != nil || len(r.body) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(r.body), "\n"), "\n"), nil
}

// Inputs gets all outputs of an earlier stage in shard order, or with missing the shards that did not succeed.
func (c *TaskClient) Inputs(ctx context.Context, stage string, missing bool) ([]Input, error) {
	path := "inputs/" + url.PathEscape(stage)
	if missing {
		path += "?missing=1"
	}
	var out []Input
	return out, c.getJSON(ctx, path, &out)
}

// StateGet reads a key of the job; its version is needed to change it safely.
func (c *TaskClient) StateGet(ctx context.Context, key string) (value []byte, version uint64, err error) {
	r, err := c.do(ctx, http.MethodGet, "state/"+url.PathEscape(key), nil, nil)
	if err != nil {
		return nil, 0, err
	}
	version, err = strconv.ParseUint(strings.Trim(r.header.Get("ETag"), `"`), 10, 64)
	return r.body, version, err
}

// StatePut writes a key, if ifVersion is given only while it still has that version (0 = absent); else task.ErrConflict.
func (c *TaskClient) StatePut(ctx context.Context, key string, value []byte, ifVersion *uint64) (version uint64, err error) {
	h := newRequest()
	if ifVersion != nil {
		h.Set("If-Match", etag(*ifVersion))
	}
	var reply struct{ Version uint64 }
	r, err := c.do(ctx, http.MethodPut, "state/"+url.PathEscape(key), value, h)
	if err == nil {
		err = json.Unmarshal(r.body, &reply)
	}
	return reply.Version, err
}

// Defer gives the shard back, to be run again after wait. The node stops this task soon after.
func (c *TaskClient) Defer(ctx context.Context, wait time.Duration) error {
	_, err := c.do(ctx, http.MethodPost, "defer", []byte(wait.String()), nil)
	return err
}

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
