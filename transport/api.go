package transport

import "lanjobs/task"

// The HTTP API (UX 4). It is served on the node's unix socket (owner of the data folder = admin) and on the cluster port to
// clients with a certificate. Any member answers; writes and reads that must be fresh go to the leader.
//
//	GET    /v1/status                          task.ClusterView
//	POST   /v1/jobs?dry_run=1                  body: ContentTypeSpec (canonical JSON of a task.Spec) or YAML; task.SubmitReply
//	GET    /v1/jobs?state,queue,name,label,dead,since,limit,after   task.List[task.JobView]
//	GET    /v1/jobs/{ref}                      task.JobView; ref = id, unique id prefix, or name (the newest of that name)
//	DELETE /v1/jobs/{ref}?reason,grace         cancel; task.JobView
//	POST   /v1/jobs/{ref}/retry                RetryBody; task.JobView
//	GET    /v1/jobs/{ref}/spec                 the job file as submitted
//	GET    /v1/jobs/{ref}/shards?stage,shards,state,attempts,why,limit,after   task.List[task.ShardView]
//	GET    /v1/jobs/{ref}/shards/{stage}/{n}/attempts/{k}/log?stream,from,tail,hold   raw output; k = 0 the newest; see HeaderLog…
//	GET    /v1/jobs/{ref}/why                  task.List[WhyView]
//	GET    /v1/nodes, /v1/nodes/{ref}          task.List[task.NodeView], task.NodeView; ref = name, UUID or unique prefix
//	POST   /v1/nodes/{ref}/drain|resume        DrainBody; task.NodeView
//	POST   /v1/nodes/{ref}/label               LabelBody; task.NodeView
//	DELETE /v1/nodes/{ref}                     remove from the cluster
//	GET    /v1/events?from,job,node,kind,since,limit,follow=1   task.List[task.Event], or with follow a stream of JSON lines
//	POST   /v1/tokens                          TokenBody; TokenView with the token itself, this once
//	GET    /v1/tokens, DELETE /v1/tokens/{id}  task.List[TokenView]
//	POST   /v1/init                            InitBody; InitView: a this-machine-only node becomes the first of a cluster
//	POST   /v1/leave                           LeaveBody
//	POST   /v1/join                            on the cluster port, without a client certificate: see join.go
//	GET    /healthz, /readyz
//
// Errors are application/problem+json of a task.Problem.
const (
	ContentTypeSpec  = "application/vnd.lanjobs.spec+json"
	HeaderRequestID  = "Lanjobs-Request-Id"   // of a write; repeating it is harmless
	HeaderWait       = "Lanjobs-Wait-Seconds" // how long a write may wait for a leader, 0 to 60; 8 by default
	HeaderIndex      = "Lanjobs-Index"        // applied index of the answering state
	HeaderLeader     = "Lanjobs-Leader"       // node id
	HeaderStale      = "Lanjobs-Stale-Seconds"
	HeaderLogNext    = "Lanjobs-Log-Next"    // byte offset after the returned piece
	HeaderLogDone    = "Lanjobs-Log-Done"    // "true" when the attempt has ended and there is no more
	HeaderLogAttempt = "Lanjobs-Log-Attempt" // execution id of the attempt shown
)

// RetryBody asks for new attempts (R36).
type RetryBody struct {
	Stage     string       `json:"stage,omitempty"`      // "" = all
	Shards    []task.Range `json:"shards,omitempty"`     // empty = all that qualify
	Dead      bool         `json:"dead,omitempty"`       // failed shards only; the default when neither is given
	All       bool         `json:"all,omitempty"`        // the whole job again
	FromStart bool         `json:"from_start,omitempty"` // drop checkpoints
}

// DrainBody asks a node to take nothing new and give back what it has.
type DrainBody struct {
	DeadlineSeconds float64 `json:"deadline_seconds"` // running attempts may finish until then
	Reason          string  `json:"reason,omitempty"`
}

// LabelBody sets labels of a node from afar; an empty value removes one.
type LabelBody struct {
	Set []task.KV `json:"set"`
}

// WhyView says why something is not running, for one machine, in plain words.
type WhyView struct {
	Stage  string `json:"stage"`
	Shards string `json:"shards"`
	Node   string `json:"node,omitempty"` // "" = not about one machine
	Why    string `json:"why"`
	Fix    string `json:"fix,omitempty"`
}

// TokenBody makes a join token.
type TokenBody struct {
	TTLSeconds float64 `json:"ttl_seconds"`
	Uses       int     `json:"uses"`
	Worker     bool    `json:"worker"` // whoever joins with it never becomes a voter
}

// TokenView is a join token; Token is given only when it is made, since only its hash is stored.
type TokenView struct {
	ID          string   `json:"id"`
	Token       string   `json:"token,omitempty"`
	Join        []string `json:"join,omitempty"` // complete join lines, one per address of this member
	LeftSeconds float64  `json:"left_seconds"`
	UsesLeft    int      `json:"uses_left"`
	Worker      bool     `json:"worker"`
	By          string   `json:"created_by,omitempty"`
}

// InitBody turns a this-machine-only node into the first member of a cluster.
type InitBody struct {
	Cluster string `json:"cluster"`
	Listen  string `json:"listen"` // ADDR:PORT
}

// InitView answers it.
type InitView struct {
	Cluster     string   `json:"cluster"`
	ClusterID   string   `json:"cluster_id"`
	Node        string   `json:"node"`
	Fingerprint string   `json:"ca_fingerprint"` // as a person compares it: 3F9A-7C21-…
	Addresses   []string `json:"addresses"`
}

// LeaveBody asks this node to leave the cluster.
type LeaveBody struct {
	Force bool `json:"force"`
}
