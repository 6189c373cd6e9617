package runner

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"lanjobs/task"
)

// taskRoutes is the table of UX 3, one for all endpoints. POST /v1/lease, not in it, is what `lanjobs task guard` asks: confirm with
// a majority.
func taskRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /v1/task", wrap((*endpoint).getTask))
	mux.Handle("GET /v1/lease", wrap((*endpoint).getLease))
	mux.Handle("POST /v1/lease", leased((*endpoint).confirmLease))
	mux.Handle("GET /v1/checkpoint", wrap((*endpoint).getCheckpoint))
	mux.Handle("PUT /v1/checkpoint", leased((*endpoint).putCheckpoint))
	mux.Handle("GET /v1/range", wrap((*endpoint).getRange))
	mux.Handle("PUT /v1/range", leased((*endpoint).putRange))
	mux.Handle("POST /v1/progress", leased((*endpoint).postProgress))
	mux.Handle("PUT /v1/outputs/{name}", leased((*endpoint).putOutput))
	mux.Handle("GET /v1/inputs/{stage}", wrap((*endpoint).getInputs))
	mux.Handle("GET /v1/inputs/{stage}/{name}", wrap((*endpoint).getInputs))
	mux.Handle("GET /v1/state/{key...}", wrap((*endpoint).getState))
	mux.Handle("PUT /v1/state/{key...}", leased((*endpoint).putState))
	mux.Handle("POST /v1/defer", leased((*endpoint).postDefer))
	mux.Handle("/", wrap(func(_ *endpoint, _ http.ResponseWriter, req *http.Request) error {
		return task.NewProblem(task.ErrNotFound, "no "+req.Method+" "+req.URL.Path, "lanjobs help tasks lists what there is")
	}))
	return mux
}

// TaskInfo answers GET /v1/task: the variables of the environment, and whether the task is to stop.
type TaskInfo struct {
	JobID         task.JobID       `json:"job_id"`
	JobName       string           `json:"job_name"`
	Stage         string           `json:"stage"`
	Shard         int              `json:"shard"`
	Shards        int              `json:"shards"`
	Item          string           `json:"item"`
	Range         *task.ShardRange `json:"range,omitempty"` // what it works on now, end exclusive
	Attempt       int              `json:"attempt"`
	ExecutionID   task.ExecutionID `json:"execution_id"`
	Fence         task.Token       `json:"fence"`
	Node          string           `json:"node"`
	Queue         string           `json:"queue"`
	ScheduledFor  string           `json:"scheduled_for"`
	Dir           string           `json:"dir"`
	Workdir       string           `json:"workdir"`
	CheckpointSeq uint64           `json:"checkpoint_seq"` // 0 = none
	Stop          string           `json:"stop"`           // "" = go on
}

// LeaseInfo answers GET and POST /v1/lease. Remaining counts to the moment at which the task would be killed.
type LeaseInfo struct {
	Valid            bool       `json:"valid"`
	RemainingSeconds float64    `json:"remaining_seconds"`
	Fence            task.Token `json:"fence"`
}

func (e *endpoint) getTask(w http.ResponseWriter, _ *http.Request) error {
	a := e.a
	info := TaskInfo{JobID: a.Job, JobName: e.rec.JobName, Stage: e.rec.Stage, Shard: a.Shard, Shards: e.rec.Shards, Item: e.rec.Item,
		Attempt: a.Attempt, ExecutionID: e.x, Fence: a.Token, Node: e.rec.Node, Queue: e.rec.Queue, Dir: e.paths.dir,
		Workdir: e.rec.Workdir, Stop: readStop(e.paths.stop)}
	if a.ScheduledFor != 0 {
		info.ScheduledFor = time.UnixMilli(a.ScheduledFor).UTC().Format(time.RFC3339)
	}
	info.Range = e.currentRange()
	if cp := e.lastCheckpoint(); cp != nil {
		info.CheckpointSeq = cp.Seq
	}
	return writeJSON(w, info)
}

func (e *endpoint) getLease(w http.ResponseWriter, _ *http.Request) error {
	b, err := e.backend()
	if err != nil {
		return err
	}
	d, ok := b.Lease(e.x)
	return writeJSON(w, e.leaseInfo(d, ok))
}

func (e *endpoint) confirmLease(b Backend, w http.ResponseWriter, req *http.Request) error {
	d, err := b.Confirm(req.Context(), e.a)
	if err != nil {
		return err
	}
	return writeJSON(w, e.leaseInfo(d, true))
}

func (e *endpoint) leaseInfo(d task.Deadlines, ok bool) LeaseInfo {
	left := d.Kill.Sub(e.r.clock.Boot())
	if !ok || left <= 0 {
		return LeaseInfo{Fence: e.a.Token}
	}
	return LeaseInfo{Valid: true, RemainingSeconds: math.Floor(left.Seconds()*1000) / 1000, Fence: e.a.Token}
}

func (e *endpoint) lastCheckpoint() *task.Checkpoint {
	if b := e.r.getBackend(); b != nil {
		if cp := b.LastCheckpoint(e.a); cp != nil {
			return cp
		}
	}
	return loadCheckpoint(e.paths)
}

