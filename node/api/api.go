package api

import (
	"log/slog"
	"net/http"

	"lanjobs/fsm"
	"lanjobs/task"
)

// API answers clients of this member (ServeHTTP) and requests that other members pass on to the leader (ServeForwarded).
type API struct {
	cfg     Config
	clock   task.Clock
	log     *slog.Logger
	mux     *http.ServeMux
	origins *http.CrossOriginProtection

	requests, streams, submits, bulks gate
	failures                          failures
}

// New makes the API of a node.
func New(cfg Config) (*API, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	a := &API{cfg: cfg, clock: cfg.Clock, log: cfg.Log, mux: http.NewServeMux(), origins: http.NewCrossOriginProtection(),
		requests: make(gate, maxRequests), streams: make(gate, maxStreams), submits: make(gate, maxSubmits), bulks: make(gate, maxBulks)}
	for _, r := range a.routes() {
		a.mux.Handle(r.pattern, a.serve(r))
	}
	a.mux.HandleFunc("/", a.nothingHere)
	return a, nil
}

// where tells which member answers a route.
type where uint8

const (
	here   where = iota // this one
	fresh               // the leader; without one, this member's copy
	commit              // the leader, and only it
)

// route is one row of the API.
type route struct {
	pattern string
	where   where
	role    fsm.Role // the least that may ask it; a test holds that every route names one
	own     bool     // only the owner of the machine itself, not a client
	params  string   // names of the query, beside consistency
	body    int64    // most bytes; 0 = none is taken
	long    bool     // may be held: counts as a stream
	handle  handler
	check   func(*request) error                      // of what needs no state, at the first member
	stream  func(http.ResponseWriter, *request) error // instead of handle, with follow=1
}

