package transport

import (
	"context"
	"net/http"

	"lanjobs/task"
)

// maxJoinBytes bounds the question of a machine that is nobody yet, and the answer to it.
const maxJoinBytes = 256 << 10

// JoinRequest asks to become a member, by a token. It is JSON, like the rest of /v1, and sent only after the cluster has proven
// that the token is its own.
type JoinRequest struct {
	TokenSecret string        `json:"token_secret"` // JoinToken.Secret; HashSecret of it is what the cluster knows
	CSR         string        `json:"csr"`          // PEM; see CA.Issue and CSRKeyHash
	Info        task.NodeInfo `json:"info"`
	// Addrs is where the machine will listen once it is a member, ip:port: it has no gossip yet to say so.
	Addrs []string `json:"addrs"`
}

// JoinReply makes a member of the asking machine.
type JoinReply struct {
	Cert    string      `json:"cert"` // PEM
	Cluster ClusterInfo `json:"cluster"`
	Members []Member    `json:"members"`
}

// Member is a node of the cluster and where to find it.
type Member struct {
	ID    task.NodeID `json:"id"`
	Name  string      `json:"name"`
	Addrs []string    `json:"addrs"` // ip:port, best first
}

// JoinHandler answers POST /v1/join. admit decides and may take its time: it checks the token, commits the new member and issues
// its certificate, or passes the request on to the leader. remoteAddr is where the request came from. Errors go to the joining
// machine, so they must not tell a stranger more than it may know.
func JoinHandler(admit func(ctx context.Context, r JoinRequest, remoteAddr string) (JoinReply, error)) http.Handler {
	return answering(openPost[JoinRequest]{"joining", "not a join request: ", maxJoinBytes, (*JoinRequest).check}, admit)
}

func (r *JoinRequest) check() error {
	if r.TokenSecret == "" { // must never meet an empty hash somewhere (C47)
		return task.NewProblem(task.ErrNotAllowed, "a join token is needed.", "On a member: lanjobs token create")
	}
	return nil
}
