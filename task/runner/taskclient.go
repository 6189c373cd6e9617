package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
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
