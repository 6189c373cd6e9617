package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// fakeAPI is a cluster's API over state that tests set and change. It knows no rules of scheduling.
type fakeAPI struct {
	process   transport.ProcessView
	doctors   []*task.DoctorView
	t         *testing.T
	mu        sync.Mutex
	view      task.ClusterView
	jobs      []*fakeJob
	events    []task.Event
	tokens    []transport.TokenView
	waiting   []transport.PairingView
	approved  []transport.PairDecision
	refused   int
	why       []transport.WhyView
	schedules []task.ScheduleView
	queues    []task.QueueView
	dead      []task.DeadGroup
	note      string          // of the next submits
	leader    bool            // false: everything but a stale status answers no_leader
	refuse    *task.Problem   // every write answers this
	outages   int             // that many requests from now answer no_leader
	requests  []fakeRequest   // all of them
	onSubmit  func(*fakeJob)  // what the cluster does with a job, in its own time
	writes    map[string]bool // request ids seen
	afterInit func()          // gives the cluster its name, later than the answer
	leaving   time.Duration   // how long it takes to give work back
	gone      bool            // after leave: nothing listens
	mux       *http.ServeMux
}

// What a member answers when nobody leads.
const (
	noQuorumText = "the cluster cannot take changes: 1 of 3 voters answers, 2 are needed (mini-2 silent 12m, asleep?; nas silent 3m)."
	noQuorumHint = "Running tasks go on until their leases end (longest: 4m10s). Wake one of the two. Both lost for good: lanjobs help lost-quorum"
)

type fakeRequest struct {
	method, path, id string
	query            string
	body             string
}

type fakeJob struct {
	view    task.JobView
	spec    task.Spec
	shards  []task.ShardView
	logs    map[string]string // by stage/shard/attempt
	running map[string]bool   // logs that grow
}

func newFakeAPI(t *testing.T) *fakeAPI {
	f := &fakeAPI{t: t, leader: true, writes: map[string]bool{}}
	f.view = task.ClusterView{Health: "healthy", Version: "1.4.0", Leader: "n1", LeaderName: "mini-1", Self: "n1", SelfName: "mini-1", Index: 18231,
		Nodes: []task.NodeView{{ID: "n1", Name: "mini-1", Role: "leader", State: "ready", OS: "linux", CPUs: 4, Slots: 4, Version: "1.4.0"}}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /v1/status", f.status)
	mux.HandleFunc("POST /v1/jobs", f.submit)
	mux.HandleFunc("GET /v1/jobs", f.listJobs)
	mux.HandleFunc("GET /v1/jobs/{ref}", f.onJob(func(j *fakeJob, _ *http.Request) any { return j.view }))
	mux.HandleFunc("DELETE /v1/jobs/{ref}", f.onJob(f.cancel))
	mux.HandleFunc("POST /v1/jobs/{ref}/retry", f.onJob(func(j *fakeJob, _ *http.Request) any { j.view.State = task.JobRunning; return j.view }))
	mux.HandleFunc("GET /v1/jobs/{ref}/shards", f.onJob(f.listShards))
	mux.HandleFunc("GET /v1/jobs/{ref}/why", f.onJob(func(*fakeJob, *http.Request) any { return list("WhyList", f.view.Index, f.why) }))
	mux.HandleFunc("GET /v1/jobs/{ref}/shards/{stage}/{n}/attempts/{k}/log", f.log)
	mux.HandleFunc("GET /v1/nodes", f.locked(func(*http.Request) any { return list("NodeList", f.view.Index, f.view.Nodes) }))
	mux.HandleFunc("GET /v1/nodes/{ref}", f.onNode(func(n *task.NodeView, _ *http.Request) any { return n }))
	mux.HandleFunc("DELETE /v1/nodes/{ref}", f.onNode(func(n *task.NodeView, _ *http.Request) any { n.State = "left"; return n }))
	mux.HandleFunc("POST /v1/nodes/{ref}/{act}", f.onNode(f.act))
	mux.HandleFunc("GET /v1/events", f.listEvents)
	mux.HandleFunc("POST /v1/tokens", f.locked(f.makeToken))
	mux.HandleFunc("GET /v1/tokens", f.locked(func(*http.Request) any { return list("TokenList", f.view.Index, f.tokens) }))
	mux.HandleFunc("DELETE /v1/tokens/{id}", f.locked(func(*http.Request) any { return struct{}{} }))
	f.pairs(mux)
	mux.HandleFunc("POST /v1/init", f.locked(f.init))
	mux.HandleFunc("POST /v1/leave", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(f.leaving):
			f.locked(func(*http.Request) any { f.gone = true; return struct{}{} })(w, r)
		case <-r.Context().Done():
		}
	})
	f.serveProcess(mux)
	f.work(mux)
	f.mux = mux
	return f
}

