package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// asClient sends a request as a client with a certificate.
func (c *cluster) asClient(id, key, method, path, body string) *answer {
	c.t.Helper()
	return c.serve(httptest.NewRequestWithContext(WithClient(c.t.Context(), transport.ClientProof{ID: id, Key: []byte(key)}), method, path, strings.NewReader(body)))
}

// letIn admits a client of each role: its id is the role, its key the role as well.
func (c *cluster) letIn() {
	c.t.Helper()
	for _, r := range []fsm.Role{fsm.RoleViewer, fsm.RoleOperator, fsm.RoleAdmin} {
		hash := transport.HashSecret(string(r))
		c.do(0, &fsm.CreateToken{ID: "t" + string(r), Hash: hash, TTL: task.Hour, Uses: 1, Role: r, By: "root@mini-1"},
			&fsm.AdmitClient{TokenHash: hash, ID: string(r), Name: string(r) + "@laptop", Key: []byte(r)})
	}
}

// example is a route's pattern with something in the place of every part.
func (rt route) example() (method, path string) {
	method, path, _ = strings.Cut(rt.pattern, " ")
	return method, strings.NewReplacer("{ref}", "x", "{stage}", "main", "{n}", "0", "{k}", "0", "{id}", "t").Replace(path)
}

// TestEveryRouteHasARole: none is forgotten, none that changes something is a viewer's, and what lets others in or puts machines out is
// an admin's.
func TestEveryRouteHasARole(t *testing.T) {
	mayAnyone := map[string]bool{"GET /healthz": true, "GET /readyz": true}
	viewersOwn := map[string]bool{"DELETE /v1/clients/self": true} // giving up one's own access
	for _, rt := range newCluster(t).api.routes() {
		method, path, _ := strings.Cut(rt.pattern, " ")
		_, known := ranks[rt.role]
		switch {
		case !known:
			t.Errorf("%s: role %q: name viewer, operator or admin", rt.pattern, rt.role)
		case (rt.role == anyone) != mayAnyone[rt.pattern]:
			t.Errorf("%s is for %s", rt.pattern, rt.role)
		case method != "GET" && rt.role == fsm.RoleViewer && !viewersOwn[rt.pattern]:
			t.Errorf("%s changes something and is for viewers", rt.pattern)
		}
		for _, owners := range []string{"/v1/init", "/v1/leave", "/v1/backup", "/v1/recover", "/v1/process"} {
			if strings.HasPrefix(path, owners) && !rt.own {
				t.Errorf("%s is for clients too", rt.pattern)
			}
		}
		for _, sensitive := range []string{"/v1/tokens", "/v1/clients", "/v1/init", "/v1/leave", "/v1/backup", "/v1/pairings"} {
			if strings.HasPrefix(path, sensitive) && rt.role != fsm.RoleAdmin && !viewersOwn[rt.pattern] {
				t.Errorf("%s is for %s", rt.pattern, rt.role)
			}
		}
	}
	if !allows(fsm.RoleAdmin, "") || allows(fsm.RoleOperator, "") {
		t.Error("a route without a role is not for admins alone")
	}
}

// TestRolesDecide tries every route as a client of each role: one that is too low is refused before anything is read, and told who it
// is and what it would take; one that is enough gets to the route.
func TestRolesDecide(t *testing.T) {
	for _, rt := range newCluster(t).api.routes() {
		method, path := rt.example()
		for _, role := range []fsm.Role{fsm.RoleViewer, fsm.RoleOperator, fsm.RoleAdmin} {
			c := newCluster(t)
			c.letIn()
			c.commands = nil
			a := c.asClient(string(role), string(role), method, path, "{")
			var p task.Problem
			_ = json.Unmarshal([]byte(a.body), &p)
			refused := a.status == 403 && strings.Contains(p.Detail, "this takes the role")
			if want := !allows(role, rt.role); refused != want {
				t.Errorf("%s as %s: %d %s", rt.pattern, role, a.status, a.body)
			}
			if refused {
				a.problem(403, "not_allowed", fmt.Sprintf("you are %s@laptop (%s), ", role, role))
				a.problem(403, "not_allowed", "lanjobs login MACHINE --role "+string(rt.role))
			}
			own := a.status == 403 && strings.Contains(p.Detail, "owner of the machine itself")
			if want := rt.own && allows(role, rt.role); own != want {
				t.Errorf("%s as %s: %d %s", rt.pattern, role, a.status, a.body)
			}
			if refused && len(c.commands) > 0 {
				t.Errorf("%s as %s: %v", rt.pattern, role, c.commands)
			}
		}
	}
}

