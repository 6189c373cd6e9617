package transport

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"

	"lanjobs/task"
)

// MaxClientName is how long the name of a client may be.
const MaxClientName = 64

// LoginRequest asks for access by a token, as JSON. Like a JoinRequest it is sent only after the cluster has proven that the token
// is its own.
type LoginRequest struct {
	TokenSecret string `json:"token_secret"`
	CSR         string `json:"csr"`            // PEM; see CA.IssueClient and ClientIDOf
	Name        string `json:"name"`           // for people: who, and on which machine
	Role        string `json:"role,omitempty"` // what it must be good for; "" = whatever the token gives
}

// LoginReply makes a client of the asking machine. It has nothing of what makes a member, as the key of gossip.
type LoginReply struct {
	ID          string   `json:"id"`
	Role        string   `json:"role"`
	Cert        string   `json:"cert"` // PEM
	ClusterID   string   `json:"cluster_id"`
	ClusterName string   `json:"cluster"`
	CACert      string   `json:"ca_cert"`
	Members     []Member `json:"members"`
}

// LoginHandler answers POST /v1/login. admit decides, like that of JoinHandler.
func LoginHandler(admit func(ctx context.Context, r LoginRequest) (LoginReply, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := readLogin(w, r)
		if err != nil {
			WriteProblem(w, err)
			return
		}
		reply, err := admit(r.Context(), request)
		if err != nil {
			WriteProblem(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(reply)
	})
}

func readLogin(w http.ResponseWriter, r *http.Request) (LoginRequest, error) {
	var request LoginRequest
	if r.Method != http.MethodPost {
		return request, task.NewProblem(task.ErrInvalid, "logging in is a POST.", "")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxJoinBytes))
	if err == nil {
		err = json.Unmarshal(body, &request)
	}
	switch {
	case err != nil:
		return request, task.NewProblem(task.ErrInvalid, fmt.Sprintf("not a login request: %v", err), "")
	case request.TokenSecret == "": // must never meet an empty hash somewhere (C47)
		return request, task.NewProblem(task.ErrNotAllowed, "a login token is needed.", "On a member: lanjobs token create --role operator")
	case request.Name == "" || len(request.Name) > MaxClientName || strings.ContainsFunc(request.Name, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return request, task.NewProblem(task.ErrInvalid, fmt.Sprintf("a client's name has 1 to %d characters and no spaces", MaxClientName), "")
	}
	return request, nil
}

// LoginConfig is what Login is told.
type LoginConfig struct {
	Peer     string // a member, as typed: HOST or HOST:PORT
	Token    string
	Name     string // see LoginRequest
	Role     string
	Net      NetDial
	HasRoute func(netip.AddrPort) bool // see JoinConfig
	Clock    task.Clock
}

// Login makes a key on this machine and asks a member for access by a token. Its errors are those of Join.
func Login(ctx context.Context, cfg LoginConfig) (*Access, error) {
	token, err := ParseJoinToken(cfg.Token)
	if err != nil {
		return nil, err
	}
	host, addr, err := peerAddr(cfg.Peer)
	if err != nil {
		return nil, err
	}
	access, csr, err := newAccess(cfg.Name)
	if err != nil {
		return nil, err
	}
	return cfg.login(ctx, token, host, addr, access, csr)
}

// login has a member certify a key; access gets what it answers.
func (cfg LoginConfig) login(ctx context.Context, token JoinToken, host, addr string, access *Access, csr string) (*Access, error) {
	join := cfg.dial()
	reply := &LoginReply{}
	prove := func(chain []*x509.Certificate) error { return pinned(chain, token, host) }
	if err := join.request(ctx, host, addr, prove, pathLogin, LoginRequest{TokenSecret: token.Secret, CSR: csr, Name: cfg.Name, Role: cfg.Role}, reply); err != nil {
		return nil, err
	}
	f, err := (ClusterInfo{CACert: reply.CACert}).Fingerprint()
	if err == nil && !token.Matches(f) {
		err = errors.New("another authority")
	}
	if err == nil {
		err = access.adopt(reply, addr)
	}
	if err != nil {
		return nil, &task.Problem{Code: "internal", Detail: fmt.Sprintf("%s gave access, but its answer is not usable: %v.", cfg.Peer, err)}
	}
	return access, nil
}

// dial is how it connects, as whoever joins.
func (cfg LoginConfig) dial() JoinConfig {
	return JoinConfig{Peer: cfg.Peer, Net: cfg.Net, HasRoute: cfg.HasRoute, Clock: cfg.Clock}
}