// ServeHTTP records a request and lets the mux answer, unless the cluster has trouble.
func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	f.mu.Lock()
	f.requests = append(f.requests, fakeRequest{r.Method, r.URL.Path, r.Header.Get(transport.HeaderRequestID), r.URL.RawQuery, string(body)})
	refuse, out := f.refuse, f.outages > 0 || !f.leader
	if f.outages > 0 {
		f.outages--
	}
	f.mu.Unlock()
	switch {
	case out && !strings.HasPrefix(r.URL.Path, "/v1/status"):
		fail(w, task.NewProblem(task.ErrNoLeader, noQuorumText, noQuorumHint))
	case refuse != nil && r.Method != http.MethodGet:
		fail(w, refuse)
	default:
		f.mux.ServeHTTP(w, r)
	}
}

func fail(w http.ResponseWriter, p *task.Problem) {
	status := map[string]int{"not_found": 404, "conflict": 409, "invalid": 400, "not_allowed": 403, "no_leader": 503, "too_large": 413}[p.Code]
	if status == 0 {
		status = 500
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(p)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (f *fakeAPI) locked(do func(*http.Request) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		v := do(r)
		if p, ok := v.(*task.Problem); ok {
			fail(w, p)
			return
		}
		reply(w, v)
	}
}

// change is how a test changes the cluster while commands look at it.
func (f *fakeAPI) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *fakeAPI) status(w http.ResponseWriter, r *http.Request) {
	f.locked(func(*http.Request) any {
		v := f.view
		v.Jobs = nil
		for _, j := range f.jobs {
			v.Jobs = append(v.Jobs, j.view)
		}
		if !f.leader {
			v.Health, v.Leader, v.LeaderName, v.StaleSeconds = "no_leader", "", "", 12
		}
		return v
	})(w, r)
}

func (f *fakeAPI) submit(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Content-Type") == transport.ContentTypeSpecs {
		f.submitLines(w, r)
		return
	}
	var started *fakeJob
	f.locked(func(r *http.Request) any {
		id := r.Header.Get(transport.HeaderRequestID)
		if id == "" && r.URL.Query().Get("dry_run") == "" {
			return task.NewProblem(task.ErrInvalid, "a write without a request id", "")
		}
		var spec task.Spec
		if err := json.NewDecoder(r.Body).Decode(&spec); err != nil || r.Header.Get("Content-Type") != transport.ContentTypeSpec {
			return task.NewProblem(task.ErrInvalid, fmt.Sprint("not a spec: ", err), "")
		}
		if r.URL.Query().Get("dry_run") == "1" {
			return task.SubmitReply{Name: spec.Name, Note: f.note}
		}
		f.writes[id] = true
		if spec.Schedule != nil {
			return f.submitted(spec)
		}
		started = f.add(spec)
		return task.SubmitReply{ID: started.view.ID, Name: spec.Name, Note: f.note}
	})(w, r)
	if started != nil && f.onSubmit != nil {
		go f.onSubmit(started)
	}
}

