package transport

import (
	"encoding/json"

	"lanjobs/task"
)

// The HTTP API (UX 4). It is served on the node's unix socket (owner of the data folder = admin) and on the cluster port to
// clients with a certificate. Any member answers; writes and reads that must be fresh go to the leader.
//
//	GET    /v1/status                          task.ClusterView
//	POST   /v1/jobs?dry_run=1                  body: ContentTypeSpec (canonical JSON of a task.Spec) or YAML; task.SubmitReply, 201 or 200 if it existed
//	                                           body: ContentTypeSpecs, many jobs, a SubmitLine each: a SubmitAnswer a line, 200; without dry_run
//	GET    /v1/jobs?state,queue,name,label,dead,since,until,limit,after   task.List[task.JobView], newest first
//	GET    /v1/jobs/{ref}                      task.JobView; ref = id, name (the newest of that name), or unique id prefix
//	DELETE /v1/jobs/{ref}?reason,grace         cancel; task.JobView
//	POST   /v1/jobs/{ref}/retry                RetryBody; task.JobView
//	POST   /v1/jobs/{ref}/pause                nothing more of it starts, what runs goes on; task.JobView
//	POST   /v1/jobs/{ref}/resume               task.JobView
//	POST   /v1/jobs/{ref}/priority             PriorityBody; task.JobView
//	GET    /v1/jobs/{ref}/spec?format=json     the job file as submitted, or the task.Spec
//	GET    /v1/jobs/{ref}/shards?stage,shards,state,attempts,why,limit,after   task.List[task.ShardView]
//	GET    /v1/jobs/{ref}/shards/{stage}/{n}   task.ShardView, with its attempts and why it does not run
//	GET    /v1/jobs/{ref}/shards/{stage}/{n}/attempts/{k}/log?stream,from,tail,hold,limit   raw output; k = 0 the newest; see HeaderLog…
//	GET    /v1/jobs/{ref}/why?stage,shards     task.List[WhyView]
//	GET    /v1/dead?queue,name,label,job,since,until,limit   task.List[task.DeadGroup]: dead shards, those that ended alike together, newest jobs first
//	GET    /v1/schedules?next,limit,after      task.List[task.ScheduleView] by name; next = how many coming times of each, 1 by default
//	GET    /v1/schedules/{ref}?next            task.ScheduleView; next = 5 by default, 100 at most; ref = its name
//	DELETE /v1/schedules/{ref}                 task.ScheduleView as it was; its jobs stay
//	POST   /v1/schedules/{ref}/pause           task.ScheduleView
//	POST   /v1/schedules/{ref}/resume          task.ScheduleView
//	POST   /v1/schedules/{ref}/trigger         a run now, under its overlap rule; task.SubmitReply, or 409 if that forbids it
//	GET    /v1/queues                          task.List[task.QueueView] by name
//	GET    /v1/queues/{ref}                    task.QueueView; ref = its name
//	PATCH  /v1/queues/{ref}                    QueueBody: makes it, or changes what the body has; task.QueueView
//	DELETE /v1/queues/{ref}                    task.QueueView as it was; 409 while unfinished jobs or schedules use it
//	POST   /v1/queues/{ref}/pause              nothing more of its jobs starts, what runs goes on; task.QueueView
//	POST   /v1/queues/{ref}/resume             task.QueueView
//	GET    /v1/nodes?all=1                     task.List[task.NodeView]; all: those that have left, too
//	GET    /v1/nodes/{ref}                     task.NodeView; ref = name, UUID or unique prefix
//	POST   /v1/nodes/{ref}/drain               DrainBody; task.NodeView
//	POST   /v1/nodes/{ref}/resume              task.NodeView
//	POST   /v1/nodes/{ref}/clear               "unstable" ends, its crashes are forgotten; task.NodeView
//	POST   /v1/nodes/{ref}/wake                have the others send Wake-on-LAN packets, also without a leader; WakeView
//	POST   /v1/nodes/{ref}/label               LabelBody; task.NodeView
//	POST   /v1/nodes/{ref}/role                RoleBody: whether it should vote; task.NodeView
//	DELETE /v1/nodes/{ref}?force               remove from the cluster; task.NodeView
//	GET    /v1/events?from,after,job,stage,shards,node,kind,since,tail,limit,follow=1   task.List[task.Event], or with follow a stream of JSON lines
//	POST   /v1/tokens                          TokenBody; TokenView with the token itself, this once
//	GET    /v1/tokens                          task.List[TokenView]
//	DELETE /v1/tokens/{id}                     withdraw one
//	GET    /v1/pairings                        task.List[PairingView]: machines and people that wait to be let in; the leader knows
//	POST   /v1/pairings                        PairCodeBody: who has proven to have this code, as PairingView with its id, or 403
//	POST   /v1/pairings/{id}/approve           PairDecision: let it in as this; PairingView
//	DELETE /v1/pairings/{id}                   send it away
//	GET    /v1/clients                         task.List[ClientView] in order of admission
//	DELETE /v1/clients/{ref}                   shut one out at once; ref = its id, or its name if that is the only one; ClientView as it was
//	DELETE /v1/clients/self                    the asking client gives up its own access; ClientView
//	GET    /v1/whoami                          WhoView: who asks, and its role
//	POST   /v1/init                            InitBody; InitView: a this-machine-only node becomes the first of a cluster
//	POST   /v1/leave                           LeaveBody
//	POST   /v1/doctor                          DoctorBody: checks of machines and their network, of this one by default; task.List[task.DoctorView]
//	GET    /v1/process                         ProcessView
//	POST   /v1/process/stop                    this node ends in order: work is given back; ProcessView
//	GET    /v1/backup                          the state as of one entry: a line of JSON, BackupHead, then a snapshot. It holds the cluster's key:
//	                                           only for the owner of this machine; SealBackup makes a file of it
//	GET    /v1/recover                         RecoverView: who is left, and whether a quorum is lost
//	POST   /v1/recover                         RecoverBody: this machine goes on alone, in a new generation; RecoverView, before it has
//	POST   /v1/join                            on the cluster port, without a client certificate: see join.go
//	POST   /v1/pair                            likewise: see pair.go
//	POST   /v1/login                           on the cluster port, without a client certificate: see login.go
//	GET    /healthz                            the process lives; for anybody
//	GET    /readyz                             this member knows a leader; for anybody
//
// Roles (R46). A client is a viewer, an operator or an admin, by the cluster's own list, which is asked at every request; the owner
// of the socket is admin. Viewers read; operators also submit and act on jobs, schedules and queues, drain, resume and label machines;
// tokens, clients and the removal of machines take an admin. init and leave are for the owner of the machine alone.
//
// Bodies are JSON as it is written: UTF-8, names as they are here and each at most once, and nothing after it. A field that is null is as
// if it were left out. A request that says all with its path takes no body, or {}.
//
// Parameters. A name that a resource does not know is refused, and so is one without a value or given twice. Flags are name=1. Lengths of
// time are seconds, or written as in
// job files (90s, 1h30m); since and until are so long ago, or RFC 3339. state and kind take several, separated by commas; kind=lease
// means all events of leases. job of events may be JOB/STAGE/SHARDS. label is a condition as in placement.require; commas
// join several. limit is 1000 by default and 10,000 at most; a page may end earlier, next then goes on with ?after=.
// Events come oldest first; tail=N gives the newest N instead. A stream without from, after and since begins with what is new.
// consistency=stale lets this member answer from its own copy.
//
// Without a leader, reads are answered from this member's copy with HeaderStale, but never "not found", and writes wait as
// long as HeaderWait says. A lost answer is made good by repeating the request with its HeaderRequestID.
// The id belongs to that request: another act under it is another act, and another job is refused with 409.
//
// Errors are application/problem+json of a task.Problem: 400 invalid, 401 nobody asks or a client that was removed, 403 not_allowed, 404 not_found, 405,
// 409 conflict and stale_token, 412 If-Match (not built yet), 413 too_large, 429 and 503 no_leader (with Retry-After), 500 internal.
const (
	ContentTypeSpec  = "application/vnd.lanjobs.spec+json"
	ContentTypeSpecs = "application/vnd.lanjobs.specs+x-ndjson"
	HeaderRequestID  = task.HeaderRequestID   // of a write; repeating it is harmless
	HeaderWait       = "Lanjobs-Wait-Seconds" // how long a write may wait for a leader, 0 to 60; 8 by default
	HeaderIndex      = "Lanjobs-Index"        // applied index of the answering state
	HeaderLeader     = "Lanjobs-Leader"       // node id
	HeaderStale      = "Lanjobs-Stale-Seconds"
	HeaderLogNext    = "Lanjobs-Log-Next"    // byte offset after the returned piece
	HeaderLogDone    = "Lanjobs-Log-Done"    // "true" when the attempt has ended and there is no more
	HeaderLogAttempt = "Lanjobs-Log-Attempt" // execution id of the attempt shown
)

