package runner

import (
	"math"
	"net/http"
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
	return asWritten(mux)
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
	d, ok := e.r.backend.Lease(e.x)
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
	if cp := e.r.backend.LastCheckpoint(e.a); cp != nil {
		return cp
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