func (e *endpoint) getCheckpoint(w http.ResponseWriter, _ *http.Request) error {
	cp := e.lastCheckpoint()
	if cp == nil {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	w.Header().Set("ETag", etag(cp.Seq))
	w.Header().Set("Content-Type", "application/octet-stream")
	_, err := w.Write(cp.Data)
	return err
}

// putCheckpoint answers when a majority has it, not before (R26, I5). The task's own file follows.
func (e *endpoint) putCheckpoint(b Backend, w http.ResponseWriter, req *http.Request) error {
	data, err := readBody(w, req, task.MaxCheckpointBytes)
	if err != nil {
		return err
	}
	e.signOfLife()
	seq, err := b.Checkpoint(req.Context(), e.a, data)
	if err != nil {
		return err
	}
	e.saving.Lock()
	if seq > e.savedSeq {
		e.savedSeq = seq
		if err := saveCheckpoint(e.paths, e.rec.Owner, &task.Checkpoint{Seq: seq, Data: data}); err != nil {
			e.r.log.Warn("checkpoint file not written", "execution", e.x, "error", err) // the cluster has it
		}
	}
	e.saving.Unlock()
	return writeJSON(w, map[string]uint64{"seq": seq})
}

func (e *endpoint) postProgress(b Backend, w http.ResponseWriter, req *http.Request) error {
	body, err := readBody(w, req, 4*task.MaxMessageLength)
	if err != nil {
		return err
	}
	text, err := progressText(string(body))
	if err != nil {
		return err
	}
	e.signOfLife()
	if err := e.tell(b, text, req); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// tell passes progress on at most once a second; what comes faster replaces what waits.
func (e *endpoint) tell(b Backend, text string, req *http.Request) error {
	e.mu.Lock()
	switch {
	case e.closed:
		e.mu.Unlock()
		return task.ErrStaleToken
	case e.telling:
		e.progress = &text
		e.mu.Unlock()
		return nil
	}
	e.telling = true
	e.wg.Go(func() { e.tellLater(b) })
	e.mu.Unlock()
	return b.Progress(req.Context(), e.a, text)
}

func (e *endpoint) tellLater(b Backend) {
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-e.r.clock.After(time.Second):
		}
		e.mu.Lock()
		text := e.progress
		e.progress = nil
		e.telling = text != nil
		e.mu.Unlock()
		if text == nil {
			return
		}
		if err := b.Progress(e.ctx, e.a, *text); err != nil {
			e.r.log.Debug("progress not passed on", "execution", e.x, "error", err)
		}
	}
}

func (e *endpoint) putOutput(b Backend, w http.ResponseWriter, req *http.Request) error {
	request, err := requestID(req.Header)
	if err != nil {
		return err
	}
	body, err := readBody(w, req, task.MaxOutputBytes+1)
	if err != nil {
		return err
	}
	kv := task.KV{Name: req.PathValue("name"), Value: strings.TrimSuffix(string(body), "\n")}
	if err := checkOutput(kv); err != nil {
		return err
	}
	e.signOfLife()
	if err := b.Output(req.Context(), e.a, kv, request); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// getInputs: a line for each line of a value, in shard order: "shard TAB name TAB line", the line alone if one name was asked for, the shard
// alone for ?missing=1. With Accept: application/json a list of Input.
func (e *endpoint) getInputs(w http.ResponseWriter, req *http.Request) error {
	b, err := e.backend()
	if err != nil {
		return err
	}
	stage, name := req.PathValue("stage"), req.PathValue("name")
	if name == "" {
		stage, name, _ = strings.Cut(stage, ".")
	}
	missing := req.URL.Query().Get("missing") == "1"
	inputs, err := b.Inputs(req.Context(), e.a, stage, name, missing)
	if err != nil {
		return err
	}
	if strings.Contains(req.Header.Get("Accept"), "application/json") {
		return writeJSON(w, append([]Input{}, inputs...))
	}
	return writeText(w, inputLines(inputs, name, missing))
}

func (e *endpoint) getState(w http.ResponseWriter, req *http.Request) error {
	b, err := e.backend()
	if err != nil {
		return err
	}
	key := req.PathValue("key")
	value, version, err := b.StateGet(req.Context(), e.a, key)
	if err != nil {
		return err
	}
	if version == 0 {
		return task.NewProblem(task.ErrNotFound, fmt.Sprintf("the job has no state %q", key), "")
	}
	w.Header().Set("ETag", etag(version))
	w.Header().Set("Content-Type", "application/octet-stream")
	_, err = w.Write(value)
	return err
}

func (e *endpoint) putState(b Backend, w http.ResponseWriter, req *http.Request) error {
	ifVersion, err := parseIfMatch(req.Header)
	if err != nil {
		return err
	}
	request, err := requestID(req.Header)
	if err != nil {
		return err
	}
	key := req.PathValue("key")
	if key == "" {
		return task.NewProblem(task.ErrInvalid, "the key is empty", "PUT /v1/state/KEY")
	}
	value, err := readBody(w, req, task.MaxStateValueBytes)
	if err != nil {
		return err
	}
	version, err := b.StatePut(req.Context(), e.a, key, value, ifVersion, request)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag(version))
	return writeJSON(w, map[string]uint64{"version": version})
}

func (e *endpoint) postDefer(b Backend, w http.ResponseWriter, req *http.Request) error {
	body, err := readBody(w, req, 1024)
	if err != nil {
		return err
	}
	wait, err := parseWait(string(body))
	if err != nil {
		return err
	}
	if err := b.Defer(req.Context(), e.a, wait); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func etag(version uint64) string { return strconv.Quote(strconv.FormatUint(version, 10)) }