func TestWhatAClientDoesIsInTheAuditLogUnderItsName(t *testing.T) {
	c := newCluster(t)
	c.letIn()
	c.asClient("operator", "operator", "POST", "/v1/nodes/nas/drain", "{}").ok(nil)
	if got := c.commands[len(c.commands)-1].(*fsm.SetNode); got.By != "operator@laptop (operator)" {
		t.Errorf("by %q", got.By)
	}
	var who transport.WhoView
	if c.asClient("viewer", "viewer", "GET", "/v1/whoami", "").ok(&who); who != (transport.WhoView{By: "viewer@laptop (viewer)", Role: "viewer", Client: "viewer", Cluster: "home"}) {
		t.Errorf("%+v", who)
	}
	if c.get("/v1/whoami").ok(&who); who.By != "anna" || who.Role != "admin" || who.Client != "" {
		t.Errorf("%+v", who)
	}
}

func TestClientsAreListedAndRemoved(t *testing.T) {
	c := newCluster(t)
	c.letIn()
	var l task.List[transport.ClientView]
	c.get("/v1/clients").ok(&l)
	if len(l.Items) != 3 || l.Kind != "ClientList" || l.Items[1].Name != "operator@laptop" || l.Items[1].Role != "operator" || l.Items[1].By != "root@mini-1" {
		t.Errorf("%+v", l)
	}
	c.ask("DELETE", "/v1/clients/vewer@laptop", "").problem(404, "not_found", `Did you mean "viewer@laptop"?`)
	var k transport.ClientView
	if c.ask("DELETE", "/v1/clients/viewer@laptop", "").ok(&k); k.ID != "viewer" {
		t.Errorf("%+v", k)
	}
	c.asClient("viewer", "viewer", "GET", "/v1/status", "").problem(401, "not_allowed", `"home" knows no client viewer: it was removed`)
	// What to type instead is about what was asked for.
	c.asClient("admin", "admin", "POST", "/v1/leave", "{}").problem(403, "not_allowed", "lanjobs node rm NODE")
	if a := c.asClient("admin", "admin", "GET", "/v1/backup", ""); strings.Contains(a.body, "node rm") {
		t.Error(a.body)
	}
	// Everybody may give up their own access, and nobody else's.
	c.asClient("operator", "operator", "DELETE", "/v1/clients/admin", "").problem(403, "not_allowed", "")
	if c.asClient("operator", "operator", "DELETE", "/v1/clients/self", "").ok(&k); k.ID != "operator" {
		t.Errorf("%+v", k)
	}
	c.asClient("operator", "operator", "GET", "/v1/status", "").problem(401, "not_allowed", "")
	c.ask("DELETE", "/v1/clients/self", "").problem(409, "conflict", "owner of a machine")
	c.do(0, &fsm.CreateToken{ID: "t2", Hash: []byte("h"), TTL: task.Hour, Uses: 2, Role: fsm.RoleViewer},
		&fsm.AdmitClient{TokenHash: []byte("h"), ID: "one", Name: "same", Key: []byte("1")}, &fsm.AdmitClient{TokenHash: []byte("h"), ID: "two", Name: "same", Key: []byte("2")})
	c.ask("DELETE", "/v1/clients/same", "").problem(400, "invalid", "more than one client: one, two")
}

// TestCertificateAloneProvesNothing: a certificate of a key that the ledger does not name, for an id that it has.
func TestCertificateAloneProvesNothing(t *testing.T) {
	c := newCluster(t)
	c.letIn()
	c.asClient("admin", "another key", "GET", "/v1/status", "").problem(401, "not_allowed", "")
	c.asClient("ghost", "ghost", "GET", "/v1/status", "").problem(401, "not_allowed", "")
	c.asClient("ghost", "ghost", "GET", "/healthz", "").ok(nil)
}