// add makes a pending job of a spec; ids are j000001, j000002 …
func (f *fakeAPI) add(spec task.Spec) *fakeJob {
	j := &fakeJob{spec: spec, logs: map[string]string{}, running: map[string]bool{}}
	j.view = task.JobView{ID: task.JobID(fmt.Sprintf("j%06d", len(f.jobs)+1)), Name: spec.Name, State: task.JobPending, Queue: spec.Queue, Priority: spec.Priority,
		Submitted: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	for _, st := range spec.Stages {
		j.view.Stages = append(j.view.Stages, task.StageView{Name: st.Name, State: "open", Needs: st.Needs, Shards: task.Counts{Total: st.Shards, Pending: st.Shards}})
		j.view.Shards.Total += st.Shards
		j.view.Shards.Pending += st.Shards
	}
	f.jobs = append(f.jobs, j)
	return j
}

func (f *fakeAPI) find(ref string) *fakeJob {
	for _, j := range slices.Backward(f.jobs) {
		if string(j.view.ID) == ref || j.view.Name == ref {
			return j
		}
	}
	return nil
}

func (f *fakeAPI) onJob(do func(*fakeJob, *http.Request) any) http.HandlerFunc {
	return f.locked(func(r *http.Request) any {
		j := f.find(r.PathValue("ref"))
		if j == nil {
			var names []string
			for _, j := range f.jobs {
				names = append(names, j.view.Name)
			}
			detail := fmt.Sprintf("no job %q.", r.PathValue("ref"))
			if j := f.find(nearest(names, r.PathValue("ref"))); j != nil {
				detail += fmt.Sprintf(" Did you mean %q (%s, %s)?", j.view.Name, j.view.ID, j.view.State)
			}
			return task.NewProblem(task.ErrNotFound, detail, "All jobs: lanjobs ls")
		}
		return do(j, r)
	})
}

func (f *fakeAPI) cancel(j *fakeJob, r *http.Request) any {
	if !j.view.State.Final() {
		j.view.State, j.view.Reason = task.JobCancelled, r.URL.Query().Get("reason")
	}
	return j.view
}

// listJobs gives pages of two, so that every command has to turn them.
func (f *fakeAPI) listJobs(w http.ResponseWriter, r *http.Request) {
	f.locked(func(r *http.Request) any {
		var all []task.JobView
		for _, j := range f.jobs {
			if s := r.URL.Query().Get("state"); s == "" || s == string(j.view.State) {
				all = append(all, j.view)
			}
		}
		return pageOf(r, "JobList", f.view.Index, all)
	})(w, r)
}

func pageOf[T any](r *http.Request, kind string, index uint64, all []T) task.List[T] {
	from, _ := strconv.Atoi(r.URL.Query().Get("after"))
	to := min(from+2, len(all))
	l := list(kind, index, all[min(from, to):to])
	if to < len(all) {
		l.Next = itoa(to)
	}
	return l
}

func (f *fakeAPI) listShards(j *fakeJob, r *http.Request) any {
	q := r.URL.Query()
	ranges, _ := task.ParseRanges(q.Get("shards"))
	var all []task.ShardView
	for _, s := range j.shards {
		if st := q.Get("stage"); (st == "" || st == s.Stage) && inRanges(ranges, s.Shard) {
			all = append(all, s)
		}
	}
	return pageOf(r, "ShardList", f.view.Index, all)
}

// log gives what there is of an attempt's output from an offset on, or its last lines.
func (f *fakeAPI) log(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.find(r.PathValue("ref"))
	key, k := r.PathValue("stage")+"/"+r.PathValue("n"), r.PathValue("k")
	if k == "0" {
		k = "1"
		for j != nil && j.hasLog(key+"/"+itoa(atoi(k)+1)) {
			k = itoa(atoi(k) + 1)
		}
	}
	key += "/" + k
	if j == nil || !j.hasLog(key) {
		fail(w, task.NewProblem(task.ErrNotFound, "no output of "+key, ""))
		return
	}
	text, q := j.logs[key], r.URL.Query()
	from := min(atoi(q.Get("from")), len(text))
	if n := atoi(q.Get("tail")); n > 0 {
		whole := strings.TrimSuffix(text, "\n")
		lines := strings.SplitAfter(whole, "\n")
		from = len(whole) - len(strings.Join(lines[max(len(lines)-n, 0):], ""))
	}
	if q.Get("stream") == "stderr" {
		text, from = "", 0
	}
	w.Header().Set(transport.HeaderLogNext, itoa(len(text)))
	w.Header().Set(transport.HeaderLogAttempt, "x"+key)
	w.Header().Set(transport.HeaderLogDone, strconv.FormatBool(!j.running[key]))
	_, _ = io.WriteString(w, text[max(from, 0):])
}

func (j *fakeJob) hasLog(key string) bool { _, ok := j.logs[key]; return ok }

func atoi(s string) int { n, _ := strconv.Atoi(s); return n }

func (f *fakeAPI) onNode(do func(*task.NodeView, *http.Request) any) http.HandlerFunc {
	return f.locked(func(r *http.Request) any {
		for i := range f.view.Nodes {
			if n := &f.view.Nodes[i]; n.Name == r.PathValue("ref") || string(n.ID) == r.PathValue("ref") {
				return do(n, r)
			}
		}
		return task.NewProblem(task.ErrNotFound, fmt.Sprintf("no node %q.", r.PathValue("ref")), "All machines: lanjobs node ls")
	})
}

func (f *fakeAPI) act(n *task.NodeView, r *http.Request) any {
	switch r.PathValue("act") {
	case "drain":
		n.State = "draining"
	case "resume", "clear":
		if from := map[string]string{"resume": "unstable", "clear": "draining"}; n.State != from[r.PathValue("act")] {
			n.State = "ready"
		}
	case "wake":
		return transport.WakeView{Node: *n, Sent: 1, From: []transport.WakeSender{{ID: "n1", Name: "mini-1", Networks: []string{"192.168.1.255"}}, {ID: "n4", Name: "pc-win", Problem: "no answer"}}}
	case "label":
		var b transport.LabelBody
		_ = json.NewDecoder(r.Body).Decode(&b)
		n.Labels = append(n.Labels, b.Set...)
	}
	return n
}

func (f *fakeAPI) listEvents(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := r.URL.Query()
	var after eventCursor
	_, _ = fmt.Sscanf(q.Get("after"), "%d.%d", &after.index, &after.n)
	var out []task.Event
	for _, e := range f.events {
		if after.pass(e) && (q.Get("job") == "" || q.Get("job") == string(e.Job) || q.Get("job") == e.JobName) &&
			(q.Get("kind") == "" || slices.Contains(strings.Split(q.Get("kind"), ","), string(e.Kind))) {
			out = append(out, e)
		}
	}
	if n := atoi(q.Get("tail")); n > 0 {
		reply(w, list("EventList", f.view.Index, out[max(len(out)-n, 0):]))
		return
	}
	if q.Get("follow") == "" {
		l := list("EventList", f.view.Index, out[:min(len(out), 2)]) // short pages, so that every command has to turn them
		if len(out) > 2 {
			l.Next = fmt.Sprintf("%d.%d", out[1].Index, out[1].N)
		}
		reply(w, l)
		return
	}
	for _, e := range out {
		_ = json.NewEncoder(w).Encode(e)
	}
}

// emit adds an event of a job.
func (f *fakeAPI) emit(j *fakeJob, e task.Event) {
	f.view.Index++
	e.Index, e.Job, e.JobName = f.view.Index, j.view.ID, j.view.Name
	f.events = append(f.events, e)
}

func (f *fakeAPI) makeToken(r *http.Request) any {
	var b transport.TokenBody
	_ = json.NewDecoder(r.Body).Decode(&b)
	return transport.TokenView{ID: "t1", Token: "LJ1-3F9A7C21-secret", LeftSeconds: b.TTLSeconds, UsesLeft: b.Uses, Worker: b.Worker,
		Join: []string{"lanjobs join mini-1:7420 --token LJ1-3F9A7C21-secret", "lanjobs join 192.168.1.5:7420 --token LJ1-3F9A7C21-secret"}}
}

func (f *fakeAPI) init(r *http.Request) any {
	var b transport.InitBody
	_ = json.NewDecoder(r.Body).Decode(&b)
	if f.afterInit == nil {
		f.view.Name = b.Cluster
	} else {
		go f.afterInit()
	}
	return transport.InitView{Cluster: b.Cluster, ClusterID: "c1", Node: f.view.SelfName, Fingerprint: "3F9A-7C21-0B4E"}
}
