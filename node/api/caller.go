package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// Caller is who asks, and what it may do (R46).
type Caller struct {
	By   string   // for the audit log (R37)
	Role fsm.Role // the owner of a member's socket is admin
	// Client is the id of a client that has proven to hold Key, the hash of its certificate's; "" = none. Its By and Role are what the
	// ledger says.
	Client string
	Key    []byte
}

type callerKey struct{}

// WithBy says that the owner of this machine is asking: whoever opened its unix socket. Whoever accepted the connection has
// proven it; without this or WithClient every request is refused (C47). The name goes into the audit log.
func WithBy(ctx context.Context, who string) context.Context {
	return withCaller(ctx, Caller{By: who, Role: fsm.RoleAdmin})
}

// WithClient says that a client is asking, by its certificate. What it may do, and whether it still is a client, is looked up at
// every request.
func WithClient(ctx context.Context, proof transport.ClientProof) context.Context {
	return withCaller(ctx, Caller{Client: proof.ID, Key: proof.Key})
}

func withCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// callerOf is who is asking, the zero value if that is not known.
func callerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

func (c Caller) known() bool { return c.By != "" || c.Client != "" }

// anyone is the role of routes that tell nothing but that the process lives.
const anyone fsm.Role = "anyone"

// ranks order the roles: each may all that the one before it may.
var ranks = map[fsm.Role]int{anyone: 0, fsm.RoleViewer: 1, fsm.RoleOperator: 2, fsm.RoleAdmin: 3}

// allows tells whether a role is enough for another; a route that names none is for admins.
func allows(has, needs fsm.Role) bool {
	rank, ok := ranks[needs]
	if !ok {
		rank = ranks[fsm.RoleAdmin]
	}
	return ranks[has] >= rank
}

// authorize finds out who asks and whether that is allowed. What a client is told by this member's copy alone is never the last
// word against it: the copy may be behind.
func (a *API) authorize(r *http.Request, rt route) (Caller, error) {
	c := callerOf(r.Context())
	if rt.role == anyone {
		return c, nil
	}
	c, err := a.identify(r, c)
	if err != nil {
		return c, err
	}
	switch {
	case !allows(c.Role, rt.role):
		return c, forbidden(c, rt.role)
	case rt.own && c.Client != "":
		hint := "Type it on that machine, as its owner."
		if rt.pattern == "POST /v1/leave" {
			hint += " To remove a machine from afar: lanjobs node rm NODE"
		}
		return c, task.NewProblem(task.ErrNotAllowed, "this is for the owner of the machine itself, and you are "+c.By+" from elsewhere.", hint)
	}
	return c, nil
}

// identify looks a client up.
func (a *API) identify(r *http.Request, c Caller) (Caller, error) {
	if c.Client == "" {
		return c, nil
	}
	known := false
	var cluster string
	a.cfg.Ledger.Read(func(s *fsm.State) {
		cluster = s.Cluster.Name
		if k := s.Client(c.Client); k != nil && bytes.Equal(k.Key, c.Key) {
			c.By, c.Role, known = clientBy(k), k.Role, true
		}
	})
	_, passed := r.Context().Value(forwardedKey{}).(forwarded)
	switch leads := a.cfg.Ledger.Standing().Leads; {
	case known:
		return c, nil
	case leads:
		return c, stranger(c, cluster)
	case passed:
		return c, notLeading()
	}
	return a.identifyAtLeader(r.Context(), c)
}

// identifyAtLeader asks the leader, on a member that keeps no ledger or has not heard of a new client yet.
func (a *API) identifyAtLeader(ctx context.Context, c Caller) (Caller, error) {
	c.By, c.Role = "client "+c.Client, ""
	q := &request{http: &http.Request{Method: http.MethodGet, URL: &url.URL{Path: pathWho}, Header: http.Header{}}, caller: c}
	rep, err := a.forward(ctx, q, forwardWait)
	switch {
	case errors.Is(err, task.ErrNoLeader):
		return c, a.noLeader()
	case err != nil:
		return c, err
	case rep.status != http.StatusOK:
		p := &task.Problem{}
		if json.Unmarshal(rep.body, p) != nil || p.Code == "" {
			return c, task.NewProblem(errInternal, "the leader's answer cannot be read", "")
		}
		return c, &statusError{rep.status, p}
	}
	var who transport.WhoView
	if err := json.Unmarshal(rep.body, &who); err != nil || who.Client != c.Client {
		return c, task.NewProblem(errInternal, "the leader's answer cannot be read", "")
	}
	c.By, c.Role = who.By, fsm.Role(who.Role)
	return c, nil
}

// clientBy names a client in the audit log. It chose its name itself, so the id goes along.
func clientBy(k *fsm.Client) string { return k.Name + " (" + k.ID + ")" }

// stranger is a client that the ledger does not have: it was removed.
func stranger(c Caller, cluster string) error {
	return &statusError{http.StatusUnauthorized, task.NewProblem(task.ErrNotAllowed,
		fmt.Sprintf("%q knows no client %s: it was removed, or the cluster was restored to a time before it.", cluster, c.Client),
		"Log in again: lanjobs login MACHINE")}
}

// forbidden says who asks, what it is, and what it would take.
func forbidden(c Caller, needs fsm.Role) error {
	if _, ok := ranks[needs]; !ok {
		needs = fsm.RoleAdmin
	}
	return task.NewProblem(task.ErrNotAllowed, fmt.Sprintf("you are %s, %s: this takes the role %s.", c.By, withArticle(string(c.Role)), needs),
		fmt.Sprintf("lanjobs login MACHINE --role %s shows a code that an admin types on a member", needs))
}

func withArticle(role string) string {
	switch role {
	case "":
		return "without a role"
	case string(fsm.RoleViewer):
		return "a viewer"
	}
	return "an " + role
}