// TestTheLeaderAsksItsOwnLedger: what a member passes on says who asks, and the leader looks that client up itself, whatever the member
// took it for.
func TestTheLeaderAsksItsOwnLedger(t *testing.T) {
	follower, leader := newCluster(t), newCluster(t)
	follower.letIn()
	leader.letIn()
	follower.standing = Standing{Leader: "n2", Copy: true}
	var passed []*transport.APIRequest
	follower.forward = func(ctx context.Context, r *transport.APIRequest) (*transport.APIReply, error) {
		passed = append(passed, r)
		return leader.api.ServeForwarded(ctx, r)
	}
	follower.asClient("viewer", "viewer", "GET", "/v1/jobs", "").ok(nil)
	if r := passed[0]; r.Client != "viewer" || string(r.ClientKey) != "viewer" || r.Role != "viewer" || r.By != "viewer@laptop (viewer)" {
		t.Errorf("%+v", r)
	}
	follower.asClient("viewer", "viewer", "POST", "/v1/nodes/nas/drain", "{}").problem(403, "not_allowed", "takes the role operator")
	if len(passed) != 1 {
		t.Error("a request that is not allowed was passed on")
	}
	// Removed at the leader, and not yet here.
	leader.do(0, &fsm.RemoveClient{ID: "viewer"})
	follower.asClient("viewer", "viewer", "GET", "/v1/jobs", "").problem(401, "not_allowed", "was removed")
	// Let in at the leader, and not yet here.
	follower.do(0, &fsm.RemoveClient{ID: "operator"})
	follower.asClient("operator", "operator", "POST", "/v1/nodes/nas/drain", "{}").ok(nil)
	// A member that lies about the role, or knows nobody.
	for _, r := range []transport.APIRequest{
		{Client: "admin", ClientKey: []byte("another"), Role: "admin", By: "admin"},
		{Client: "operator", ClientKey: []byte("operator"), Role: "admin", By: "root"},
		{Role: "viewer", By: "somebody"},
	} {
		r.HTTPMethod, r.Path = "DELETE", "/v1/nodes/nas"
		rep, err := leader.api.ServeForwarded(t.Context(), &r)
		if err != nil || rep.Status != 403 && rep.Status != 401 {
			t.Errorf("%+v: %+v, %v", r, rep, err)
		}
	}
	if rep, err := leader.api.ServeForwarded(t.Context(), &transport.APIRequest{HTTPMethod: "GET", Path: "/v1/status"}); err == nil {
		t.Errorf("nobody asks: %+v", rep)
	}
	// Without a leader: what is known here counts, who is not known waits.
	follower.forward = nil
	follower.asClient("admin", "admin", "GET", "/v1/status", "").ok(nil)
	follower.asClient("ghost", "ghost", "GET", "/v1/status", "").problem(503, "no_leader", "")
	// A worker has no ledger, and asks the leader for each.
	worker := bare(t)
	worker.standing = Standing{Leader: "n2"}
	worker.forward = func(ctx context.Context, r *transport.APIRequest) (*transport.APIReply, error) {
		return leader.api.ServeForwarded(ctx, r)
	}
	worker.asClient("admin", "admin", "GET", "/v1/jobs", "").ok(nil)
	worker.asClient("operator", "operator", "GET", "/v1/tokens", "").problem(403, "not_allowed", "takes the role admin")
	worker.asClient("viewer", "viewer", "GET", "/v1/jobs", "").problem(401, "not_allowed", "")
	worker.asClient("viewer", "viewer", "GET", "/v1/events?follow=1", "").problem(401, "not_allowed", "")
	worker.asClient("admin", "admin", "POST", "/v1/leave", "{}").problem(403, "not_allowed", "owner of the machine itself")
	if worker.left != nil {
		t.Error("a client made a machine leave")
	}
}

func TestLoginTokens(t *testing.T) {
	c := newCluster(t)
	var v transport.TokenView
	c.ask("POST", "/v1/tokens", `{"role":"operator"}`).ok(&v)
	if v.Role != "operator" || len(v.Join) == 0 || v.Join[0] != "lanjobs login 192.168.1.5:7420 --token "+v.Token {
		t.Errorf("%+v", v)
	}
	var l task.List[transport.TokenView]
	if c.get("/v1/tokens").ok(&l); len(l.Items) != 1 || l.Items[0].Role != "operator" || l.Items[0].Token != "" {
		t.Errorf("%+v", l)
	}
	c.ask("POST", "/v1/tokens", `{"role":"boss"}`).problem(400, "invalid", "viewer, operator or admin")
	c.ask("POST", "/v1/tokens", `{"role":"viewer","worker":true}`).problem(400, "invalid", "")
}

// TestAccessIsLookedUpEachTime: who was let in once is asked for again, as a stream does with each sign of life.
func TestAccessIsLookedUpEachTime(t *testing.T) {
	c := newCluster(t)
	c.letIn()
	r := httptest.NewRequestWithContext(WithClient(t.Context(), transport.ClientProof{ID: "viewer", Key: []byte("viewer")}), http.MethodGet, "/v1/events?follow=1", nil)
	caller, err := c.api.identify(r, callerOf(r.Context()))
	if err != nil || caller.Role != fsm.RoleViewer {
		t.Fatalf("%+v, %v", caller, err)
	}
	c.do(0, &fsm.RemoveClient{ID: "viewer"})
	if _, err := c.api.identify(r, caller); err == nil {
		t.Error("who was let in once stays so")
	}
}