// routes is the API as transport/api.go describes it; a test compares the two.
func (a *API) routes() []route {
	const page = " limit after"
	return []route{
		{pattern: "GET /v1/status", where: fresh, role: fsm.RoleViewer, handle: a.status},
		{pattern: "POST /v1/jobs", where: commit, role: fsm.RoleOperator, params: "dry_run", body: maxJobBody, handle: a.submit, check: readSpec},
		{pattern: "GET /v1/jobs", where: fresh, role: fsm.RoleViewer, params: "state queue name label dead since until" + page, handle: a.listJobs},
		{pattern: "GET /v1/jobs/{ref}", where: fresh, role: fsm.RoleViewer, handle: a.getJob},
		{pattern: "DELETE /v1/jobs/{ref}", where: commit, role: fsm.RoleOperator, params: "reason grace", handle: a.cancelJob},
		{pattern: "POST /v1/jobs/{ref}/retry", where: commit, role: fsm.RoleOperator, body: maxBody, handle: a.retryJob},
		{pattern: "POST /v1/jobs/{ref}/pause", where: commit, role: fsm.RoleOperator, body: maxBody, handle: a.pauseJob, check: noFields},
		{pattern: "POST /v1/jobs/{ref}/resume", where: commit, role: fsm.RoleOperator, body: maxBody, handle: a.resumeJob, check: noFields},
		{pattern: "POST /v1/jobs/{ref}/priority", where: commit, role: fsm.RoleOperator, body: maxBody, handle: a.prioritizeJob},
		{pattern: "GET /v1/jobs/{ref}/spec", where: fresh, role: fsm.RoleViewer, params: "format", handle: a.jobSpec},
		{pattern: "GET /v1/jobs/{ref}/shards", where: fresh, role: fsm.RoleViewer, params: "stage shards state attempts why" + page, handle: a.listShards},
		{pattern: "GET /v1/jobs/{ref}/shards/{stage}/{n}", where: fresh, role: fsm.RoleViewer, handle: a.getShard},
		{pattern: "GET /v1/jobs/{ref}/shards/{stage}/{n}/attempts/{k}/log", where: fresh, role: fsm.RoleViewer, params: "stream from tail hold limit", long: true, handle: a.readLog},
		{pattern: "GET /v1/jobs/{ref}/why", where: fresh, role: fsm.RoleViewer, params: "stage shards", handle: a.whyJob},
		{pattern: "GET /v1/dead", where: fresh, role: fsm.RoleViewer, params: "queue name label job since until limit", handle: a.listDead},
		{pattern: "GET /v1/schedules", where: fresh, role: fsm.RoleViewer, params: "next" + page, handle: a.listSchedules},
		{pattern: "GET /v1/schedules/{ref}", where: fresh, role: fsm.RoleViewer, params: "next", handle: a.getSchedule},
		{pattern: "DELETE /v1/schedules/{ref}", where: commit, role: fsm.RoleOperator, handle: a.removeSchedule},
		{pattern: "POST /v1/schedules/{ref}/pause", where: commit, role: fsm.RoleOperator, body: maxBody, handle: a.pauseSchedule, check: noFields},
		{pattern: "POST /v1/schedules/{ref}/resume", where: commit, role: fsm.RoleOperator, body: maxBody, handle: a.resumeSchedule, check: noFields},
		{pattern: "POST /v1/schedules/{ref}/trigger", where: commit, role: fsm.RoleOperator, body: maxBody, handle: a.triggerSchedule, check: noFields},
		{pattern: "GET /v1/queues", where: fresh, role: fsm.RoleViewer, handle: a.listQueues},
		{pattern: "GET /v1/queues/{ref}", where: fresh, role: fsm.RoleViewer, handle: a.getQueue},
		{pattern: "PATCH /v1/queues/{ref}", where: commit, role: fsm.RoleOperator, body: maxBody, handle: a.setQueue},
		{pattern: "DELETE /v1/queues/{ref}", where: commit, role: fsm.RoleOperator, handle: a.removeQueue},
		{pattern: "POST /v1/queues/{ref}/pause", where: commit, role: fsm.RoleOperator, body: maxBody, handle: a.pauseQueue, check: noFields},
		{pattern: "POST /v1/queues/{ref}/resume", where: commit, role: fsm.RoleOperator, body: maxBody, handle: a.resumeQueue, check: noFields},
		{pattern: "GET /v1/nodes", where: fresh, role: fsm.RoleViewer, params: "all" + page, handle: a.listNodes},
		{pattern: "GET /v1/nodes/{ref}", where: fresh, role: fsm.RoleViewer, handle: a.getNode},
		{pattern: "POST /v1/nodes/{ref}/drain", where: commit, role: fsm.RoleOperator, body: maxBody, handle: a.drainNode},
		{pattern: "POST /v1/nodes/{ref}/resume", where: commit, role: fsm.RoleOperator, body: maxBody, handle: a.resumeNode, check: noFields},
		{pattern: "POST /v1/nodes/{ref}/clear", where: commit, role: fsm.RoleOperator, body: maxBody, handle: a.clearNode, check: noFields},
		{pattern: "POST /v1/nodes/{ref}/wake", where: fresh, role: fsm.RoleOperator, body: maxBody, handle: a.wakeNode, check: noFields},
		{pattern: "POST /v1/nodes/{ref}/label", where: commit, role: fsm.RoleOperator, body: maxBody, handle: a.labelNode},
		{pattern: "POST /v1/nodes/{ref}/role", where: commit, role: fsm.RoleAdmin, body: maxBody, handle: a.setRole},
		{pattern: "DELETE /v1/nodes/{ref}", where: commit, role: fsm.RoleAdmin, params: "force", handle: a.removeNode},
		{pattern: "GET /v1/events", where: fresh, role: fsm.RoleViewer, params: "from job stage shards node kind since tail follow" + page, handle: a.listEvents, stream: a.followEvents},
		{pattern: "POST /v1/tokens", where: commit, role: fsm.RoleAdmin, body: maxBody, handle: a.createToken},
		{pattern: "GET /v1/tokens", where: fresh, role: fsm.RoleAdmin, params: "limit after", handle: a.listTokens},
		{pattern: "DELETE /v1/tokens/{id}", where: commit, role: fsm.RoleAdmin, handle: a.removeToken},
		{pattern: "GET /v1/clients", where: fresh, role: fsm.RoleAdmin, handle: a.listClients},
		{pattern: "DELETE /v1/clients/{ref}", where: commit, role: fsm.RoleAdmin, handle: a.removeClient},
		{pattern: "DELETE /v1/clients/self", where: commit, role: fsm.RoleViewer, handle: a.removeSelf},
		{pattern: "GET " + pathWho, where: fresh, role: fsm.RoleViewer, handle: a.whoAmI},
		{pattern: "GET /v1/pairings", where: commit, role: fsm.RoleAdmin, handle: a.listPairings}, // in the leader's memory only
		{pattern: "POST /v1/pairings", where: commit, role: fsm.RoleAdmin, body: maxBody, handle: a.checkCode},
		{pattern: "POST /v1/pairings/{id}/approve", where: commit, role: fsm.RoleAdmin, body: maxBody, handle: a.approvePairing},
		{pattern: "DELETE /v1/pairings/{id}", where: commit, role: fsm.RoleAdmin, handle: a.refusePairing},
		{pattern: "POST /v1/init", where: here, role: fsm.RoleAdmin, own: true, body: maxBody, handle: a.initCluster},
		{pattern: "POST /v1/leave", where: here, role: fsm.RoleAdmin, own: true, body: maxBody, handle: a.leave},
		{pattern: "GET /v1/backup", where: here, role: fsm.RoleAdmin, own: true, handle: a.backup},
		{pattern: "GET /v1/recover", where: here, role: fsm.RoleAdmin, own: true, handle: a.survey},
		{pattern: "POST /v1/recover", where: here, role: fsm.RoleAdmin, own: true, body: maxBody, handle: a.recoverHere},
		{pattern: "POST /v1/doctor", where: here, role: fsm.RoleAdmin, body: maxBody, long: true, handle: a.doctor},
		{pattern: "GET /v1/process", where: here, role: fsm.RoleAdmin, own: true, handle: a.getProcess},
		{pattern: "POST /v1/process/stop", where: here, role: fsm.RoleAdmin, own: true, body: maxBody, handle: a.stopProcess, check: noFields},
		{pattern: "GET /healthz", where: here, role: anyone, handle: a.health},
		{pattern: "GET /readyz", where: here, role: anyone, handle: a.ready},
	}
}