// Limits of a ContentTypeSpecs body.
const (
	MaxSubmitLines = 1000
	MaxSubmitBytes = 16 << 20
)

// SubmitLine is one job of a ContentTypeSpecs body, which has one a line, JSON without line breaks. Each is by itself: one that is
// refused holds no other up, and a job that was accepted is kept whatever happens to the rest. The answer has as many lines,
// in the same order. It comes when the fate of all is known; without an answer, repeating the request (with its HeaderRequestID,
// or with RequestID in every line) submits nothing twice (R20). Jobs are as old as their lines stand, unless it had to be repeated.
type SubmitLine struct {
	RequestID task.RequestID  `json:"request_id,omitempty"` // HeaderRequestID and the line's number by default
	Spec      json.RawMessage `json:"spec"`                 // as a ContentTypeSpec body
}

// SubmitAnswer answers a SubmitLine: a reply, or a problem.
type SubmitAnswer struct {
	*task.SubmitReply
	Problem *task.Problem `json:"problem,omitempty"`
}

// RetryBody asks for new attempts (R36).
type RetryBody struct {
	Stage     string       `json:"stage,omitempty"`      // "" = all
	Shards    []task.Range `json:"shards,omitempty"`     // empty = all that qualify
	Dead      bool         `json:"dead,omitempty"`       // failed shards only; the default when neither is given
	All       bool         `json:"all,omitempty"`        // the whole job again
	FromStart bool         `json:"from_start,omitempty"` // drop checkpoints
}

// PriorityBody changes a job's priority (R33).
type PriorityBody struct {
	Priority *int `json:"priority"` // 0 to 100, higher goes first
}

// QueueBody makes or changes a queue (R33); what it does not have stays as it is.
type QueueBody struct {
	Max     *int          `json:"max,omitempty"` // most shards at once; 0 = no limit
	Balance *task.Balance `json:"balance,omitempty"`
	Paused  *bool         `json:"paused,omitempty"`
}

// WhyView says why something is not running, for one machine, in plain words.
type WhyView struct {
	Stage  string `json:"stage"`
	Shards string `json:"shards"`
	Node   string `json:"node,omitempty"` // "" = not about one machine
	Why    string `json:"why"`
	Fix    string `json:"fix,omitempty"`
}

// LogProblem answers a request for output whose machine does not answer: a task.Problem, with the end of a failed attempt's
// output as far as the ledger has it.
type LogProblem struct {
	task.Problem
	Tail string `json:"tail,omitempty"`
}
